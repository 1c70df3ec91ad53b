"""Released columns as codes, with the code that each person's known value points to.

Two rows have the same code if an attacker who knows the column cannot tell them apart. Linking on a set of columns
then means to look up one combination of codes, so the success of an attacker who knows any set of columns is a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.features import numbers
from sfumato.attacks.scenario import AttackScenario
from sfumato.attacks.value_coverage import coverage
from sfumato.data.row_codes import number_rows
from sfumato.deadline import check_deadline
from sfumato.progress import SILENT, Progress

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_NOISE_WIDTH = 3.0
"""Width of the bins of a perturbed number, in units of the typical difference between known and released values."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCodes:
    """One released column as codes."""

    name: str
    released: Ints
    """The code of each release row."""
    known: Ints
    """The code that each person's known value points to; -1 if it points to none."""
    size: int
    """Number of codes."""
    true: bool
    """Whether the released value fits the known one for every person in the release."""
    exact: bool
    """Whether the column is true and each known value fits one code only: looking up the code is then the attack."""


@dataclass(frozen=True, kw_only=True)
class CodedPeople:
    """The people in the release and its columns as codes."""

    rows: Ints
    """Rows of the original."""
    own: Ints | None
    """The release row of each person; None if the row correspondence is unknown and all columns are true."""
    released_rows: int
    columns: tuple[ColumnCodes, ...]
    """Columns that tell rows apart."""
    constant: tuple[str, ...]
    """Columns that do not, because all rows have the same value."""

    def correct(self, column: ColumnCodes) -> Bools:
        """For whom the code of the known value is the code of their own row."""
        if self.own is None:
            return column.known >= 0
        matching: Bools = column.known == column.released[self.own]
        return matching


def common_columns(scenario: AttackScenario) -> tuple[str, ...]:
    """The columns that original and release have in common."""
    return tuple(name for name in scenario.release.table.columns if name in scenario.original.table.columns)


def code_columns(scenario: AttackScenario, names: Iterable[str], progress: Progress = SILENT) -> CodedPeople:
    """The columns as codes, for the people in the release (or for ``scenario.targets`` among them)."""
    release_row = scenario.release_row
    people = np.arange(scenario.original.rows) if release_row is None else np.flatnonzero(release_row >= 0)
    if scenario.targets is not None:
        people = people[np.isin(people, scenario.targets)]
    own = None if release_row is None else release_row[people]
    columns, constant = [], []
    for name in names:
        check_deadline(progress)
        known = scenario.original.table.column(name)
        known = known if len(people) == len(known) else known.gather(people)
        column = _coded(scenario, known, own)
        if column is None:
            constant.append(name)
        else:
            columns.append(column)
    return CodedPeople(
        rows=people,
        own=own,
        released_rows=scenario.release.table.rows,
        columns=tuple(columns),
        constant=tuple(constant),
    )


def consistent(people: CodedPeople, columns: Sequence[ColumnCodes]) -> bool:
    """Whether every released row could be the row of a person of its own: no combination of codes is released more
    often than people have it. For a release without row correspondence and without published steps."""
    if not columns or any(column.size > 0 and not (column.known >= 0).any() for column in columns):
        return False
    joined = [np.concatenate([column.released, np.maximum(column.known, 0)]) for column in columns]
    number, count = number_rows(joined, [column.size for column in columns])
    known = np.logical_and.reduce([column.known >= 0 for column in columns])
    released = np.bincount(number[: people.released_rows], minlength=count)
    people_of = np.bincount(number[people.released_rows :][known], minlength=count)
    return bool((released <= people_of).all())


def consistent_columns(
    scenario: AttackScenario, names: Sequence[str], progress: Progress = SILENT
) -> CodedPeople | None:
    """The columns whose released values may all be true, together; None if there are none.

    A release that is consistent with the original is taken to be true, so that the number of fitting rows says how
    often a lookup is right. This is the case for releases that only coarsen or remove values.
    """
    people = code_columns(scenario, names, progress)
    kept = tuple(column for column in people.columns if consistent(people, [column]))
    if not kept or not consistent(people, kept):
        return None
    return replace(people, columns=kept)


def _coded(scenario: AttackScenario, known: pl.Series, own: Ints | None) -> ColumnCodes | None:
    """The column as codes; None if all rows have the same value."""
    name, released = known.name, scenario.release.table.column(known.name)
    published = scenario.release.manifest.get("columns", {}).get(name, {})
    covered = coverage(known, released, published.get("hierarchy"), scenario.recodings.get(name))
    labels = covered.released
    if len(covered.counts) < 2:
        return None
    once = int(covered.counts.sum()) == len(covered.values)
    if own is None:
        # Only columns whose released values may all be true are judged then. Who has no fitting row is not released.
        points = _most_specific(*covered.by_value(), covered.counts)[covered.known]
        true = True
    else:
        fitting = covered.covers(covered.known, labels[own])
        points, true = np.where(fitting, labels[own], -1), bool(fitting.all())
    coded = ColumnCodes(
        name=name, released=labels, known=points, size=len(covered.counts), true=true, exact=true and once
    )
    binned = None if true or own is None else _binned(known, released, own)
    if binned is None:
        return coded
    return max(coded, binned, key=lambda column: _success(column, own))


def _most_specific(starts: Ints, labels: Ints, counts: Ints) -> Ints:
    """For each known value the label that represents it and fewest others; -1 if there is none."""
    value = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((-counts[labels],))
    points = np.full(len(starts) - 1, -1, dtype=np.int64)
    points[value[order]] = labels[order]
    return points


def _binned(known: pl.Series, released: pl.Series, own: Ints) -> ColumnCodes | None:
    """A perturbed number in bins that are somewhat wider than the perturbation; None if only one bin is left."""
    before, after = numbers(known), numbers(released)
    if before is None or after is None:
        return None
    difference = np.abs(after[own] - before)
    difference = difference[np.isfinite(difference)]
    if len(difference) == 0:
        return None
    width = _NOISE_WIDTH * float(np.quantile(difference, 0.68))
    spread = float(np.nanmax(after) - np.nanmin(after))
    if not 0 < width < spread:
        return None
    low = float(np.nanmin(after))
    bins = int(spread / width) + 1

    def codes_of(values: Floats) -> Ints:
        inner = np.clip((np.nan_to_num(values) - low) / width, 0, bins - 1)
        return np.where(np.isfinite(values), inner, bins).astype(np.int64)

    codes, points = codes_of(after), codes_of(before)
    return ColumnCodes(name=known.name, released=codes, known=points, size=bins + 1, true=False, exact=False)


def _success(column: ColumnCodes, own: Ints | None) -> float:
    assert own is not None
    sizes = np.bincount(column.released, minlength=column.size)
    codes = column.released[own]
    return float(((column.known == codes) / sizes[codes]).sum())
