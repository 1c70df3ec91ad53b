"""Compressed table from counts: the equivalence classes that an engine counted, as searches and models read them.

Values are coded as numbers of leaves and packed into as few 64-bit keys as possible. The engine groups by integers, and
a class takes a few bytes however long its values are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.row_codes import number_rows
from sfumato.data.table import Table
from sfumato.dataset import ROOT, BoundHierarchy, Column, Data, Role, Schema
from sfumato.errors import NotApplicable
from sfumato.masking.equivalence_classes import EquivalenceClasses, TrackedColumn, compress
from sfumato.masking.evaluate import classes_as_shown
from sfumato.masking.model import PrivacyModel

__all__ = [
    "CodedColumn",
    "Counted",
    "classes_of_release",
    "compressed",
    "pack_codes",
    "packed",
    "tracked_columns",
    "unpacked",
]

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

_SPAN = 1 << 62


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedColumn:
    """A column with the code of each distinct value."""

    name: str
    cell: str
    """Its name in statements."""
    values: pl.Series
    """The distinct values, including the missing value."""
    hierarchy: BoundHierarchy
    lowest: int = 0
    """The lowest level that is searched: values of one group at this level share a code."""

    @cached_property
    def codes(self) -> Codes:
        """Code of each value: its leaf, or one leaf that represents its group at the lowest level."""
        leaves = self.hierarchy.encode(self.values)
        if self.lowest == 0:
            return leaves
        level = self.hierarchy.levels[self.lowest]
        stands = np.zeros(level.size, dtype=np.int32)
        stands[level.codes[::-1]] = np.arange(len(level.codes), dtype=np.int32)[::-1]
        return stands[level.codes[leaves]]

    @property
    def width(self) -> int:
        return len(self.hierarchy.leaves)

    @cached_property
    def empty(self) -> int:
        """Code of the missing value; 0 if no value is missing."""
        gap = self.values.is_null().arg_true()
        return int(self.codes[gap[0]]) if len(gap) else 0

    @cached_property
    def groups(self) -> int:
        """Number of distinct codes."""
        return len(np.unique(self.codes))

    def table(self) -> pl.DataFrame:
        """Value and code, for the engine to join."""
        known = self.values.is_not_null()
        numbers = pl.Series("code", self.codes.astype(np.int64))
        return pl.DataFrame({"value": self.values.filter(known), "code": numbers.filter(known)})

    def decode(self, codes: npt.NDArray[np.int32]) -> pl.Series:
        """One of the values of each code."""
        place = np.zeros(self.width, dtype=np.intp)
        place[self.codes[::-1]] = np.arange(len(self.codes))[::-1]
        return self.values.gather(place[codes]).alias(self.name)


def packed(columns: Sequence[CodedColumn]) -> list[list[CodedColumn]]:
    """The columns in sequences whose combinations fit into one 64-bit key each."""
    runs: list[list[CodedColumn]] = []
    span = 1
    for column in columns:
        if not runs or span > _SPAN // max(column.width, 1):
            runs.append([])
            span = 1
        runs[-1].append(column)
        span *= max(column.width, 1)
    return runs


def unpacked(frame: pl.DataFrame, columns: Sequence[CodedColumn]) -> Codes:
    """(combination, column): the codes of the values, from the keys ``k0``, ``k1``, ..."""
    codes = np.empty((frame.height, len(columns)), dtype=np.int32)
    last = len(columns)
    for position, run in reversed(list(enumerate(packed(columns)))):
        key = frame.get_column(f"k{position}").to_numpy()
        for column in reversed(run):
            last -= 1
            key, rest = np.divmod(key, max(column.width, 1))
            codes[:, last] = rest
    return codes


def pack_codes(codes: Codes, columns: Sequence[CodedColumn]) -> list[Ints]:
    """The keys of combinations: the inverse of :func:`unpacked`."""
    keys, first = [], 0
    for run in packed(columns):
        key = np.zeros(len(codes), dtype=np.int64)
        for column in run:
            key = key * max(column.width, 1) + codes[:, first]
            first += 1
        keys.append(key)
    return keys


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Distinct combinations of columns with the number of rows of each."""

    schema: Schema
    columns: tuple[CodedColumn, ...]
    codes: Codes
    sizes: Ints
    tracked: Mapping[str, TrackedColumn] = field(default_factory=dict)

    @classmethod
    def of(
        cls, schema: Schema, columns: Sequence[CodedColumn], frames: Mapping[CodedColumn | None, pl.DataFrame]
    ) -> Counted:
        """From counts by the columns' keys, alone (None) or each time with one tracked column beside them."""
        codes = sizes = None
        tracked = {}
        for beside, frame in frames.items():
            unpacked_codes = unpacked(frame, (*columns, *(() if beside is None else (beside,))))
            counts = frame.get_column("n").to_numpy().astype(np.int64)
            own = np.ascontiguousarray(unpacked_codes[:, : len(columns)])
            if beside is None:
                codes, sizes = own, counts
                continue
            known = own if codes is None else np.concatenate([codes, own])
            number, count = number_rows([known[:, i] for i in range(len(columns))], [c.width for c in columns])
            if codes is None:
                first = np.zeros(count, dtype=np.intp)
                first[number[::-1]] = np.arange(len(number))[::-1]
                codes, cells = own[first], number
                sizes = np.bincount(number, weights=counts, minlength=count).astype(np.int64)
            else:
                place = np.full(count, -1, dtype=np.int64)
                place[number[: len(codes)]] = np.arange(len(codes))
                cells = place[number[len(codes) :]]
            values = unpacked_codes[:, -1]
            tracked[beside.name] = TrackedColumn(
                hierarchy=beside.hierarchy, cells=cells.astype(np.int32), values=values, counts=counts
            )
        assert codes is not None
        assert sizes is not None
        return cls(schema=schema, columns=tuple(columns), codes=codes, sizes=sizes, tracked=tracked)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def sample(self) -> Data:
        """The schema over one row, for questions about columns."""
        frame = pl.DataFrame([column.decode(self.codes[:1, i]) for i, column in enumerate(self.columns)])
        return Data(table=Table(frame=frame), schema=self.schema)

    def combinations(self) -> Data:
        """All combinations as rows. Large; needed only for comparison with a population."""
        frame = pl.DataFrame([column.decode(self.codes[:, i]) for i, column in enumerate(self.columns)])
        return Data(table=Table(frame=frame), schema=self.schema)

    def take(self, chosen: npt.NDArray[np.bool_]) -> Counted:
        """Some of the combinations."""
        place = np.cumsum(chosen) - 1
        tracked = {}
        for name, column in self.tracked.items():
            inside = chosen[column.cells]
            cells = place[column.cells[inside]].astype(np.int32)
            tracked[name] = replace(column, cells=cells, values=column.values[inside], counts=column.counts[inside])
        return Counted(
            schema=self.schema,
            columns=self.columns,
            codes=self.codes[chosen],
            sizes=self.sizes[chosen],
            tracked=tracked,
        )

    def classes(self) -> EquivalenceClasses:
        return EquivalenceClasses(
            columns=self.names,
            hierarchies=tuple(column.hierarchy for column in self.columns),
            levels=(0,) * len(self.columns),
            codes=self.codes,
            sizes=self.sizes,
            tracked=self.tracked,
        )

    def spread_over(self, table: EquivalenceClasses) -> EquivalenceClasses:
        """Classes made of :meth:`combinations` as rows, with the counts of the true rows."""
        of = table.of_row
        assert of is not None
        sizes = np.bincount(of, weights=self.sizes, minlength=len(table)).astype(np.int64)
        tracked = {name: replace(one, cells=of[one.cells].astype(np.int32)) for name, one in self.tracked.items()}
        return replace(table, sizes=sizes, tracked=tracked, of_row=None)


