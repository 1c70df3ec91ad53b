"""Routes of the data: the file chooser, column summaries, pages of rows, uniqueness and hierarchies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from sfumato.app.documents import (
    FileEntry,
    FileList,
    HierarchyRequest,
    OpenRequest,
    ReadingRequest,
    RecordsRequest,
    UniquenessRequest,
)
from sfumato.app.project import RecipeProject
from sfumato.app.workspace import AppWorkspace
from sfumato.data import preview
from sfumato.data.format import format_for
from sfumato.data.url import is_url
from sfumato.dataset import Data, Role, Schema
from sfumato.dataset.hierarchy import hierarchy_from_dict
from sfumato.errors import BadParameter, FileMissing, SfumatoError, UnknownFormat
from sfumato.profiling.detectors.finding import HIPAA


def list_files(folder: Path) -> FileList:
    """Folders, data files and recipes of a folder; hidden ones are left out."""
    entries: list[FileEntry] = []
    try:
        found = sorted(os.scandir(folder), key=lambda entry: (not entry.is_dir(), entry.name.lower()))
    except OSError:
        raise FileMissing("This folder cannot be read.", fix="Choose another folder.") from None
    for entry in found:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            entries.append(FileEntry(name=entry.name, path=entry.path, folder=True))
        elif _can_open(Path(entry.path)):
            entries.append(FileEntry(name=entry.name, path=entry.path, folder=False, size=entry.stat().st_size))
    parent = str(folder.parent) if folder.parent != folder else None
    return FileList(folder=str(folder), parent=parent, entries=entries[:2000])


def _can_open(path: Path) -> bool:
    if path.suffix.lower() in (".yaml", ".yml"):
        return True
    try:
        format_for(path)
    except UnknownFormat:
        return False
    return path.is_file()


def data_routes(workspace: AppWorkspace) -> APIRouter:
    """The routes under ``/api/data``."""
    router = APIRouter(prefix="/api/data", tags=["data"])

    @router.post("/files")
    def files(request: OpenRequest) -> FileList:
        path = Path(request.path).expanduser() if request.path != "." else workspace.folder
        return list_files(path.absolute())

    @router.post("/open")
    def open_file(request: OpenRequest) -> dict[str, str]:
        return {"project": workspace.open(request.path).name}

    @router.post("/demo")
    def demo() -> dict[str, str]:
        """Write the demonstration hospital (synthetic people) into the current folder and open it."""
        from sfumato.data import Table, write
        from sfumato.demos.people import hospital

        folder = workspace.folder / "sfumato-demo"
        folder.mkdir(exist_ok=True)
        file = folder / "hospital.csv"
        if not file.exists():
            write(Table(frame=hospital(1, patients=2_000, town=8_000)), file)
        return {"project": workspace.open(str(file)).name}

    @router.get("/table")
    def table() -> dict[str, Any]:
        """Size and columns of the table."""
        view = workspace.view()
        return {"rows": view.rows, "columns": list(view.columns), "types": view.columns, "problems": view.problems}

    @router.get("/reading")
    def reading() -> dict[str, Any]:
        """How the file is read: the options of its format, those in use, and what the file offers for them."""
        location, options = workspace.need().source()
        if is_url(location):
            return {"format": "", "schema": None, "options": {}}
        chosen = format_for(Path(location))
        schema = chosen.model_json_schema()
        for name, values in chosen.offered(Path(location)).items():
            schema["properties"][name] = {
                "enum": list(values),
                "description": schema["properties"][name]["description"],
            }
        return {"format": chosen.part_name(), "schema": schema, "options": options}

    @router.post("/reading")
    def read_again(request: ReadingRequest) -> dict[str, bool]:
        """Read the file with other options and propose the recipe anew. What cannot be read is refused first."""
        location, _ = workspace.need().source()
        preview(location, most=1000, **request.options)
        workspace.start_profile(options=request.options)
        return {"started": True}

    @router.post("/summary")
    def summary(request: UniquenessRequest) -> list[dict[str, Any]]:
        """Summaries of some columns."""
        return [workspace.summary(name) for name in request.columns]

    @router.get("/rows")
    def rows(offset: int = 0, count: int = 100) -> dict[str, Any]:
        return {"offset": offset, "rows": workspace.view().page(offset, count)}

    @router.post("/records")
    def records(request: RecordsRequest) -> dict[str, Any]:
        """Some rows by number (from 1), for the records at most risk."""
        view = workspace.view()
        return {"columns": list(view.columns), "rows": view.rows_at([number - 1 for number in request.rows])}

    @router.post("/uniqueness")
    def uniqueness(request: UniquenessRequest) -> dict[str, Any]:
        return workspace.view().uniqueness(request.columns)

    @router.get("/profile")
    def profile() -> dict[str, Any]:
        """What `sfumato init` found; empty until the profile is done."""
        found = workspace.need().stored("profile.json")
        return {"proposal": found, "hipaa": dict(HIPAA)}

    @router.get("/hierarchies")
    def hierarchies() -> list[dict[str, Any]]:
        return hierarchy_states(workspace.need())

    @router.post("/hierarchy")
    def hierarchy(request: HierarchyRequest) -> dict[str, Any]:
        return preview_hierarchy(workspace.need(), request.column, request.hierarchy)

    return router


_ROWS = 200_000
_SHOWN = 400
"""Values in a preview."""


def _dataset(project: RecipeProject, columns: list[str] | None = None, **hierarchies: Any) -> Data:
    recipe = project.recipe()
    if recipe is None:
        raise BadParameter("There is no recipe yet.", fix="Wait until the profile is done.")
    location, options = project.source()
    table = preview(location, most=_ROWS, **options).table
    chosen = {n: c for n, c in recipe.schema.columns.items() if n in table.columns and (not columns or n in columns)}
    for name, hierarchy in hierarchies.get("hierarchies", {}).items():
        chosen[name] = chosen[name].model_copy(update={"hierarchy": hierarchy})
    return Data.of(table, Schema(columns=chosen))


def hierarchy_states(project: RecipeProject) -> list[dict[str, object]]:
    """For each quasi-identifier: complete, incomplete, refused (with the reason), or none."""
    dataset = _dataset(project)
    states = []
    for name, column in dataset.schema.columns.items():
        if column.role is not Role.QUASI:
            continue
        state: dict[str, object] = {"column": name, "kind": column.kind, "state": "none", "missing": 0, "levels": 1}
        if column.hierarchy is not None:
            state["rule"] = column.hierarchy.part_name()
            try:
                bound = dataset.bound_hierarchy(name)
                gaps = bound.gaps(dataset.table.column(name))
                state |= {"state": "incomplete" if len(gaps) else "complete", "missing": len(gaps)}
                state["levels"] = bound.height
            except SfumatoError as refusal:
                state |= {"state": "refused", "reason": str(refusal)}
        states.append(state)
    return states


def preview_hierarchy(project: RecipeProject, column: str, setting: object) -> dict[str, object]:
    """The levels of a hierarchy on the values of a column; ``setting`` as a recipe writes it, None for the own one.

    Each line is a value with its label at every level. Values without a place in the hierarchy are listed as gaps.
    """
    recipe = project.recipe()
    declared = recipe.schema.columns.get(column) if recipe is not None else None
    if declared is None:
        raise BadParameter(f"The recipe has no column `{column}`.")
    rule = hierarchy_from_dict(setting, base=project.recipe_path.parent) if setting is not None else declared.hierarchy
    dataset = _dataset(project, [column], hierarchies={column: rule})
    bound = dataset.bound_hierarchy(column)
    values = dataset.table.column(column)
    gaps = bound.gaps(values)
    counts = {str(value): count for value, count in values.drop_nulls().value_counts(sort=True).iter_rows()}
    rows = bound.rows()
    present = [row for row in rows if row[0] in counts] or rows
    return {
        "levels": [
            {"level": number, "groups": level.size, "largest": int(level.leaves_under.max(initial=0))}
            for number, level in enumerate(bound.levels)
        ],
        "rows": present[:_SHOWN],
        "counts": [counts.get(row[0], 0) for row in present[:_SHOWN]],
        "values": len(rows),
        "gaps": [str(value) for value in gaps.sort().head(_SHOWN)],
        "missing": len(gaps),
    }
