"""Run a study on all cores. Finished cells are kept as files, so that an interrupted study resumes.

Processes come from the standard library. joblib is not a dependency of the core, and it neither limits Polars to one
thread per process nor ends workers whose parent was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl

from sfumato import __version__
from sfumato.data import read
from sfumato.data.atomic import replacing
from sfumato.data.table import Table
from sfumato.errors import BadParameter
from sfumato.profiling.undecided import refuse_undecided
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.schema import Dataset
from sfumato.studies.cell import run_cell
from sfumato.studies.frontier import Study, points_of
from sfumato.studies.plan import StudyPlan

__all__ = ["run_study"]

_THREAD_VARIABLES = (
    "POLARS_MAX_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def run_study(
    plan: StudyPlan | str | Path | Mapping[str, Any],
    data: Any = None,
    *,
    folder: str | Path | None = None,
    workers: int | None = None,
    progress: Progress = SILENT,
) -> Study:
    """Mask, attack and measure every candidate under every seed.

    With ``folder``, each finished cell is kept there as a file and not run again. A cell is identified by its recipe,
    its seed and the content of the data, so a changed study runs only what changed. ``workers`` is the number of
    processes (all cores if None; 1 runs in this process).
    """
    study_plan = (
        plan
        if isinstance(plan, StudyPlan)
        else (StudyPlan.parse(plan) if isinstance(plan, Mapping) else StudyPlan.load(plan))
    )
    source = data if data is not None else (study_plan.recipe.source.location if study_plan.recipe.source else None)
    if source is None:
        raise BadParameter("`data` is required.", fix="Add `data:` to the study, or pass a file or a table.")
    options = dict(study_plan.recipe.source.options) if data is None and study_plan.recipe.source else {}
    table = source.table if isinstance(source, Dataset) else read(source, **options)
    original = Dataset.of(table, study_plan.recipe.schema)
    refuse_undecided(study_plan.recipe.schema, original.table.frame, recipe=study_plan.recipe.path)
    content = fingerprint(original.table.frame)
    store = _Store(Path(folder) / "cells" if folder is not None else None)
    cells: dict[tuple[int, int], dict[str, Any]] = {}
    todo: list[tuple[tuple[int, int], dict[str, Any], str]] = []
    for number, candidate in enumerate(study_plan.candidates):
        for seed in study_plan.seeds:
            recipe = study_plan.recipe_of(candidate, seed).to_dict()
            recipe.pop("data", None)
            key = _digest({"recipe": recipe, "tries": study_plan.n_targets, "data": content, "sfumato": __version__})
            finished = store.get(key)
            if finished is None:
                todo.append(((number, seed), recipe, key))
            else:
                cells[number, seed] = finished
    with progress.task("study", len(study_plan.candidates) * len(study_plan.seeds)) as tick:
        tick(len(cells))
        for cell_id, key, cell in _run_cells(
            todo, original.table, study_plan.n_targets, workers or os.cpu_count() or 1
        ):
            store.put(key, cell)
            cells[cell_id] = cell
            tick(1)
    return Study(
        plan=study_plan,
        points=points_of(study_plan, cells),
        resumed=len(study_plan.candidates) * len(study_plan.seeds) - len(todo),
    )


def fingerprint(frame: pl.DataFrame) -> str:
    """SHA-256 of the content of a table: names, types and values."""
    digest = hashlib.sha256(repr(dict(frame.schema)).encode())
    sink = _Hashing(digest.update)
    frame.write_ipc(sink, compression="uncompressed")  # type: ignore[call-overload]
    return digest.hexdigest()


class _Hashing:
    """A file object that hashes what is written to it."""

    def __init__(self, update: Callable[[bytes], None]) -> None:
        self._update = update
        self._position = 0

    def write(self, data: bytes) -> int:
        self._update(bytes(data))
        self._position += len(data)
        return len(data)

    def flush(self) -> None:
        pass

    def tell(self) -> int:
        return self._position


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


class _Store:
    """Finished cells as files, written atomically."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> dict[str, Any] | None:
        path = self.folder / f"{key[:32]}.json" if self.folder is not None else None
        if path is None or not path.exists():
            return None
        try:
            cell: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            return None
        return cell

    def put(self, key: str, cell: Mapping[str, Any]) -> None:
        if self.folder is not None:
            with replacing(self.folder / f"{key[:32]}.json", force=True) as path:
                path.write_text(json.dumps(cell, allow_nan=False), encoding="utf-8")


def _run_cells(
    todo: list[tuple[tuple[int, int], dict[str, Any], str]], table: Table, n_targets: int, workers: int
) -> Iterator[tuple[tuple[int, int], str, dict[str, Any]]]:
    workers = min(workers, len(todo))
    if workers <= 1:
        for cell_id, recipe, key in todo:
            parsed = Recipe.parse(recipe)
            yield cell_id, key, run_cell(parsed, Dataset.of(table, parsed.schema), n_targets=n_targets)
        return
    pool = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(table.frame, os.getpid())
    )
    try:
        with _single_threaded(), _without_script():  # each submission may start a process
            waiting = {pool.submit(_run_recipe, recipe, n_targets): (cell_id, key) for cell_id, recipe, key in todo}
        for future in as_completed(waiting):
            cell_id, key = waiting[future]
            yield cell_id, key, future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes started in this block use one thread each: the cells run in parallel."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _without_script() -> Iterator[None]:
    """Processes started in this block do not import the caller's script."""
    script = sys.modules.get("__main__")
    hidden = {name: getattr(script, name) for name in ("__file__", "__spec__") if hasattr(script, name)}
    for name in hidden:
        setattr(script, name, None)
    try:
        yield
    finally:
        for name, value in hidden.items():
            setattr(script, name, value)


_DATA: dict[str, pl.DataFrame] = {}


def _start_worker(frame: pl.DataFrame, parent: int) -> None:
    _DATA["frame"] = frame
    Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: int) -> None:
    """End a worker whose parent process was killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _run_recipe(recipe: dict[str, Any], n_targets: int) -> dict[str, Any]:
    parsed = Recipe.parse(recipe)
    return run_cell(parsed, Dataset.of(Table(frame=_DATA["frame"]), parsed.schema), n_targets=n_targets)
