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
from sfumato.app.hierarchy_preview import hierarchy_states, preview_hierarchy
from sfumato.app.workspace import AppWorkspace
from sfumato.data import preview
from sfumato.data.format import format_for
from sfumato.data.url import is_url
from sfumato.errors import FileMissing, UnknownFormat
from sfumato.profiling.detectors.finding import HIPAA

__all__ = ["data_routes", "list_files"]


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
