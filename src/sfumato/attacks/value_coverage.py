"""Coverage: the known values of a column that each released value may represent, in memory linear in the values.

A range covers a run of the sorted values, so it is stored as two positions and never as a list. A release with
thousands of overlapping ranges (Mondrian on continuous columns) needs no list of all pairs of value and range.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.normalize import canonical
from sfumato.attacks.recoding import Bands, ColumnReading, Recoding, as_numbers
from sfumato.attacks.value_parser import IN_WORDS, ROOTS, Known, ValueRange, reader, value_range
from sfumato.data.row_codes import value_codes
from sfumato.dataset.hierarchy import hierarchy_from_dict
from sfumato.errors import SfumatoError
from sfumato.kernels import kernel
from sfumato.memory import require_memory

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NOTATION = (
    r"[*?{}<>≤≥\[\]()+–]|\.\.|^-?\d[\d.eE+-]*\s*(-|to)\s*-?\d|^\d{3}0s$|^\d{4}(-\d{2}|-?Q[1-4])?$|^"
    + "$|^".join(sorted(label for label in ROOTS if label.isalpha()))
    + "$|"
    + IN_WORDS
)
"""Labels that could be a notation; all others represent themselves and are not parsed."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """One column of two tables: label ``j`` may represent the values ``members[starts[j]:stops[j]]``."""

    known: Ints
    """The value number of each row of the original (or of each target)."""
    released: Ints
    """The label number of each release row."""
    values: pl.Series
    """The distinct known values."""
    labels: pl.Series
    """The distinct released values."""
    text: pl.Series
    """The labels in canonical spelling."""
    members: Ints
    """Value numbers: all in numeric order, all in text order, then lists of single labels."""
    starts: Ints
    stops: Ints

    @property
    def counts(self) -> Ints:
        """For each label the number of known values it may represent."""
        return self.stops - self.starts

    @cached_property
    def vague(self) -> npt.NDArray[np.bool_]:
        """For each label whether it represents all values."""
        vague: npt.NDArray[np.bool_] = (self.text.is_null() | self.text.is_in(list(ROOTS)).fill_null(True)).to_numpy()
        return vague

    @cached_property
    def bands(self) -> Bands:
        """The values and labels that are numbers or dates, without the values that a range or a group represents."""
        several = np.flatnonzero(~self.vague & (self.counts > 1))
        offset = np.arange(int(self.counts[several].sum())) - np.repeat(
            np.cumsum(self.counts[several]) - self.counts[several], self.counts[several]
        )
        grouped = np.zeros(len(self.values), dtype=np.bool_)
        grouped[self.members[np.repeat(self.starts[several], self.counts[several]) + offset]] = True
        level = as_numbers(self.labels)
        # A label that is a range or group is no number, even if it can be read as one (the year 1964 of dates).
        level[several] = np.nan
        return Bands(known=np.where(grouped, np.nan, as_numbers(self.values)), released=level)

    @property
    def named(self) -> bool:
        """Whether any label represents a known value without representing all values."""
        return bool((~self.vague & (self.counts > 0)).any())

    def covers(self, values: Ints, labels: Ints) -> npt.NDArray[np.bool_]:
        """For each pair of a value and a label whether the label may represent the value."""
        size = len(self.values)
        covered = np.zeros(len(values), dtype=np.bool_)
        listed = np.flatnonzero(self.starts >= 2 * size)
        of_list = self.starts[labels] >= 2 * size
        for shift in (0, size):
            rank = np.empty(size, dtype=np.int64)
            rank[self.members[shift : shift + size]] = np.arange(shift, shift + size)
            covered |= ~of_list & (rank[values] >= self.starts[labels]) & (rank[values] < self.stops[labels])
        counts = self.counts[listed]
        owner = np.repeat(listed, counts)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        stored = owner * size + self.members[self.starts[owner] + offset]
        return covered | (of_list & np.isin(labels * size + values, stored))

    def by_value(self) -> tuple[Ints, Ints]:
        """The labels that may represent each value, ascending, in CSR format: where those of a value start, and the
        labels. This may be large: labels times values in the worst case."""
        pairs = int(self.counts.sum())
        require_memory(16.0 * pairs, f"a list of all values that each label of `{self.labels.name}` covers")
        starts, labels = _transposed(self.members, self.starts, self.stops, len(self.values))
        return starts, labels

    def with_values(self, label: int, values: Ints) -> Coverage:
        """The same coverage, with this label representing exactly these values."""
        starts, stops = self.starts.copy(), self.stops.copy()
        starts[label], stops[label] = len(self.members), len(self.members) + len(values)
        return replace(self, members=np.concatenate([self.members, values]), starts=starts, stops=stops)

    def by_cell(self, cell_of_value: Ints, cells: int) -> tuple[Ints, Ints, Ints]:
        """For labels and cells of values that overlap: label, cell, and the number of common values."""
        cell = cell_of_value[self.members]
        single = np.flatnonzero(self.counts == 1)
        several = np.flatnonzero(self.counts > 1)
        several = several[np.argsort(self.starts[several], kind="stable")]
        found = [(single, cell[self.starts[single]], np.ones(len(single), dtype=np.int64))]
        order = np.argsort(cell, kind="stable")
        edges = np.searchsorted(cell[order], np.arange(cells + 1))
        for number in range(cells):
            places = order[edges[number] : edges[number + 1]]
            common = np.searchsorted(places, self.stops[several]) - np.searchsorted(places, self.starts[several])
            some = common > 0
            found.append((several[some], np.full(int(some.sum()), number), common[some]))
        label, place, common = (np.concatenate(part) for part in zip(*found, strict=True))
        return label, place, common

    def extremes(self, labels: Ints, number: Floats) -> tuple[Floats, Floats]:
        """The smallest and largest number among the values of these labels; infinite where there is none."""
        smallest, largest = np.full(len(labels), np.inf), np.full(len(labels), -np.inf)
        some = np.flatnonzero(self.counts[labels] > 0)
        if len(some):
            ends = np.column_stack([self.starts[labels[some]], self.stops[labels[some]]]).ravel()
            ordered = np.append(number[self.members], np.nan)  # a stop may lie behind the last member
            held = np.isnan(ordered)
            smallest[some] = np.minimum.reduceat(np.where(held, np.inf, ordered), ends)[::2]
            largest[some] = np.maximum.reduceat(np.where(held, -np.inf, ordered), ends)[::2]
        return smallest, largest


@kernel(nogil=True)
def _transposed(
    members: Ints, starts: Ints, stops: Ints, values: int
) -> tuple[Ints, Ints]:  # pragma: no cover - compiled
    first = np.zeros(values + 1, dtype=np.int64)
    for label in range(len(starts)):
        for place in range(starts[label], stops[label]):
            first[members[place] + 1] += 1
    for value in range(values):
        first[value + 1] += first[value]
    labels = np.empty(first[values], dtype=np.int64)
    next_free = first[:-1].copy()
    for label in range(len(starts)):
        for place in range(starts[label], stops[label]):
            value = members[place]
            labels[next_free[value]] = label
            next_free[value] += 1
    return first, labels


def coverage(
    original: pl.Series, released: pl.Series, declared: object = None, recoding: Recoding | None = None
) -> Coverage:
    """Read one column of a release; ``declared`` is the column's published hierarchy as plain data.

    A label represents the values that are equal to it and those that its notation or the hierarchy says. A blank label
    is a suppressed cell and may represent every value. With a ``recoding``, a number that no label represents belongs
    to the released number that the rule gives.
    """
    known_codes, values = value_codes(original)
    values = _with_code_width(values, released)
    released_codes, labels = value_codes(released)
    known, text = Known(values=values), canonical(labels)
    spans = _Spans(known, len(labels))
    equal = _equal(known, text)
    spans.add_lists(equal[:, 1], equal[:, 0])
    _read_labels(spans, text, declared, plain=labels.dtype != pl.String, equal=equal)
    read = _as_coverage(known_codes, released_codes, values, labels, text, spans)
    if recoding is None:
        return read
    label, value, _ = read.bands.assigned(recoding)
    spans.add_lists(label, value)
    return _as_coverage(known_codes, released_codes, values, labels, text, spans)


def _as_coverage(
    known_codes: Ints, released_codes: Ints, values: pl.Series, labels: pl.Series, text: pl.Series, spans: _Spans
) -> Coverage:
    return Coverage(
        known=known_codes,
        released=released_codes,
        values=values,
        labels=labels,
        text=text,
        members=np.concatenate(spans.members),
        starts=spans.starts,
        stops=spans.stops,
    )


def read_column(original: pl.Series, released: pl.Series) -> ColumnReading:
    """Which known values the released ones represent, and the recoding that explains the others."""
    read = coverage(original, released)
    people = np.bincount(read.known, minlength=len(read.values))
    rows = np.bincount(read.released, minlength=len(read.labels))
    starts, fits = read.by_value()
    named = np.zeros(len(read.values), dtype=np.bool_)
    named[np.repeat(np.arange(len(named)), np.diff(starts))[~read.vague[fits]]] = True
    present = read.values.is_not_null().to_numpy()
    occurs = float(people[present & named].sum() / max(1, people[present].sum())) if present.any() else 1.0
    recoding = read.bands.infer(people, rows) if occurs < 1 else None
    return ColumnReading(column=released.name, occurs=occurs, recoding=recoding)


class _Spans:
    """Collects the span of each label while a column is read."""

    def __init__(self, known: Known, labels: int) -> None:
        size = len(known.values)
        self.known = known
        self.by_number = np.argsort(known.number, kind="stable").astype(np.int64)
        self.by_text = known.text.arg_sort(nulls_last=True).to_numpy().astype(np.int64)
        self.members = [self.by_number, self.by_text]
        self.length = 2 * size
        self.starts = np.zeros(labels, dtype=np.int64)
        self.stops = np.zeros(labels, dtype=np.int64)

    def add_lists(self, labels: Ints, values: Ints) -> None:
        """Labels in pairs with the values they represent."""
        order = np.lexsort((values, labels))
        distinct, first, count = np.unique(labels[order], return_index=True, return_counts=True)
        self.members.append(values[order])
        self.starts[distinct] = self.length + first
        self.stops[distinct] = self.length + first + count
        self.length += len(values)

    def add_everything(self, labels: Iterable[int]) -> None:
        for label in labels:
            self.starts[label], self.stops[label] = 0, len(self.by_number)

    def add_ranges(self, labels: Ints, ranges: list[ValueRange]) -> None:
        """Ranges of numbers, or of dates in text, as runs of the sorted values."""
        ranges = [self.known.in_units(found) for found in ranges]
        dates = np.array([found.of_dates for found in ranges], dtype=np.bool_)
        for chosen, find, shift in ((~dates, self._numeric, 0), (dates, self._textual, len(self.by_text))):
            if chosen.any():
                start, stop = find([found for found, some in zip(ranges, chosen, strict=True) if some])
                self.starts[labels[chosen]] = start + shift
                self.stops[labels[chosen]] = np.maximum(start, stop) + shift

    def _numeric(self, ranges: list[ValueRange]) -> tuple[Ints, Ints]:
        number = self.known.number[self.by_number]
        number = number[: len(number) - int(np.isnan(number).sum())]
        floor = np.floor(number)
        low, high = (np.array([found.numbers[side] for found in ranges]) for side in (0, 1))
        low_in, high_in, whole = (
            np.array([getattr(found, name) for found in ranges]) for name in ("low_in", "high_in", "whole")
        )
        start, stop = np.empty(len(ranges), np.int64), np.empty(len(ranges), np.int64)
        for sequence, kind in ((number, ~whole), (floor, whole)):
            for ends, bound, closed, sides in (
                (start, low, low_in, ("left", "right")),
                (stop, high, high_in, ("right", "left")),
            ):
                ends[kind & closed] = np.searchsorted(sequence, bound[kind & closed], sides[0])  # type: ignore[call-overload]
                ends[kind & ~closed] = np.searchsorted(sequence, bound[kind & ~closed], sides[1])  # type: ignore[call-overload]
        return start, stop

    def _textual(self, ranges: list[ValueRange]) -> tuple[Ints, Ints]:
        ordered = self.known.text.gather(self.by_text).drop_nulls()
        day = ordered.str.head(10)
        start = [
            int(ordered.search_sorted(found.low, "left" if found.low_in else "right")) if found.low else 0
            for found in ranges
        ]
        stop = [
            int(day.search_sorted(found.high, "right" if found.high_in else "left")) if found.high else len(ordered)
            for found in ranges
        ]
        return np.array(start, dtype=np.int64), np.array(stop, dtype=np.int64)


def _read_labels(spans: _Spans, text: pl.Series, declared: object, *, plain: bool, equal: Ints) -> None:
    """Give each label that represents more than itself its span."""
    known = spans.known
    levels = _published(declared, known.values)
    # A suppressed cell may represent any value.
    spans.add_everything(text.is_null().arg_true().to_list())
    if plain and not levels:
        return
    notable = text.is_in(list(levels)) if levels else pl.repeat(False, len(text), eager=True)
    if not plain:
        notable = notable | text.str.contains(_NOTATION)
    marked = notable.fill_null(False).to_numpy()
    itself = {int(label): int(value) for value, label in equal[marked[equal[:, 1]]]}
    places: list[int] = []
    ranges: list[ValueRange] = []
    lists: dict[int, Ints] = {}
    for code in np.flatnonzero(marked).tolist():
        label = text[code]
        if label in levels:
            lists[code] = levels[label]
        elif not plain and (span := value_range(label)) is not None:
            if code in itself:  # the original has this very label: a value of its own besides the range
                lists[code] = np.flatnonzero(known.between(span))
            else:
                places.append(code)
                ranges.append(span)
        elif not plain and (read := reader(label)) is not None:
            lists[code] = np.flatnonzero(read(known))
    if ranges:
        spans.add_ranges(np.array(places, dtype=np.int64), ranges)
    for code in itself.keys() & lists.keys():
        lists[code] = np.union1d(lists[code], [itself[code]])
    everything = [code for code, fits in lists.items() if len(fits) == len(known.values)]
    spans.add_everything(everything)
    rest = {code: fits for code, fits in lists.items() if len(fits) < len(known.values)}
    for code in rest:
        spans.stops[code] = spans.starts[code]
    if rest:
        spans.add_lists(
            np.repeat(list(rest), [len(fits) for fits in rest.values()]), np.concatenate(list(rest.values()))
        )


def _with_code_width(values: pl.Series, released: pl.Series) -> pl.Series:
    """The known values with the leading zeros of codes as in the release: 2138 becomes 02138, or the reverse.

    Spreadsheets read codes as numbers and drop leading zeros; an adversary would restore them.
    """
    if values.dtype.is_integer() and released.dtype == pl.String:
        codes = released.unique().drop_nulls()
        codes = codes.filter(codes.str.contains(r"^[0-9]+\**$"))
        width = codes.str.len_chars().unique()
        if len(width) == 1 and codes.str.starts_with("0").any() and (values.drop_nulls() >= 0).all():
            return values.cast(pl.String).str.zfill(int(width[0]))
    if values.dtype == pl.String and released.dtype.is_integer():
        return values.str.replace(r"^0+([0-9]+)$", "$1")
    return values


def _equal(known: Known, text: pl.Series) -> Ints:
    left = pl.DataFrame({"v": known.text}).with_row_index("known")
    right = pl.DataFrame({"v": text}).with_row_index("label")
    joined = left.join(right, on="v", how="inner", nulls_equal=True)
    return joined.select(pl.col("known", "label").cast(pl.Int64)).to_numpy()


def _published(declared: object, values: pl.Series) -> dict[str, Ints]:
    """Labels of the upper levels of the published hierarchy, and the known values that each covers."""
    if not declared:
        return {}
    try:
        hierarchy = hierarchy_from_dict(declared)
        assert hierarchy is not None
        present = values.drop_nulls()
        bound = hierarchy.bind(values.name, present)
        leaves = bound.encode(present)
    except (SfumatoError, ValueError, OSError):
        # The hierarchy file may be missing, or lack some known values; notations are parsed instead.
        return {}
    places = values.is_not_null().arg_true().to_numpy()
    labels: dict[str, Ints] = {}
    for level in bound.levels[1:]:
        codes = level.codes[leaves]
        order = np.argsort(codes, kind="stable")
        edges = np.searchsorted(codes[order], np.arange(level.size + 1))
        for code, label in enumerate(level.labels.to_list()):
            if label is None:
                continue
            covered = places[order[edges[code] : edges[code + 1]]].astype(np.int64)
            labels[label] = np.union1d(labels[label], covered) if label in labels else covered
    for label in ROOTS & set(labels):
        labels[label] = np.arange(len(values))
    return labels
