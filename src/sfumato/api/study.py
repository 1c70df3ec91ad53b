"""``sfumato.study``: compare candidate releases by risk and utility."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sfumato.errors import OutputExists
from sfumato.progress import AUTO, Progress
from sfumato.studies import Study, StudyPlan, run_study
from sfumato.studies.folder import save_study


def study(
    plan: StudyPlan | str | Path | Mapping[str, object],
    data: object = None,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    seconds: float | None = None,
    total: float | None = None,
    progress: Progress = AUTO,
) -> Study:
    """Mask, attack and measure every candidate of a plan under every seed, and compare risk with utility.

    Parameters
    ----------
    plan
        A :class:`StudyPlan`, a path, or a mapping: a recipe with a ``study`` key.
    data
        A path, a database URL, or a table. The plan's own ``data`` if left out.
    out
        Folder for the page, the table and the recipes of all candidates. Finished runs are kept there, so that the same
        call continues after an interruption and runs only what changed.
    workers
        Number of processes; all cores if left out, 1 runs in this process.
    seconds, total
        Time limits of each run (a candidate under one seed) and of the whole study; the plan's own if left out. Cheap
        attacks run first. A candidate with an attack that ran out of time is never recommended.

    Returns
    -------
    Study
        ``points``, ``frontier``, ``recommend(risk=...)``, ``to_frame()``.
    """
    if out is not None:
        folder = Path(out)
        if folder.exists() and not (folder / "cells").is_dir() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputExists(
                f"{folder} exists already and is not a study.", fix="Choose another folder: `out`.", option="out"
            )
    result = run_study(plan, data, folder=out, workers=workers, seconds=seconds, total=total, progress=progress)
    if out is not None:
        save_study(result, out)
    return result
