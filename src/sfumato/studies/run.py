"""Run a study on all cores. Finished cells are kept as files, so that an interrupted study resumes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data import size_hint
from sfumato.data.fingerprint import frame_digest
from sfumato.data.url import file_and_options
from sfumato.dataset import Data
from sfumato.deadline import Deadline
from sfumato.errors import BadParameter, OutOfMemory, OutOfTime, SfumatoError
from sfumato.evaluation import make_release
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.rng import Rng
from sfumato.studies.cell import exceeds_limit, refused_cell
from sfumato.studies.frontier import Study, points_of
from sfumato.studies.plan import StudyPlan
from sfumato.studies.store import CellStore, cell_key
from sfumato.studies.workers import Job, run_jobs


def run_study(
    plan: StudyPlan | str | Path | Mapping[str, object],
    data: object = None,
    *,
    folder: str | Path | None = None,
    workers: int | None = None,
    seconds: float | None = None,
    total: float | None = None,
    progress: Progress = SILENT,
    clock: Callable[[], float] = time.monotonic,
) -> Study:
    """Mask, attack and measure every candidate under every seed.

    With ``folder``, each finished cell is kept there as a file and not run again. A cell is identified by its recipe,
    its seed and the content of the data, so a changed study runs only what changed. ``workers`` is the number of
    processes (all cores if None; 1 runs in this process). ``seconds`` limits each cell and ``total`` the whole study;
    the plan's own limits if None. Candidates that are refused are found before any attack runs.
    """
    if not isinstance(plan, StudyPlan):
        plan = StudyPlan.parse(plan) if isinstance(plan, Mapping) else StudyPlan.load(plan)
    original = _original(plan, data)
    workers = workers or os.cpu_count() or 1
    budget = _Budget(
        seconds=plan.seconds if seconds is None else seconds,
        until=None if (total := plan.total if total is None else total) is None else clock() + total,
        workers=workers,
        clock=clock,
    )
    store = CellStore(Path(folder) / "cells" if folder is not None else None)
    cells, jobs = _known_cells(plan, frame_digest(original.table.frame), store, budget.seconds)
    known = len(cells)
    with progress.task("checking the candidates", len(plan.candidates)) as tick:
        for number, candidate in enumerate(plan.candidates):
            waiting = [job for job in jobs if job.cell[0] == number]
            refusal = refusal_of(plan.recipe_of(candidate), original) if waiting else None
            if refusal is not None:
                for job in waiting:
                    cells[job.cell] = refused_cell(refusal)
                    store.put(job.key, cells[job.cell])
                jobs = [job for job in jobs if job not in waiting]
            tick(1)
    count = len(plan.candidates) * len(plan.seeds)
    with progress.task("study", count) as tick, ExitStack() as open_tasks:
        tick(count - len(jobs))
        shown: dict[tuple[int, int], ExitStack] = {}

        def started(job: Job) -> None:
            shown[job.cell] = open_tasks.enter_context(ExitStack())
            shown[job.cell].enter_context(progress.task(f"  {job.name}", None))

        for job, cell in run_jobs(
            jobs, original, n_targets=plan.n_targets, workers=workers, allowance=budget.share, started=started
        ):
            if cell is not None:
                store.put(job.key, cell)
            cells[job.cell] = cell if cell is not None else refused_cell(_NO_TIME)
            shown.pop(job.cell).close()
            tick(1)
    return Study(plan=plan, points=points_of(plan, cells), resumed=known)


_NO_TIME = OutOfTime("Not run: the time for the whole study was used up.", fix="Allow more with `total`; run it again.")


def _original(plan: StudyPlan, data: object) -> Data:
    source = data if data is not None else (plan.recipe.source.location if plan.recipe.source else None)
    if source is None:
        raise BadParameter("`data` is required.", fix="Add `data:` to the study, or pass a file or a table.")
    options = dict(plan.recipe.source.options) if data is None and plan.recipe.source else {}
    file = Path(file_and_options(source)[0]) if isinstance(source, str | Path) else None
    if file is not None and file.is_file() and not (hint := size_hint(file)).fits:
        raise OutOfMemory(
            f"A study masks and attacks its table many times in memory: {source} needs about "
            f"{hint.in_memory / 1e9:,.1f} GB, and {hint.available / 1e9:,.1f} GB are available.",
            fix="Study a sample of the rows; `sfumato protect` then masks the whole file with an engine.",
        )
    steps = [step for candidate in plan.candidates for step in candidate.steps]
    return replace(plan.recipe, steps=steps).open(source.table if isinstance(source, Data) else source, **options)


@dataclass(frozen=True, kw_only=True)
class _Budget:
    """The time limits of a study."""

    seconds: float | None
    until: float | None
    workers: int
    clock: Callable[[], float]

    def share(self, left: int) -> float | None:
        """Seconds for the next of ``left`` cells: an equal share of the time that is left for all of them."""
        if self.until is None:
            return self.seconds
        own = max(0.0, self.until - self.clock()) * min(self.workers, left) / left
        return own if self.seconds is None else min(own, self.seconds)


def _known_cells(
    plan: StudyPlan, content: str, store: CellStore, seconds: float | None
) -> tuple[dict[tuple[int, int], dict[str, object]], list[Job]]:
    """The finished cells, and those that are still to run."""
    cells, jobs = {}, []
    for number, candidate in enumerate(plan.candidates):
        for seed in plan.seeds:
            recipe = replace(plan.recipe_of(candidate, seed), source=None)
            key = cell_key(recipe, n_targets=plan.n_targets, data=content)
            name = candidate.name + (f", seed {seed}" if len(plan.seeds) > 1 else "")
            finished = store.get(key)
            if finished is not None and _still_valid(finished, plan.recipe.limits.risk, seconds):
                cells[number, seed] = finished
            else:
                jobs.append(Job(cell=(number, seed), name=name, recipe=recipe, key=key))
    return cells, jobs


def _still_valid(cell: Mapping[str, Any], limit: float | None, seconds: float | None) -> bool:
    """Whether a finished cell is what a new run would give.

    A cell that ran out of time is run again if there is more time now, and one whose attacks were skipped beyond an
    earlier limit if it is not beyond the present one.
    """
    if (cell["stopped"] or cell["partial"]) and (seconds is None or seconds > cell["allowed"]):
        return False
    return not cell["skipped"] or exceeds_limit(cell["attacks"], limit)


_SAMPLE = 200
_SECONDS = 5.0
"""A candidate that takes longer is not judged here."""


def refusal_of(recipe: Recipe, data: Data) -> SfumatoError | None:
    """The refusal of a candidate whose steps cannot run on the data, or None.

    The steps are tried on a few rows. A refusal there may be due to the few rows, so it is confirmed on all rows. None
    therefore proves nothing: a candidate may still be refused when it runs.
    """
    if data.rows > _SAMPLE:
        rows = pl.Series(range(0, data.rows, data.rows // _SAMPLE))
        few = Data.of(data.table.with_frame(data.table.frame[rows]), recipe.schema)
        if _try(recipe, few) is None:
            return None
    return _try(recipe, data)


def _try(recipe: Recipe, data: Data) -> SfumatoError | None:
    try:
        make_release(
            recipe.uncharged(), data, rng=Rng(recipe.seed), progress=Deadline(until=time.monotonic() + _SECONDS)
        )
    except OutOfTime:
        return None
    except SfumatoError as refusal:
        return refusal
    return None
