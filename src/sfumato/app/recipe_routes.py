"""Routes of the recipe: text, sections, columns, decisions, presets, undo, redo and branches."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import date
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
from sfumato.dataset import Role
from sfumato.errors import NotApplicable
from sfumato.profiling.safe_harbor import safe_harbor_plan
from sfumato.recipe.decide import decide
from sfumato.recipe.edit import set_column, set_section
from sfumato.recipe.presets import preset_text
from sfumato.recipe.validate import SECTIONS


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


def _json(value: object) -> object:
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
        extra = [*(["the rest"] if edit.rest else []), *(["what is accepted"] if edit.accept else [])]
        extra += ["whose rows they are"] if edit.unit is not None else []
        extra += ["k"] if edit.k is not None else []
        names = ", ".join([*edit.roles, *extra])

        def change(old: str) -> str:
            return decide(
                old, edit.roles, rest=edit.rest, accept=edit.accept, unit=edit.unit, k=edit.k, by=edit.by,
                reason=edit.reason or None, new=True,
            )  # fmt: skip

        project.edit(f"decided {names}", change, version=edit.version)
        return recipe_state(project)

    @router.post("/preset")
    def preset(name: BranchRequest) -> RecipeState:
        project = workspace.need()
        document = parse_yaml(preset_text(name.name)).value
        roles = {
            str(column): Role(setting.get("role", "undecided") if isinstance(setting, dict) else setting)
            for column, setting in project.document().get("columns", {}).items()
        }
        columns = _fitted(document, roles, project.stored("profile.json"))

        def change(text: str) -> str:
            for key in (*SECTIONS, "limits"):
                text = set_section(text, key, document.get(key))
            for column, settings in columns.items():
                for key, value in settings.items():
                    text = set_column(text, column, key, value)
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


def _fitted(preset: dict[str, Any], roles: Mapping[str, Role], profile: Any) -> Mapping[str, Mapping[str, Any]]:
    """Complete the models and steps of a preset for the columns of a table; new settings of columns are returned.

    ``safe-harbor`` names the columns that the profile recognized.
    """
    models: list[Any] = []
    columns: Mapping[str, Mapping[str, Any]] = {}
    for entry in preset.get("models", ()):
        if "safe-harbor" in entry:
            if not profile:
                raise NotApplicable(
                    "The columns have not been examined yet.", fix="Wait until the profile of the file is ready."
                )
            detected = {one["column"]: one["detector"] for one in profile["columns"]}
            recognized = {name: (detected[name], role) for name, role in roles.items() if name in detected}
            plan = safe_harbor_plan(recognized, year=date.today().year)
            columns = plan.columns
            models += [{"safe-harbor": dict(plan.model)}] if plan.model else []
            for step in preset["steps"]:
                step["generalize"]["lowest"] = dict(plan.lowest)
        else:
            models.append(entry)
    preset["models"] = models
    return columns
