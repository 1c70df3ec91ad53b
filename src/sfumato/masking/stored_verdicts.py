"""Verdicts of privacy models on a table in an engine, from a GROUP BY over the values it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.rows import RowGroups
from sfumato.engines.stored_table import StoredTable
from sfumato.errors import NotApplicable
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.masking.evaluate import (
    classes_as_shown,
    evaluate_classes,
    not_checked,
    reference_of,
    rows_without_values,
)
from sfumato.masking.model import PrivacyModel
from sfumato.masking.stored_classes import CodedColumn, coded_column, count_classes, tracked_columns
from sfumato.release import Verdict

__all__ = ["judge_table", "value_counts"]


def value_counts(table: StoredTable, models: Sequence[PrivacyModel]) -> dict[str, RowGroups]:
    """How often each value occurs, of every column that the models compare with."""
    names = tracked_columns(models, table.empty.sensitive, None)
    return {name: table.group([name]) for name in names if name in table.cells}


def judge_table(
    table: StoredTable, models: Sequence[PrivacyModel], originals: Mapping[str, RowGroups] | None = None
) -> tuple[Verdict, ...]:
    """The verdict of each model on a release. Of the original only the counts of values are used, where given."""
    quasi = table.empty.quasi
    if not quasi:
        reason = "The table has no quasi-identifier column."
        return tuple(not_checked(model, reason) for model in models)
    totals, beside = {}, []
    for name, shown in value_counts(table, models).items():
        hierarchy, totals[name] = reference_of(name, table.schema, shown, (originals or {}).get(name))
        beside.append(CodedColumn(name=name, values=shown.values.to_series(), hierarchy=hierarchy))
    coded = [coded_column(table, name, with_hierarchy=False) for name in quasi]
    classes = count_classes(table, coded, beside)
    tracked = {name: replace(column, reference=totals[name]) for name, column in classes.tracked.items()}
    classes = replace(classes, tracked=tracked)
    sample = classes.combinations(table.schema, most=1)
    verdicts = []
    for model in models:
        try:
            shown_classes = _as_shown(classes, table.schema, model.population_frame(sample))
        except NotApplicable as refusal:
            verdicts.append(not_checked(model, str(refusal)))
            continue
        verdicts.append(evaluate_classes(model, shown_classes, sample))
    return tuple(verdicts)


def _as_shown(classes: EquivalenceClasses, schema: Schema, population: pl.DataFrame | None) -> EquivalenceClasses:
    """The classes of a release by the values it shows. Combinations that show nothing are suppressed rows."""
    shown = classes.combinations(schema)
    hidden = rows_without_values(
        shown.table.frame, classes.columns, {name: schema.column(name).missing for name in classes.columns}
    )
    kept = classes if hidden.all() else classes.take(~hidden)
    if population is None:
        return kept
    columns = {name: Column(role=Role.QUASI, hierarchy=schema.column(name).hierarchy) for name in kept.columns}
    rows = Data(table=kept.combinations(schema).table, schema=Schema(columns=columns))
    return kept.spread_over(classes_as_shown(rows, population=population))
