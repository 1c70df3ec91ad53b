"""Candidate rows: the rows of a release that match what is known about a person, without comparing all pairs.

Per column, each distinct known value is joined to the distinct released values that may represent it: equal values,
its labels in the published hierarchy, and notations (:mod:`sfumato.attacks.value_parser`). Released rows with the same
values form an equivalence class. The candidate classes of a person come from the column with the fewest, filtered by
the others, so memory stays in the order of the two tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.recoding import Recoding
from sfumato.attacks.value_coverage import Coverage, coverage
from sfumato.data.row_codes import first_rows, number_rows
from sfumato.errors import NotApplicable
from sfumato.kernels import kernel
from sfumato.masking.base import method_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Comparison of one column: known values, released values, and which may represent which (in CSR format)."""

    known: Ints
    """The value number of each target."""
    released: Ints
    """The value number of each release row."""
    values: pl.Series
    """The distinct known values."""
    labels: pl.Series
    """The distinct released values."""
    starts: Ints
    """Where the released values that match a known one start in ``fits``."""
    fits: Ints
    cover: Floats
    """For each released value, the number of known values it may represent."""
    named: bool
    """Whether any released value matches a known one without representing all values."""
    vague: npt.NDArray[np.bool_]
    """For each released value, whether it represents all values."""


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The equivalence classes that match one person, with the weight of their rows."""

    classes: Ints
    sizes: Ints
    weight: Floats
    """For each class the weight of one of its rows: one over the number of combinations the class may represent."""

    @property
    def total(self) -> float:
        return float(self.sizes @ self.weight)


@dataclass(frozen=True, kw_only=True)
class Match:
    """Targets and release compared on the known columns."""

    person: Ints
    """The number of each target's combination of known values."""
    persons: int
    order: Ints
    """Release rows, sorted by equivalence class."""
    starts: Ints
    """Where each class starts in ``order``."""
    left_out: tuple[str, ...]
    """Known columns in which no released value matches a known one: another coding, or an unpublished perturbation."""
    _codes: tuple[Ints, ...]
    _columns: tuple[Comparison, ...]
    _class_codes: tuple[Ints, ...]
    _lists: tuple[tuple[Ints, Ints], ...]
    _weight: Floats

    def rows(self, number: int) -> Ints:
        """The release rows of an equivalence class."""
        return self.order[self.starts[number] : self.starts[number + 1]]

    def candidates(self) -> Iterator[tuple[Ints, Candidates]]:
        """For each combination of known values: its targets, and the equivalence classes that match.

        In the order of the targets, so that an early stop has processed the first targets.
        """
        by_person = np.argsort(self.person, kind="stable")
        edges = np.searchsorted(self.person[by_person], np.arange(self.persons + 1))
        sizes = np.diff(self.starts)
        # Per column and combination, the number of classes that match in this column alone.
        lengths = np.column_stack(
            [
                _listed(column.starts, column.fits, starts)[codes]
                for column, codes, (starts, _) in zip(self._columns, self._codes, self._lists, strict=True)
            ]
        )
        shortest = np.argmin(lengths, axis=1)
        for number in np.argsort(by_person[edges[:-1]]):
            classes = self._matching_classes(number, int(shortest[number]), int(lengths[number, shortest[number]]))
            yield (
                by_person[edges[number] : edges[number + 1]],
                Candidates(classes=classes, sizes=sizes[classes], weight=self._weight[classes]),
            )

    def fits(self, targets: Ints, rows: Ints) -> npt.NDArray[np.bool_]:
        """For each pair of a target and a release row, whether the row matches the target in all columns used."""
        return self._fit(self.person[targets], self._class_of()[rows])

    def fits_every_row(self, part: slice) -> npt.NDArray[np.bool_]:
        """The same for some targets with every row, computed for combinations of values and classes of rows."""
        persons, place = np.unique(self.person[part], return_inverse=True)
        classes = len(self.starts) - 1
        fits = self._fit(np.repeat(persons, classes), np.tile(np.arange(classes), len(persons)))
        return fits.reshape(len(persons), classes)[:, self._class_of()][place]

    def _class_of(self) -> Ints:
        """The equivalence class of each release row."""
        class_of = np.empty(len(self.order), dtype=np.int64)
        class_of[self.order] = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return class_of

    def _fit(self, person: Ints, number: Ints) -> npt.NDArray[np.bool_]:
        matching = np.ones(len(person), dtype=np.bool_)
        for column, codes, class_codes in zip(self._columns, self._codes, self._class_codes, strict=True):
            matching &= _contained(column.starts, column.fits, codes[person], class_codes[number])
        return matching

    def weights(self, rows: Ints) -> Floats:
        """The weight of release rows, as in :class:`Candidates`."""
        by_row = np.empty(len(self.order))
        by_row[self.order] = np.repeat(self._weight, np.diff(self.starts))
        return by_row[rows]

    def reached(self, combinations: int) -> int:
        """The number of targets, from the first on, that are complete after this many combinations."""
        if combinations >= self.persons:
            return len(self.person)
        first = np.full(self.persons, len(self.person), dtype=np.int64)
        np.minimum.at(first, self.person, np.arange(len(self.person)))
        return int(np.sort(first)[combinations])

    def _matching_classes(self, number: int, shortest: int, length: int) -> Ints:
        """The classes that match a combination: those of the column with the fewest, filtered by the others."""
        classes = np.empty(0, dtype=np.int64)
        if length:
            column, value = self._columns[shortest], self._codes[shortest][number]
            starts, members = self._lists[shortest]
            classes = _gather(starts, members, column.fits, column.starts[value], column.starts[value + 1], length)
        for index, column in enumerate(self._columns):
            if index != shortest and len(classes):
                value = self._codes[index][number]
                classes = _keep(
                    classes, self._class_codes[index], column.fits, column.starts[value], column.starts[value + 1]
                )
        return classes


