"""Shared code of masking methods: column selection, strata, and checks of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats
from sfumato.dataset import Data, Kind, Role
from sfumato.errors import BadParameter, WrongKind
from sfumato.masking.base import Step

Rows = npt.NDArray[np.uint32]

NUMERIC = frozenset({Kind.INTEGER, Kind.NUMBER})
ORDERED = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.DATE, Kind.DATETIME})


@dataclass(frozen=True, kw_only=True)
class Strata:
    """Row numbers, stratum by stratum: stratum ``s`` is ``order[offsets[s] : offsets[s + 1]]``."""

    order: Rows
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Rows]:
        return (self.order[a:b] for a, b in zip(self.offsets, self.offsets[1:], strict=False))


def split(frame: pl.DataFrame, names: tuple[str, ...]) -> Strata:
    """Group rows by their combination of values in ``names``; missing counts as a value. No names: one stratum."""
    if not names:
        return Strata(order=np.arange(frame.height, dtype=np.uint32), offsets=np.array([0, frame.height]))
    rows, row = numbered(frame, names)
    grouped = rows.group_by(names, maintain_order=True).agg(pl.col(row))[row]
    offsets = np.concatenate([[0], np.cumsum(grouped.list.len().to_numpy())]).astype(np.int64)
    return Strata(order=grouped.explode().to_numpy().astype(np.uint32, copy=False), offsets=offsets)


def numbered(frame: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """These columns with a row index, under an unused name."""
    row = "row #"
    while row in names:
        row += "#"
    return frame.select(names).with_row_index(row), row


def sorted_rows(series: pl.Series) -> Rows:
    """Row numbers sorted by value, without missing values; equal values in row order."""
    order = pl.DataFrame([series.alias("x")]).select(pl.arg_sort_by("x", nulls_last=True, maintain_order=True))
    return order.to_series().to_numpy()[: len(series) - series.null_count()].astype(np.uint32, copy=False)


def refuse_not_finite(series: pl.Series) -> None:
    """Refuse a column with NaN or infinity."""
    if series.dtype.is_float():
        bad = int((~series.is_finite()).sum() or 0)
        if bad:
            raise WrongKind(
                f"Column `{series.name}` holds {bad} values that are NaN or infinite.",
                fix="Make them missing (empty) or replace them before masking.",
                column=series.name,
                count=bad,
            )


def numbers_of(series: pl.Series) -> Floats:
    """The column as floats, NaN where a value is missing; NaN and infinity in the data are refused."""
    refuse_not_finite(series)
    return series.cast(pl.Float64).to_numpy()


def matrix_of(frame: pl.DataFrame, names: tuple[str, ...]) -> Floats:
    """Several number columns side by side, one row per record, NaN where missing."""
    matrix = np.empty((frame.height, len(names)), order="F")
    for number, name in enumerate(names):
        matrix[:, number] = numbers_of(frame.get_column(name))
    return matrix


def weights_of(data: Data) -> Floats | None:
    """The sampling weights, or None if the schema declares no weight column."""
    names = [name for name in data.schema.names(Role.WEIGHT) if name in data.table.columns]
    return data.table.column(names[0]).cast(pl.Float64).to_numpy() if names else None


class Masking(Step):
    """Base class of methods that change the values of chosen columns and keep all rows in place."""

    kinds: ClassVar[frozenset[Kind]] = NUMERIC
    """Kinds of columns the method can mask."""

    out_of_core = True
    independent_columns: ClassVar[bool] = False
    """Whether every column is masked by itself, with random numbers of its own. Files larger than memory are then
    masked one column at a time."""

    reads_weights: ClassVar[bool] = False
    """Whether masked values depend on the weight column of the schema."""

    reads_unit: ClassVar[bool] = False
    """Whether masked values depend on whose a row is, which the unit column of the schema says."""

    columns: tuple[str, ...] | None = None
    """Columns to mask. Default: all quasi-identifier and sensitive columns of a suitable kind."""
    strata: tuple[str, ...] = ()
    """Stratification columns: rows are masked among rows that agree in all of them."""

    def chosen(self, data: Data) -> tuple[str, ...]:
        """The columns that this step masks in this table; unknown or unsuitable ones are refused."""
        return fitting(data, self.columns, self.kinds, self.part_name(), self.strata)

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        weights = data.schema.names(Role.WEIGHT) if self.reads_weights else ()
        unit = (data.schema.unit,) if self.reads_unit and data.schema.unit is not None else ()
        present = [name for name in (*weights, *unit) if name in data.table.columns]
        names, beside = self.chosen(data), (*self.strata, *present)
        if not self.independent_columns:
            return ((self, tuple(dict.fromkeys((*names, *beside)))),)
        return tuple(
            (self.model_copy(update={"columns": (name,)}), tuple(dict.fromkeys((name, *beside)))) for name in names
        )

    def parts(self, data: Data) -> Strata:
        """The rows, stratum by stratum."""
        data.table.require(self.strata)
        return split(data.table.frame, self.strata)

    def public_columns(self, names: tuple[str, ...]) -> dict[str, object]:
        """The columns that were masked, for the manifest."""
        return {"columns": list(names)}


def fitting(
    data: Data, columns: tuple[str, ...] | None, kinds: frozenset[Kind], part: str, strata: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The named columns, checked, or all quasi-identifier and sensitive columns of the kinds."""
    words = " or ".join(sorted(kinds))
    if columns is None:
        wanted = {*data.quasi, *data.sensitive} - set(strata)
        suitable = tuple(name for name in data.table.columns if name in wanted and data.kind(name) in kinds)
        if not suitable:
            raise BadParameter(
                f"{part}: no quasi-identifier or sensitive column is {words}.",
                fix="Name the columns to mask with `columns`, or declare their roles.",
                part=part,
            )
        return suitable
    if not columns:
        raise BadParameter(f"{part}: `columns` is empty.", fix="Name at least one column, or leave it out.", part=part)
    data.table.require(columns)
    if len(set(columns)) != len(columns):
        raise BadParameter(f"{part}: `columns` names a column twice.", part=part)
    for name in columns:
        if name in strata:
            raise BadParameter(f"{part}: `{name}` is both masked and a stratum.", fix="Keep it in one.", part=part)
        if data.kind(name) not in kinds:
            raise WrongKind(
                f"{part}: column `{name}` is {data.kind(name)}; this method masks {words}.",
                fix="Declare another kind for it, or leave it out of `columns`.",
                column=name,
            )
    return columns
