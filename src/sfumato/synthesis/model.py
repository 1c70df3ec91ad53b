"""A fitted private model: draws synthetic rows, and says how far the true marginals may be from its estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.release.guarantee import Guarantee
from sfumato.synthesis.column_domain import ColumnCells
from sfumato.synthesis.compression import MergedCells
from sfumato.synthesis.estimate import MarginalEstimates
from sfumato.synthesis.raking import RakedTree
from sfumato.synthesis.residuals import Columns
from sfumato.wording import did_you_mean

_ATTEMPTS = 60
"""Times that rows which break a constraint are drawn again."""


@dataclass(frozen=True, kw_only=True)
class SynthesisModel:
    """A differentially private model of a table. All its contents may be published."""

    columns: Mapping[str, ColumnCells]
    merged: Sequence[MergedCells]
    estimates: MarginalEstimates
    tree: RakedTree
    guarantee: Guarantee
    constraints: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The estimated number of rows of the table."""
        return max(1, round(self.estimates.total))

    def sample(self, rows: int | None = None, *, random: np.random.Generator) -> pl.DataFrame:
        """Synthetic rows, as many as the table is estimated to have. Rows that break a constraint are drawn again."""
        wanted = self.rows if rows is None else rows
        drawn = self._draw(wanted, random)
        if not self.constraints:
            return drawn
        kept = [self._allowed(drawn)]
        for _ in range(_ATTEMPTS):
            missing = wanted - sum(map(len, kept))
            if missing <= 0:
                break
            kept.append(self._allowed(self._draw(min(2 * missing + 100, 4 * wanted + 100), random)))
        frame = pl.concat(kept).head(wanted)
        if frame.height < wanted:
            raise BadParameter(
                "private-synthesis: hardly any synthetic row meets the constraints.", fix="Check `constraints`."
            )
        return frame

    def _draw(self, rows: int, random: np.random.Generator) -> pl.DataFrame:
        return self.decode(self.tree.sample(rows, random), random)

    def decode(self, codes: npt.NDArray[np.int32], random: np.random.Generator, *, skip: int = 0) -> pl.DataFrame:
        """The values of rows in merged cells, without the first ``skip`` columns."""
        numbered = enumerate(zip(self.columns.items(), self.merged, strict=True))
        return pl.DataFrame(
            [
                cells.decode(name, merged.split(codes[number], random), random)
                for number, ((name, cells), merged) in numbered
                if number >= skip
            ]
        )

    def _allowed(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(*(pl.sql_expr(rule).fill_null(value=True) for rule in self.constraints))

    def interval(self, *names: str, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bounds of the true counts of a marginal over one or two columns, cell by cell.

        Each bound holds with that confidence. Cells are those of :attr:`merged`; the counts are those of the rows that
        the mechanism uses (at most ``max_rows`` per unit). A pair whose interaction was measured has a normal interval
        around the pooled estimate. Any other pair has the Fréchet bounds of its two one-way intervals: the model's
        value for it is an assumption, not a measurement.
        """
        order = list(self.columns)
        unknown = [name for name in names if name not in self.columns]
        if unknown:
            raise UnknownColumn(f"The model has no column `{unknown[0]}`.", fix=did_you_mean(unknown[0], order))
        if len(set(names)) != len(names) or not 1 <= len(names) <= 2:
            raise BadParameter("An interval is about one column or two different columns.")
        columns = tuple(order.index(name) for name in names)
        low, high = self._bounds(tuple(sorted(columns)), confidence)
        return (low, high) if columns == tuple(sorted(columns)) else (low.T, high.T)

    def _bounds(self, columns: Columns, confidence: float) -> tuple[Floats, Floats]:
        residuals = self.estimates.residuals
        if residuals.measured(columns):
            # One more unit covers the rounding of the noise.
            reach = NormalDist().inv_cdf((1 + confidence) / 2) * sqrt(residuals.variance(columns)) + 1
            middle = residuals.marginal(columns)
            return np.maximum(middle - reach, 0.0), np.maximum(middle + reach, 0.0)
        # Three intervals must hold together: those of both columns and of the total.
        level = 1 - (1 - confidence) / 3
        (low_a, high_a), (low_b, high_b) = (self._bounds((column,), level) for column in columns)
        _, total = self._bounds((), level)
        low = np.maximum(low_a[:, None] + low_b[None, :] - total, 0.0)
        return low, np.minimum(high_a[:, None], high_b[None, :])

    def errors_by_level(self) -> dict[str, list[dict[str, object]]]:
        """The errors as a manifest publishes them."""
        return {"marginals": self.errors()}

    def errors(self, *, confidence: float = 0.95) -> list[dict[str, Any]]:
        """For every one- and two-way marginal: whether it was measured, and half the mean width of its intervals.

        ``error`` is a share of the estimated number of rows. ``noise`` is the part of the squared counts of a column
        that is noise; ``dependent`` says whether a measured pair depends on each other beyond its noise.
        """
        names, found = list(self.columns), []
        for size in (1, 2):
            for columns in combinations(range(len(names)), size):
                low, high = self._bounds(columns, confidence)
                found.append(
                    {
                        "columns": [names[column] for column in columns],
                        "measured": self.estimates.residuals.measured(columns),
                        "cells": prod(self.estimates.shape[column] for column in columns),
                        "error": round(float((high - low).mean()) / 2 / self.estimates.total, 6),
                        **self._seen(columns),
                    }
                )
        return found

    def _seen(self, columns: Columns) -> dict[str, object]:
        if len(columns) == 1:
            return {"noise": round(self.merged[columns[0]].noise, 4)}
        return {"dependent": self.estimates.dependent(columns)} if columns in self.estimates.measured else {}
