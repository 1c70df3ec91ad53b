"""Routes of the recipe: text, sections, columns, decisions, presets, undo, redo and branches."""

from __future__ import annotations

import difflib
from typing import Any

from fastapi import APIRouter

from sfumato.app.documents import (
    BranchRequest,
    ColumnEdit,
    CompareRequest,
    DecideRequest,
    RecipeState,
    SectionEdit,
    TextEdit,
    VersionEntry,
)
from sfumato.app.project import RecipeProject, text_version
from sfumato.app.workspace import AppWorkspace
from sfumato.data.yaml_documents import parse_yaml
from sfumato.recipe.decide import decide
from sfumato.recipe.edit import set_column, set_section
from sfumato.recipe.presets import preset_text
from sfumato.recipe.validate import SECTIONS

__all__ = ["recipe_routes", "recipe_state"]


def recipe_state(project: RecipeProject) -> RecipeState:
    """The recipe with its problems and its history."""
    text = project.text()
    history = project.history
    undo, redo = history.undo_target(), history.redo_target()
    current = history.current
    return RecipeState(
        text=text,
        version=text_version(text or ""),
        path=str(project.recipe_path),
        document=_json(project.document()),
        problems=[{"line": p.line, "where": p.where, "message": p.message} for p in project.problems()],
        branch=history.branch,
        branches=list(history.branches()),
        undo=current.change if undo is not None and current is not None else None,
        redo=redo.change if redo is not None else None,
        recent=[VersionEntry(number=v.number, change=v.change, at=v.at) for v in history.recent()],
    )


def _json(value: Any) -> Any:
    """Plain data without dates, which YAML has and JSON lacks."""
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def recipe_routes(workspace: AppWorkspace) -> APIRouter:
    """The routes under ``/api/recipe``. Every one that changes the recipe returns its new state."""
    router = APIRouter(prefix="/api/recipe", tags=["recipe"])

    @router.get("")
    def get() -> RecipeState:
        return recipe_state(workspace.need())

    @router.put("/text")
    def text(edit: TextEdit) -> RecipeState:
        workspace.need().edit("edited the text", lambda _: edit.text, version=edit.version)
        return recipe_state(workspace.need())

    @router.post("/section")
    def section(edit: SectionEdit) -> RecipeState:
        project = workspace.need()
        project.edit(f"changed {edit.key}", lambda old: set_section(old, edit.key, edit.value), version=edit.version)
        return recipe_state(project)

    @router.post("/column")
    def column(edit: ColumnEdit) -> RecipeState:
        project = workspace.need()

        def change(old: str) -> str:
            return set_column(old, edit.column, edit.key, edit.value)

        project.edit(f"changed {edit.key} of {edit.column}", change, version=edit.version)
        return recipe_state(project)

    @router.post("/decide")
    def decisions(edit: DecideRequest) -> RecipeState:
        project = workspace.need()
        names = ", ".join([*edit.roles, *(["the rest"] if edit.rest else [])])

        def change(old: str) -> str:
            return decide(old, edit.roles, rest=edit.rest, by=edit.by, reason=edit.reason or None, new=True)

        project.edit(f"decided {names}", change, version=edit.version)
        return recipe_state(project)

    @router.post("/preset")
    def preset(name: BranchRequest) -> RecipeState:
        project = workspace.need()
        document = parse_yaml(preset_text(name.name)).value
        roles = {
            column: setting.get("role") if isinstance(setting, dict) else setting
            for column, setting in project.document().get("columns", {}).items()
        }
        sensitive = [str(column) for column, role in roles.items() if role == "sensitive"]

        def change(text: str) -> str:
            for key in (*SECTIONS, "limits"):
                value = document.get(key)
                if key == "models" and value is not None:
                    value = _for_each_sensitive(value, sensitive)
                text = set_section(text, key, value)
            return text

        project.edit(f"preset {name.name}", change)
        return recipe_state(project)

    @router.post("/undo")
    def undo() -> RecipeState:
        workspace.need().move(lambda history: history.undo())
        return recipe_state(workspace.need())

    @router.post("/redo")
    def redo() -> RecipeState:
        workspace.need().move(lambda history: history.redo())
        return recipe_state(workspace.need())

    @router.post("/branch")
    def branch(request: BranchRequest) -> RecipeState:
        workspace.need().history.start_branch(request.name)
        return recipe_state(workspace.need())

    @router.post("/switch")
    def switch(request: BranchRequest) -> RecipeState:
        workspace.need().move(lambda history: history.switch(request.name))
        return recipe_state(workspace.need())

    @router.post("/compare")
    def compare(request: CompareRequest) -> dict[str, list[str]]:
        """Lines in which two branches differ, as in a unified diff."""
        history = workspace.need().history
        one, other = (history.text_of(name).splitlines() for name in (request.one, request.other))
        lines = difflib.unified_diff(one, other, request.one, request.other, lineterm="", n=2)
        return {"lines": list(lines)}

    return router


def _for_each_sensitive(models: list[Any], sensitive: list[str]) -> list[Any]:
    """Models of a preset; one about sensitive values is repeated for each sensitive column."""
    found: list[Any] = []
    for entry in models:
        if isinstance(entry, dict) and "l-diversity" in entry:
            found += [{"l-diversity": {**entry["l-diversity"], "column": name}} for name in sensitive]
        else:
            found.append(entry)
    return found
