"""Worker processes that run the cells of a study.

Processes come from the standard library. joblib is not a dependency of the core, and it neither limits Polars to one
thread per process nor ends workers whose parent was killed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from threading import Thread
from typing import Any

import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Data
from sfumato.recipe import Recipe
from sfumato.studies.cell import run_cell

_THREAD_VARIABLES = (
    "POLARS_MAX_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One cell to run."""

    cell: tuple[int, int]
    """Number of the candidate, and the seed."""
    name: str
    recipe: Recipe
    key: str


Allowance = Callable[[int], float | None]
"""Seconds for the next cell, given how many are left with it; None is no limit, 0 means that no time is left."""
Finished = tuple[Job, dict[str, Any] | None]
"""A cell and its result; None if no time was left for it."""


def run_jobs(
    jobs: list[Job],
    original: Data,
    *,
    n_targets: int,
    workers: int,
    allowance: Allowance,
    started: Callable[[Job], None],
) -> Iterator[Finished]:
    """Run cells in order, ``workers`` at a time, and yield each when it is finished."""
    if min(workers, len(jobs)) <= 1:
        for number, job in enumerate(jobs):
            seconds = allowance(len(jobs) - number)
            started(job)
            yield job, None if seconds == 0 else run_cell(job.recipe, original, n_targets=n_targets, seconds=seconds)
        return
    pool = ProcessPoolExecutor(
        min(workers, len(jobs)),
        mp_context=get_context("spawn"),
        initializer=_start_worker,
        initargs=(original.table.frame, os.getpid()),
    )
    try:
        yield from _run_parallel(pool, jobs, n_targets, min(workers, len(jobs)), allowance, started)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _run_parallel(
    pool: ProcessPoolExecutor,
    jobs: list[Job],
    n_targets: int,
    workers: int,
    allowance: Allowance,
    started: Callable[[Job], None],
) -> Iterator[Finished]:
    queue = list(reversed(jobs))
    running: dict[Future[dict[str, object]], Job] = {}
    while queue or running:
        while queue and len(running) < workers:  # no more than can run, so that those that are running are known
            seconds = allowance(len(queue))
            job = queue.pop()
            started(job)
            if seconds == 0:
                yield job, None
                continue
            with _single_threaded(), _without_script():  # each submission may start a process
                running[pool.submit(_run_recipe, job.recipe.to_dict(), n_targets, seconds)] = job
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()


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


_DATA: dict[str, Any] = {}
"""The table of a worker process, and the same with roles, which all cells share."""


def _start_worker(frame: pl.DataFrame, parent: int) -> None:
    _DATA["frame"] = frame
    Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: int) -> None:
    """End a worker whose parent process was killed."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _run_recipe(recipe: dict[str, object], n_targets: int, seconds: float | None) -> dict[str, object]:
    parsed = Recipe.parse(recipe)
    if "dataset" not in _DATA:
        _DATA["dataset"] = Data.of(Table(frame=_DATA["frame"]), parsed.schema)
    return run_cell(parsed, _DATA["dataset"], n_targets=n_targets, seconds=seconds)
