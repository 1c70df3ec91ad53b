"""Evaluate privacy models on a table as released: equivalence classes are rows with equal released values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.hierarchy import ROOT, BoundHierarchy, root_only, with_missing
from sfumato.dataset.rows import RowGroups
from sfumato.errors import HierarchyGap, NotApplicable
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses, compress
from sfumato.masking.wildcard_matching import wildcard_sums
from sfumato.release import Verdict

if TYPE_CHECKING:
    from sfumato.masking.model import ModelRule, PrivacyModel


def evaluate_model(model: PrivacyModel, data: Data, *, original: Data | None = None) -> Verdict:
    """The verdict of a model on a table. A model that cannot be evaluated is "not checked", with a reason."""
    if not data.quasi:
        return not_checked(model, "The table has no quasi-identifier column.")
    try:
        table = classes_as_shown(data, original=original, population=model.population_frame(data))
    except NotApplicable as refusal:
        return not_checked(model, str(refusal))
    return evaluate_classes(model, table, data)


def not_checked(model: PrivacyModel, reason: str) -> Verdict:
    """The verdict of a model that could not be evaluated, with the reason."""
    return Verdict.not_checked(model.part_name(), reason, column=getattr(model, "column", None))


def evaluate_classes(model: PrivacyModel, table: EquivalenceClasses, data: Data) -> Verdict:
    """The verdict on counted classes; ``data`` defines the meaning of empty cells."""
    try:
        rule = model.bind(table)
    except NotApplicable as refusal:
        return not_checked(model, str(refusal))
    if table.rows == 0:
        return not_checked(model, "Every row is suppressed, so there is no equivalence class.")
    try:
        passed, worst, rows, holds = _evaluated(rule, table, data)
    except NotApplicable as refusal:
        return not_checked(model, str(refusal))
    return Verdict.of_classes(
        model.part_name(),
        failed=int((~passed).sum()),
        classes=len(passed),
        failing=int(rows[~passed].sum()),
        rows=int(rows.sum()),
        together=holds or not passed.all(),
        worst=_plain(worst),
        wanted=_plain(rule.wanted),
        column=getattr(model, "column", None),
    )


def _evaluated(
    rule: ModelRule, table: EquivalenceClasses, data: Data
) -> tuple[npt.NDArray[np.bool_], float, npt.NDArray[np.int64], bool]:
    """Which classes pass, the worst value, the rows per class, and whether the whole table holds."""
    chosen = np.ones(len(table), dtype=np.bool_) if rule.about_absent else table.sizes > 0
    if not rule.columns or _overlaps(table, data).any():
        groups = wildcard_groups(table, data, columns=rule.columns).take(chosen)
        passed = rule.passes(groups) & (groups.sizes >= rule.min_class_size)
        return passed, rule.worst(groups), table.sizes[chosen], bool(passed.all()) and rule.table_holds(groups)
    good = np.zeros(len(table), dtype=np.bool_)
    worst: list[float] = []
    for numbers, groups in table.in_blocks(np.arange(len(table)), chosen, rule.columns):
        good[numbers] = rule.passes(groups) & (groups.sizes >= rule.min_class_size)
        worst.append(rule.worst(groups))
    known = [value for value in worst if not np.isnan(value)] or [float("nan")]
    return (
        good[chosen],
        max(known) if rule.smaller_is_better else min(known),
        table.sizes[chosen],
        bool(good[chosen].all()),
    )


def _plain(value: float) -> float | int | None:
    if np.isnan(value):
        return None
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def suppressed_rows(data: Data) -> npt.NDArray[np.bool_]:
    """Rows without any quasi-identifier value. If all rows are such, they form one class and none is suppressed."""
    missing = {name: data.schema.column(name).missing for name in data.quasi}
    suppressed = rows_without_values(data.table.frame, data.quasi, missing)
    return suppressed if not suppressed.all() else ~suppressed


def rows_without_values(frame: pl.DataFrame, names: Sequence[str], missing: Mapping[str, str]) -> npt.NDArray[np.bool_]:
    """Rows that have ``*``, or an empty cell that matches every value, in all of these columns.

    ``missing`` says what an empty cell of a column means (:attr:`sfumato.dataset.Column.missing`).
    """
    suppressed = np.ones(frame.height, dtype=np.bool_)
    for name in names:
        column = frame.get_column(name)
        empty = np.zeros(frame.height, dtype=np.bool_)
        if column.dtype in (pl.String, pl.Categorical, pl.Enum):
            empty |= (column.cast(pl.String) == ROOT).fill_null(False).to_numpy()
        if missing.get(name, "category") != "category":
            empty |= column.is_null().to_numpy()
        suppressed &= empty
    return suppressed


def classes_as_shown(
    data: Data, *, original: Data | None = None, population: pl.DataFrame | None = None
) -> EquivalenceClasses:
    """The equivalence classes of a table by its released values; hierarchies of quasi-identifiers are not used."""
    quasi = data.quasi
    frame = data.table.frame
    frame = frame.filter(pl.Series(~suppressed_rows(data), dtype=pl.Boolean))
    if population is not None:
        population = _generalized_like(population, frame, data, quasi)
        frame = frame.with_columns(pl.col(quasi).cast(pl.String))
    columns = dict(data.schema.columns)
    columns |= {name: Column(role=Role.QUASI, missing=columns[name].missing) for name in quasi}
    released = Data(table=data.table.with_frame(frame), schema=Schema(columns=columns, unit=data.schema.unit))
    references = {
        name: reference_of(
            name,
            data.schema,
            data.group([name]),
            original.group([name]) if original is not None and name in original.columns else None,
        )
        for name in released.sensitive
    }
    for name, (hierarchy, _) in references.items():
        released._bound_hierarchies[name] = hierarchy
    table = compress(released, population=population)
    tracked = {name: replace(column, reference=references[name][1]) for name, column in table.tracked.items()}
    return replace(table, tracked=tracked)


def reference_of(
    name: str, schema: Schema, shown: RowGroups, original: RowGroups | None
) -> tuple[BoundHierarchy, npt.NDArray[np.int64]]:
    """The values of a sensitive column and their frequencies in the reference table, from the counts of both tables.

    The reference is the original if it has all values of the release; else values were altered and it is the release.
    """
    values = shown.values.to_series()
    for counts in (original, shown):
        if counts is None:
            continue
        try:
            hierarchy = Data(table=Table(frame=counts.values), schema=schema).bound_hierarchy(name)
            hierarchy.encode(values)
        except HierarchyGap:
            continue
        return hierarchy, _totals(hierarchy, counts)
    hierarchy = with_missing(root_only(name, values.drop_nulls())) if values.null_count() else root_only(name, values)
    return hierarchy, _totals(hierarchy, shown)


def _totals(hierarchy: BoundHierarchy, counts: RowGroups) -> npt.NDArray[np.int64]:
    codes = hierarchy.encode(counts.values.to_series())
    return np.bincount(codes, weights=counts.rows, minlength=len(hierarchy.leaves)).astype(np.int64)


def _generalized_like(
    population: pl.DataFrame, frame: pl.DataFrame, data: Data, quasi: tuple[str, ...]
) -> pl.DataFrame:
    """Generalize the population's quasi-identifiers to the levels of the table."""
    missing = [name for name in quasi if name not in population.columns]
    if missing:
        raise NotApplicable(f"The population table has no column `{missing[0]}`.", columns=tuple(missing))
    schema = Schema(columns={name: data.schema.columns[name] for name in quasi})
    people = Data.of(Table(frame=population.select(quasi)), schema)
    out = []
    for name in quasi:
        hierarchy = people.bound_hierarchy(name)
        labels = frame.get_column(name).cast(pl.String).unique().drop_nulls()
        fits = (
            n for n, level in enumerate(hierarchy.levels) if labels.is_in(level.labels.cast(pl.String).implode()).all()
        )
        number = next(fits, None)
        if number is None:
            raise NotApplicable(
                f"Column `{name}` has values that do not belong to one level of its hierarchy over the population.",
                fix="Use a full-domain generalization to compare with a population.",
                column=name,
            )
        out.append(hierarchy.generalize(people.table.column(name), number).cast(pl.String).alias(name))
    return pl.DataFrame(out)