def tracked_columns(models: Sequence[PrivacyModel], sensitive: Sequence[str], target: str | None) -> tuple[str, ...]:
    """Columns whose values must be counted inside classes: those the models and the metric speak of.

    Others are not counted, because a count by a column of many values is as long as the table itself.
    """
    names: list[str] = []
    for model in models:
        if "column" in type(model).model_fields:
            named = getattr(model, "column", None)
            names.extend([named] if named is not None else sensitive)
    return tuple(dict.fromkeys([*names, *([target] if target is not None else [])]))


def refuse_overlap(counted: Counted) -> None:
    """Refuse empty quasi-identifier cells that match every value: classes would overlap."""
    for column in counted.columns:
        meaning = counted.schema.column(column.name).missing
        if meaning != "category" and column.values.null_count():
            raise NotApplicable(
                f"Empty cells of `{column.name}` are declared `{meaning}`, so classes overlap, which the search over "
                "levels cannot handle.",
                fix="Declare them `missing: category`, or fill them first.",
                column=column.name,
            )


def compressed(counted: Counted, population: pl.DataFrame | None = None) -> EquivalenceClasses:
    """The compressed table, with the hierarchies of the schema."""
    if population is None:
        return counted.classes()
    return counted.spread_over(compress(counted.combinations(), track=(), population=population))


def classes_of_release(counted: Counted, population: pl.DataFrame | None = None) -> EquivalenceClasses:
    """The classes of a release by the values it shows. Combinations that show nothing are suppressed rows."""
    nothing = np.ones(len(counted.sizes), dtype=np.bool_)
    for i, column in enumerate(counted.columns):
        vague = (column.values.cast(pl.String) == ROOT).fill_null(
            counted.schema.column(column.name).missing != "category"
        )
        nothing &= np.isin(counted.codes[:, i], column.codes[vague.to_numpy()])
    kept = counted if nothing.all() else counted.take(~nothing)
    if population is None:
        return kept.classes()
    columns = {name: Column(role=Role.QUASI, hierarchy=kept.schema.column(name).hierarchy) for name in kept.names}
    rows = Data(table=kept.combinations().table, schema=Schema(columns=columns))
    return kept.spread_over(classes_as_shown(rows, population=population))
