"""The masking pipeline: run the steps, remove identifiers, evaluate the privacy models, keep the row map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl

from sfumato.data.declared import refuse_found_types
from sfumato.data.missing import plain_numbers
from sfumato.dataset import Data
from sfumato.dataset.hierarchy import ROOT
from sfumato.masking.base import Context, Step, StoredChange
from sfumato.masking.model import PrivacyModel, about_released, models_of_run
from sfumato.progress import SILENT, Progress
from sfumato.registry import registry
from sfumato.release import Change, Lineage, Verdict
from sfumato.rng import Rng

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """A completed step with its public and private outcome."""

    step: Step
    change: Change | StoredChange

    def public(self) -> dict[str, Any]:
        """Parameters and public outcome, for the manifest."""
        name, truthful = self.step.part_name(), self.step.truthful
        return {"step": name, "parameters": self.step.public(), "truthful": truthful, **self.change.public}

    def private(self) -> dict[str, Any]:
        """Public and private outcome, for the data owner."""
        return {"step": self.step.part_name(), **self.change.public, **self.change.private}


@dataclass(frozen=True, kw_only=True)
class MaskedRun:
    """The steps of a run with their outcomes, and the verdicts on what they guarantee and on the models, wherever the
    rows lie. A release has more verdicts: :func:`sfumato.evaluation.check.run_checks`."""

    steps: tuple[StepResult, ...]
    models: tuple[PrivacyModel, ...] = ()
    """The models of the run: one that names no column is repeated for each sensitive column."""
    step_verdicts: tuple[Verdict, ...] | None = ()
    """What steps guarantee by themselves, counted again in the final table. None: not counted yet."""
    model_verdicts: tuple[Verdict, ...] = ()
    """One for each of the ``models``."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on steps and models."""
        return (*(self.step_verdicts or ()), *self.model_verdicts)

    @property
    def holds(self) -> bool:
        """Whether every model was checked and holds."""
        return all(verdict.holds for verdict in self.verdicts)


@dataclass(frozen=True, kw_only=True)
class MaskingResult(MaskedRun):
    """The masked data set with its row map."""

    data: Data
    lineage: Lineage


def run_steps(
    table: T,
    steps: Sequence[Step],
    models: Sequence[PrivacyModel],
    rng: Rng,
    progress: Progress,
    *,
    apply: Callable[[Step, T, Context], tuple[T, Change | StoredChange]],
    columns: Callable[[T], Data],
    account: tuple[str, str] | None = None,
) -> tuple[T, tuple[StepResult, ...]]:
    """Run the steps in order on a table in memory or in an engine, then remove the identifiers that are left.

    ``apply`` runs one step where the rows lie; ``columns`` gives the columns and types of a table. ``account`` is
    charged by steps with a guarantee. Numbers that a step made have one form each before anything judges them
    (:func:`sfumato.data.missing.plain_numbers`).
    """
    results: list[StepResult] = []

    def run(step: Step) -> None:
        nonlocal table
        position = len(results)
        own = rng.child(position, step.part_name())
        context = Context(rng=own, models=tuple(models), progress=progress, before=position, account=account)
        table, change = apply(step, table, context)
        results.append(StepResult(step=step, change=change))

    for step in steps:
        run(step)
    left = columns(table).removed({name for result in results for name in result.change.touched})
    if left:
        remove = registry("method").get("remove").build({"columns": left})
        assert isinstance(remove, Step)
        run(remove)
    return table, tuple(results)


def protect(
    data: Data,
    *,
    steps: Sequence[Step],
    models: Sequence[PrivacyModel] = (),
    rng: Rng,
    order: str = "shuffled",
    account: tuple[str, str] | None = None,
    progress: Progress = SILENT,
) -> MaskingResult:
    """Run the steps in order, remove remaining identifiers and dropped columns, and evaluate every model.

    Rows are shuffled at the end unless ``order`` is "kept": releases in the row order of the original could be linked
    to each other row by row. A step with a guarantee charges ``account``, a ledger and the data set in it.
    """
    original, lineage = data, Lineage.identity(data.rows)
    data.schema.refuse_suppressed_values(
        [name for name in data.quasi if ROOT in data.load([name]).cast(pl.String)[name]]
    )
    models = models_of_run(models, data.sensitive)
    verdicts: list[Verdict] = []

    def apply(step: Step, table: Data, context: Context) -> tuple[Data, Change]:
        nonlocal lineage
        if step.formal_guarantee:
            refuse_found_types(table.table)
        change = step.apply(table, context)
        lineage = lineage.then(change.rows)
        verdicts.extend(change.verdicts)
        return Data(table=change.table, schema=table.schema).with_frame(plain_numbers(change.table.frame)), change

    data, results = run_steps(
        data, steps, models, rng, progress, apply=apply, columns=lambda table: table, account=account
    )
    if order == "shuffled":
        rows = rng.child("order").generator.permutation(data.rows)
        data = data.with_frame(data.table.frame[rows])
        lineage = lineage.then(rows.astype(np.int64))
    data = data.with_frame(_used_categories(data.table.frame))
    models = about_released(models, data.table.columns)
    # The condition of a model is then one on released values alone: the original is covered by no further charge.
    promise = any(result.change.public.get("formal_guarantee") for result in results)
    return MaskingResult(
        data=data,
        lineage=lineage,
        steps=results,
        models=models,
        step_verdicts=(
            *verdicts,
            *(v for result in results for v in result.step.verify_release(result.public(), data.table.frame)),
        ),
        model_verdicts=tuple(model.check(data, original=None if promise else original) for model in models),
    )


def _used_categories(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop unused categories: the category list would reveal suppressed values."""
    used = []
    for series in frame:
        if isinstance(series.dtype, pl.Enum):
            occurring = set(series.cast(pl.String).drop_nulls().unique())
            kept = pl.Enum([name for name in series.dtype.categories if name in occurring])
            used.append(series.cast(pl.String).cast(kept))
    return frame.with_columns(used) if used else frame
