"""Verdicts of privacy models on a file of any size, from a GROUP BY over the values it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato.dataset import BoundHierarchy, Role, Schema
from sfumato.engines.choice import masking_engine
from sfumato.engines.engine import Engine
from sfumato.errors import HierarchyGap, NotApplicable
from sfumato.masking.evaluate import evaluate_classes, not_checked
from sfumato.masking.model import PrivacyModel
from sfumato.masking.out_of_core.counting import coded_column, count_combinations
from sfumato.masking.out_of_core.counts import CodedColumn, classes_of_release, tracked_columns
from sfumato.masking.out_of_core.stored_table import StoredTable
from sfumato.progress import SILENT, Progress
from sfumato.release import Verdict

__all__ = ["Reference", "check_file", "judge_table", "references_of"]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The values of a sensitive column in the original, and how often each occurs: models compare with these."""

    hierarchy: BoundHierarchy
    totals: npt.NDArray[np.int64]


def check_file(
    path: str | Path,
    *,
    schema: Schema,
    models: Sequence[PrivacyModel],
    engine: Engine | str = "duckdb",
    memory: str = "4GB",
    threads: int | None = None,
    temporary: Path | None = None,
    progress: Progress = SILENT,
) -> tuple[Verdict, ...]:
    """Judge a file of any size by the values it shows; nothing of a search is used.

    Models that compare with the distribution of a whole table take that of this file.
    """
    backend = masking_engine(engine, memory=memory, threads=threads)
    with backend.workspace(path, temporary=temporary, progress=progress) as workspace:
        return judge_table(StoredTable.open(workspace, schema, original=False), models)


def references_of(table: StoredTable, models: Sequence[PrivacyModel]) -> dict[str, Reference]:
    """The distribution of every column that the models compare with, in the original."""
    references = {}
    for name in tracked_columns(models, table.empty.sensitive, None):
        counts = table.values(name)
        hierarchy = coded_column(table, name).hierarchy
        codes = hierarchy.encode(counts.get_column("value"))
        totals = np.bincount(codes, weights=counts.get_column("n").to_numpy(), minlength=len(hierarchy.leaves))
        references[name] = Reference(hierarchy=hierarchy, totals=totals.astype(np.int64))
    return references


def judge_table(
    table: StoredTable, models: Sequence[PrivacyModel], references: Mapping[str, Reference] | None = None
) -> tuple[Verdict, ...]:
    """The verdict of each model on a release. Of the original only the ``references`` are used."""
    quasi = table.empty.quasi
    if not quasi:
        reason = "The table has no quasi-identifier column."
        return tuple(not_checked(model, reason) for model in models)
    sensitive = [name for name in table.schema.names(Role.SENSITIVE) if name in table.cells]
    track = [name for name in tracked_columns(models, sensitive, None) if name in table.cells]
    coded = [coded_column(table, name, with_hierarchy=False) for name in quasi]
    usable: dict[str, Reference] = {}
    beside = []
    for name in track:
        column, reference = _against(table, name, (references or {}).get(name))
        beside.append(column)
        if reference is not None:
            usable[name] = reference
    counts = count_combinations(table, coded, beside)
    tracked = {
        name: replace(one, reference=usable[name].totals if name in usable else None)
        for name, one in counts.tracked.items()
    }
    counts = replace(counts, tracked=tracked)
    sample = counts.sample()
    verdicts = []
    for model in models:
        try:
            classes = classes_of_release(counts, model.population_frame(sample))
        except NotApplicable as refusal:
            verdicts.append(not_checked(model, str(refusal)))
            continue
        verdicts.append(evaluate_classes(model, classes, sample))
    return tuple(verdicts)


def _against(table: StoredTable, name: str, reference: Reference | None) -> tuple[CodedColumn, Reference | None]:
    """A sensitive column coded like the original, where its values are still those of the original; else by itself."""
    plain = coded_column(table, name, with_hierarchy=False)
    if reference is not None:
        try:
            reference.hierarchy.encode(plain.values)
            return replace(plain, hierarchy=reference.hierarchy), reference
        except HierarchyGap:
            pass
    try:
        return coded_column(table, name), None
    except HierarchyGap:
        return plain, None