@kernel(nogil=True)
def _listed(starts: Ints, fits: Ints, list_starts: Ints) -> Ints:  # pragma: no cover - compiled
    """For each value the number of entries in the lists of its labels."""
    total = np.zeros(len(starts) - 1, dtype=np.int64)
    for value in range(len(total)):
        for place in range(starts[value], starts[value + 1]):
            total[value] += list_starts[fits[place] + 1] - list_starts[fits[place]]
    return total


@kernel(nogil=True)
def _gather(
    starts: Ints, members: Ints, fits: Ints, first: int, last: int, length: int
) -> Ints:  # pragma: no cover - compiled
    gathered = np.empty(length, dtype=np.int64)
    place = 0
    for index in range(first, last):
        for inner in range(starts[fits[index]], starts[fits[index] + 1]):
            gathered[place] = members[inner]
            place += 1
    return gathered


@kernel(nogil=True)
def _holds(fits: Ints, first: int, last: int, label: int) -> bool:  # pragma: no cover - compiled
    """Whether a label is among the sorted ones between two positions."""
    while first < last:
        middle = (first + last) // 2
        if fits[middle] < label:
            first = middle + 1
        elif fits[middle] > label:
            last = middle
        else:
            return True
    return False


@kernel(nogil=True)
def _keep(classes: Ints, codes: Ints, fits: Ints, first: int, last: int) -> Ints:  # pragma: no cover - compiled
    place = 0
    kept = np.empty(len(classes), dtype=np.int64)
    for number in classes:
        if _holds(fits, first, last, codes[number]):
            kept[place] = number
            place += 1
    return kept[:place].copy()


@kernel(nogil=True)
def _contained(
    starts: Ints, fits: Ints, values: Ints, labels: Ints
) -> npt.NDArray[np.bool_]:  # pragma: no cover - compiled
    found = np.empty(len(values), dtype=np.bool_)
    for index in range(len(values)):
        found[index] = _holds(fits, starts[values[index]], starts[values[index] + 1], labels[index])
    return found


