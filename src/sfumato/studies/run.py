"""Run a study on all cores. Every finished cell is a file, so that an interrupted study continues.

The processes are those of the standard library: joblib is not a dependency of the core, and one thread per process for
Polars and the end of workers whose parent was killed would have to be added to it by hand as well.
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
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.schema import Dataset
from sfumato.studies.cell import run_cell
from sfumato.studies.frontier import Study, points_of
from sfumato.studies.plan import StudyPlan

__all__ = ["run_study"]

_SINGLE = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


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
    made = (
        plan
        if isinstance(plan, StudyPlan)
        else (StudyPlan.parse(plan) if isinstance(plan, Mapping) else StudyPlan.load(plan))
    )
    source = data if data is not None else (made.recipe.source.location if made.recipe.source else None)
    if source is None:
        raise BadParameter("The study names no data and none was passed.", fix="Add `data:` to it, or name a file.")
    options = dict(made.recipe.source.options) if data is None and made.recipe.source else {}
    table = source.table if isinstance(source, Dataset) else read(source, **options)
    original = Dataset.of(table, made.recipe.schema)
    content = fingerprint(original.table.frame)
    store = _Store(Path(folder) / "cells" if folder is not None else None)
    cells: dict[tuple[int, int], dict[str, Any]] = {}
    todo: list[tuple[tuple[int, int], dict[str, Any], str]] = []
    for number, candidate in enumerate(made.candidates):
        for seed in made.seeds:
            recipe = made.recipe_of(candidate, seed).to_dict()
            recipe.pop("data", None)
            key = _digest({"recipe": recipe, "tries": made.n_targets, "data": content, "sfumato": __version__})
            kept = store.get(key)
            if kept is None:
                todo.append(((number, seed), recipe, key))
            else:
                cells[number, seed] = kept
    with progress.task("study", len(made.candidates) * len(made.seeds)) as tick:
        tick(len(cells))
        for place, key, cell in _finished(todo, original.table, made.n_targets, workers or os.cpu_count() or 1):
            store.put(key, cell)
            cells[place] = cell
            tick(1)
    return Study(plan=made, points=points_of(made, cells), resumed=len(made.candidates) * len(made.seeds) - len(todo))


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
        self._place = 0

    def write(self, data: bytes) -> int:
        self._update(bytes(data))
        self._place += len(data)
        return len(data)

    def flush(self) -> None:
        pass

    def tell(self) -> int:
        return self._place


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


class _Store:
    """Finished cells as files, written whole or not at all."""

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


def _finished(
    todo: list[tuple[tuple[int, int], dict[str, Any], str]], table: Table, n_targets: int, workers: int
) -> Iterator[tuple[tuple[int, int], str, dict[str, Any]]]:
    workers = min(workers, len(todo))
    if workers <= 1:
        for place, recipe, key in todo:
            parsed = Recipe.parse(recipe)
            yield place, key, run_cell(parsed, Dataset.of(table, parsed.schema), n_targets=n_targets)
        return
    pool = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_begin, initargs=(table.frame, os.getpid())
    )
    try:
        with _single_threaded(), _without_script():  # each submission may start a process
            waiting = {pool.submit(_work, recipe, n_targets): (place, key) for place, recipe, key in todo}
        for future in as_completed(waiting):
            place, key = waiting[future]
            yield place, key, future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes started in this block use one thread each: the cells run in parallel."""
    before = {name: os.environ.get(name) for name in _SINGLE}
    os.environ.update(dict.fromkeys(_SINGLE, "1"))
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


def _begin(frame: pl.DataFrame, parent: int) -> None:
    _DATA["frame"] = frame
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End a worker whose parent process was killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _work(recipe: dict[str, Any], n_targets: int) -> dict[str, Any]:
    parsed = Recipe.parse(recipe)
    return run_cell(parsed, Dataset.of(Table(frame=_DATA["frame"]), parsed.schema), n_targets=n_targets)
