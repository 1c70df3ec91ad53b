"""Counts over all rows of a release, for models that are not about equivalence classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import polars as pl

from sfumato.dataset.rows import Rows


@dataclass(frozen=True, kw_only=True)
class SqlRowQueries:
    """The rows of a release, in memory or in an engine, to be counted.

    >>> from sfumato.data.table import Table
    >>> from sfumato.dataset import Data, Schema
    >>> frame = pl.DataFrame({"bread": [True, True, None], "size": [1, 2, 3]})
    >>> rows = SqlRowQueries(release=Data(table=Table(frame=frame), schema=Schema(columns={})))
    >>> rows.total, rows.having({"bread": True}), rows.having({"bread": True, "size": 2})
    (3, 2, 1)
    """

    release: Rows

    @property
    def total(self) -> int:
        return self.release.rows

    @property
    def columns(self) -> tuple[str, ...]:
        return self.release.columns

    def combinations(self, columns: Sequence[str]) -> dict[tuple[str | None, ...], int]:
        groups = self.release.group(columns)
        texts = (column.cast(pl.String).to_list() for column in groups.values)
        return dict(zip(zip(*texts, strict=True), groups.rows.tolist(), strict=True))

    def having(self, values: Mapping[str, object]) -> int:
        if any(name not in self.release.columns for name in values):
            return 0
        groups = self.release.group(list(values))
        fits = pl.repeat(True, len(groups.rows), dtype=pl.Boolean, eager=True)
        for column, value in zip(groups.values, values.values(), strict=True):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if column.dtype.is_numeric():
                number = pl.Series([text]).cast(pl.Float64, strict=False)[0]
                fits &= (column.cast(pl.Float64) == number).fill_null(False)
            else:
                fits &= (column.cast(pl.String) == text).fill_null(False)
        return int(groups.rows[fits.to_numpy()].sum())

    def correlation(self, one: str, other: str) -> float | None:
        if not {one, other} <= {*self.release.columns}:
            return None
        frame = self.release.load(list(dict.fromkeys((one, other)))).cast(pl.Float64)
        value = frame.select(pl.corr(frame.get_column(one), frame.get_column(other))).item()
        return float(value) if value is not None and isfinite(value) else None