def match(view: View, *, in_release: bool = False) -> Match:
    """Compare the targets with the release on the known columns that no published step perturbed.

    With ``in_release`` the targets are assumed to be in the release. A column that matches none of them is then taken
    to be unreadable (another coding, or an unpublished perturbation) and is not used.
    """
    if not view.knows:
        raise NotApplicable("The attacker knows no column of the release.", fix="Name columns with `knows`.")
    names = view.untouched
    if not names:
        raise NotApplicable(
            "All known columns were perturbed, so no row can be expected to match.",
            fix="Use an attack for perturbed data such as `distance-linkage`.",
            columns=view.knows,
        )
    published = view.release.manifest.get("columns", {}) if view.transparent else {}
    compared = {
        name: compare(
            view.targets.get_column(name),
            view.release.table.column(name),
            published.get(name, {}).get("hierarchy"),
            blanks_unknown=view.blanks_unknown,
            merged=_merged(view.steps, name),
            recoding=view.recodings.get(name),
        )
        for name in names
    }
    left_out = tuple(name for name in names if in_release and not compared[name].named)
    if len(left_out) == len(names):
        left_out = ()
    columns = tuple(column for name, column in compared.items() if name not in left_out)
    person, codes = _distinct([column.known for column in columns])
    classes, class_codes = _distinct([column.released for column in columns])
    persons, count = len(codes[0]), len(class_codes[0])
    order = np.argsort(classes, kind="stable").astype(np.int64)
    starts = np.searchsorted(classes[order], np.arange(count + 1)).astype(np.int64)
    lists = []
    log_weight = np.zeros(count)
    for column, code in zip(columns, class_codes, strict=True):
        by_value = np.argsort(code, kind="stable").astype(np.int64)
        lists.append((np.searchsorted(code[by_value], np.arange(len(column.cover) + 1)).astype(np.int64), by_value))
        log_weight -= np.log(np.maximum(column.cover[code], 1.0))
    fitted = any(len(column.fits) for column in columns)
    if not fitted:
        raise NotApplicable(
            "No released value matches a known value in any column: the values look perturbed or recoded.",
            fix="Use an attack for perturbed data such as `distance-linkage`.",
        )
    return Match(
        person=person,
        persons=persons,
        order=order,
        starts=starts,
        left_out=left_out,
        _codes=codes,
        _columns=columns,
        _class_codes=class_codes,
        _lists=tuple(lists),
        _weight=np.exp(log_weight - log_weight.max()),
    )


def _merged(steps: Iterable[Mapping[str, Any]], name: str) -> dict[str, bool]:
    """Labels under which published steps merged rare values, and whether only in some strata."""
    labels: dict[str, bool] = {}
    for step in steps:
        parameters = step.get("parameters", {})
        label = method_of(step).pooled_label(parameters) if name in step.get("columns", ()) else None
        if label is not None:
            labels[label] = bool(parameters.get("strata"))
    return labels


def _distinct(codes: list[Ints]) -> tuple[Ints, tuple[Ints, ...]]:
    """Number the distinct combinations, and return the codes of each combination per column."""
    label, count = number_rows(codes)
    first = first_rows(label, count)
    return label.astype(np.int64), tuple(np.ascontiguousarray(code[first]) for code in codes)


def compare(
    targets: pl.Series,
    released: pl.Series,
    declared: object = None,
    *,
    blanks_unknown: bool = False,
    merged: Mapping[str, bool] = MappingProxyType({}),
    recoding: Recoding | None = None,
) -> Comparison:
    """Compare one column of two tables; ``declared`` is the column's published hierarchy as plain data.

    A blank target matches blanks and labels that represent all values; with ``blanks_unknown`` it matches every value.
    A label of ``merged`` may represent the known values that no other label names, or every value where it is true.
    ``recoding`` is that of :func:`~sfumato.attacks.value_coverage.coverage`.
    """
    read = coverage(targets, released, declared, recoding)
    values, labels = read.values, read.labels
    vague = read.vague
    for label, everything in merged.items():
        read = _with_rest(read, label, everything=everything)
    starts, fits = read.by_value()
    if blanks_unknown and values.null_count():
        place = int(values.is_null().arg_true()[0])
        fits = np.concatenate([fits[: starts[place]], np.arange(len(labels)), fits[starts[place + 1] :]])
        starts[place + 1 :] += len(labels) - (starts[place + 1] - starts[place])
    cover = np.bincount(fits, minlength=len(labels)).astype(np.float64)
    # A label for all values is less specific than any set of values, even if only one value is known.
    cover[vague] = len(values) + 1
    return Comparison(
        known=read.known,
        released=read.released,
        values=values,
        labels=labels,
        starts=starts,
        fits=fits,
        cover=cover,
        named=read.named,
        vague=vague,
    )


def _with_rest(read: Coverage, label: str, *, everything: bool) -> Coverage:
    """The coverage with this label representing every value that no other label names (or all values)."""
    place = (read.text == label).fill_null(False).arg_true()
    if not len(place):
        return read
    rest = np.ones(len(read.values), dtype=np.bool_)
    if not everything:
        starts, fits = read.by_value()
        naming = ~read.vague[fits] & (fits != place[0])
        rest[np.repeat(np.arange(len(rest)), np.diff(starts))[naming]] = False
    return read.with_values(int(place[0]), np.flatnonzero(rest))