def _overlaps(table: EquivalenceClasses, data: Data) -> npt.NDArray[np.bool_]:
    """(class, column): whether the cell is a wildcard, that is, empty and matching every value."""
    empty = np.zeros(table.codes.shape, dtype=np.bool_)
    for position, hierarchy in enumerate(table.hierarchies):
        if data.schema.column(hierarchy.column).missing != "category" and hierarchy.leaves.null_count():
            empty[:, position] = table.codes[:, position] == int(hierarchy.leaves.is_null().arg_true()[0])
    return empty


def wildcard_groups(table: EquivalenceClasses, data: Data, *, columns: Iterable[str]) -> ClassGroups:
    """Sizes and histograms over all rows that match each class, where empty cells are wildcards.

    Two classes match if they agree in every column in which neither has a wildcard. Matching sets overlap and are at
    least as large as the classes.
    """
    columns = tuple(columns)
    empty = _overlaps(table, data)
    if empty.any() and table.blocks(len(table), columns) < len(table):
        raise NotApplicable(
            "Equivalence classes overlap (empty cells match every value), and the sensitive column has too many values."
        )
    own = table.groups(columns=columns)
    if not empty.any():
        return own
    names = tuple(own.histograms)
    counted = [own.sizes, *own.histograms.values(), *([] if own.population is None else [own.population])]
    widths = [len(hierarchy.leaves) for hierarchy in table.hierarchies]
    sizes, *rest = wildcard_sums(table.codes, widths, empty, counted)
    return ClassGroups(
        sizes=sizes,
        histograms=dict(zip(names, rest, strict=False)),
        population=None if own.population is None else rest[-1],
        own_rows=own.sizes,
    )
