"""The published steps, run again by the intruder on a file like the original."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.attack.attack import View
from tacit.errors import NotApplicable, OutOfTime, TacitError
from tacit.progress import SILENT, Progress
from tacit.protect.step import Context, Step
from tacit.registry import registry
from tacit.rng import Rng
from tacit.schema import Column, Dataset, Role, Schema

__all__ = ["SIMULATED", "like_the_release", "mask_again", "proxy", "runnable_steps", "steps_on"]

SIMULATED = frozenset(
    {"rank-swap", "noise", "microaggregate", "pram", "round", "swap", "shift-dates", "top-bottom-code", "recode"}
)
"""Methods that move values and can be run again by whoever knows their parameters."""

_SILENT_STEPS = frozenset({"remove", "pseudonymize"})
"""Steps that leave the values of quasi-identifiers alone."""


def runnable_steps(view: View) -> list[Step]:
    """The published steps, made runnable on the columns the intruder knows; refused when there are none."""
    found = steps_on(view, view.knows)
    if not found:
        raise NotApplicable("No published step changes values, so there is nothing to simulate; use `linkage`.")
    return found


def steps_on(view: View, columns: tuple[str, ...], *, moving: Collection[str] | None = None) -> list[Step]:
    """The published steps that change one of the columns ``moving``, made runnable on these columns."""
    if not view.steps:
        raise NotApplicable("The release does not say how it was made, or the intruder does not know it.")
    found: list[Step] = []
    for step in view.steps:
        if step["step"] in _SILENT_STEPS or not set(step.get("columns", columns)) & set(moving or columns):
            continue
        try:
            part = registry("method").get(step["step"]).build(_known_part(step, columns))
        except TacitError as refusal:
            raise NotApplicable(f"The published step `{step['step']}` cannot be simulated: {refusal}") from None
        assert isinstance(part, Step)
        found.append(part)
    return found


def _known_part(step: Mapping[str, Any], knows: tuple[str, ...]) -> dict[str, Any]:
    """The step's parameters, with columns that the intruder does not know left out."""
    parameters = dict(step.get("parameters", {}))
    if parameters.get("groups"):
        groups = [
            {**group, "columns": [name for name in group["columns"] if name in knows]} for group in parameters["groups"]
        ]
        parameters["groups"] = [group for group in groups if group["columns"]]
    elif step.get("columns") and "columns" in registry("method").get(step["step"]).model_fields:
        parameters["columns"] = [name for name in step["columns"] if name in knows]
    return parameters


def proxy(view: View) -> Dataset:
    """A file like the original: the intruder's own, when it is large enough to be like it, else the release."""
    many = view.targets.height >= max(200, view.release.table.rows // 2)
    return _stand_in(view, view.targets, view.knows) if many else like_the_release(view, view.knows)


def like_the_release(view: View, columns: tuple[str, ...]) -> Dataset:
    """The release in place of the original: for columns that the intruder knows of nobody."""
    return _stand_in(view, view.release.table.frame, columns)


def _stand_in(view: View, frame: pl.DataFrame, columns: tuple[str, ...]) -> Dataset:
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in columns})
    return Dataset(table=view.release.table.with_frame(frame.select(columns)), schema=schema)


def mask_again(
    data: Dataset, steps: list[Step], rng: Rng, progress: Progress = SILENT
) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
    """Run the steps once; the masked values and, per row, the row it came from."""
    origin = np.arange(data.rows, dtype=np.int64)
    for number, step in enumerate(steps):
        try:
            change = step.apply(data, Context(rng=rng.child(number), progress=progress))
        except OutOfTime:
            raise
        except TacitError as refusal:
            raise NotApplicable(
                f"The published step `{step.part_name()}` cannot be simulated on what the intruder knows: {refusal}"
            ) from None
        if change.rows is not None:
            origin = np.where(change.rows >= 0, origin[change.rows], -1)
        data = Dataset(table=change.table, schema=data.schema)
    kept = origin >= 0
    return data.table.frame.filter(pl.Series(kept)), origin[kept]
