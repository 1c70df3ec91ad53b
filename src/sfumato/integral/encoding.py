"""Encoding of columns as whole numbers: bins, categories or a grid. It is fixed and public, part of the algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import BaseModel, ConfigDict, model_validator

from sfumato.errors import BadParameter, UnknownColumn, WrongKind
from sfumato.wording import did_you_mean

Codes = npt.NDArray[np.int64]


class ColumnEncoding(BaseModel):
    """How the values of one column become codes from 0.

    Exactly one of ``edges``, ``categories`` and ``grid`` is given.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    edges: tuple[float, ...] | None = None
    """Increasing bin edges. A value equal to an edge belongs to the bin below it."""
    categories: tuple[str, ...] | None = None
    grid: tuple[float, float, int] | None = None
    """Low, high and number of steps: values are clipped to the range and rounded to the nearest step."""

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if sum(rule is not None for rule in (self.edges, self.categories, self.grid)) != 1:
            raise ValueError("give one of edges, categories and grid")
        if self.edges is not None and any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError("edges must increase")
        if self.grid is not None and not (self.grid[0] < self.grid[1] and self.grid[2] >= 1):
            raise ValueError("the grid needs low < high and at least one step")
        return self

    @property
    def size(self) -> int:
        """Number of codes."""
        if self.edges is not None:
            return len(self.edges) + 1
        return len(self.categories) if self.categories is not None else (self.grid or (0, 0, 0))[2] + 1

    @property
    def ordered(self) -> bool:
        return self.categories is None

    def encode(self, frame: pl.DataFrame) -> Codes:
        """The codes of this column. Missing values and unknown categories are errors."""
        if self.name not in frame.columns:
            raise UnknownColumn(
                f"The table has no column `{self.name}`.", fix=did_you_mean(self.name, frame.columns), name=self.name
            )
        series = frame[self.name]
        if series.null_count() or (series.dtype.is_float() and series.is_nan().any()):
            raise WrongKind(
                f"Column `{self.name}` has missing values.",
                fix="Drop these rows, leave the column out, or fill it in a way that does not depend on other people.",
                column=self.name,
            )
        if self.categories is not None:
            texts = series.cast(pl.String)
            codes = texts.replace_strict(self.categories, range(len(self.categories)), default=-1).to_numpy()
            if (codes < 0).any():
                raise WrongKind(
                    f"Column `{self.name}` has values outside the declared categories in "
                    f"{int((codes < 0).sum()):,} rows.",
                    fix="Declare all categories.",
                    column=self.name,
                )
            return np.asarray(codes, dtype=np.int64)
        if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
            raise WrongKind(f"Column `{self.name}` holds no numbers.", fix="Declare categories.", column=self.name)
        values = series.cast(pl.Float64).to_numpy()
        if self.edges is not None:
            return np.asarray(np.searchsorted(np.asarray(self.edges), values, side="left"), dtype=np.int64)
        assert self.grid is not None
        low, high, steps = self.grid
        return np.asarray(np.rint((np.clip(values, low, high) - low) / (high - low) * steps), dtype=np.int64)

    def text(self, code: int) -> str:
        """A code in words.

        >>> ColumnEncoding(name="age", edges=(30, 60)).text(1)
        '30 < age <= 60'
        """
        if self.categories is not None:
            return f"{self.name} = {self.categories[code]}"
        if self.edges is not None:
            low = f"{self.edges[code - 1]:g} < " if code else ""
            high = f" <= {self.edges[code]:g}" if code < len(self.edges) else ""
            return f"{low}{self.name}{high}"
        assert self.grid is not None
        return f"{self.name} = {self.grid[0] + code * (self.grid[1] - self.grid[0]) / self.grid[2]:g}"


class Encoding(BaseModel):
    """The encoding of the features and, where there is one, of the label."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    features: tuple[ColumnEncoding, ...]
    label: ColumnEncoding | None = None

    @property
    def columns(self) -> tuple[ColumnEncoding, ...]:
        return (*self.features, *([self.label] if self.label is not None else []))

    def encode(self, frame: pl.DataFrame) -> Codes:
        """One row of codes per row of the table: features, then the label."""
        if not frame.height:
            raise BadParameter("The table has no rows.")
        return np.stack([column.encode(frame) for column in self.columns], axis=1)

    @classmethod
    def from_table(
        cls,
        frame: pl.DataFrame,
        *,
        features: Sequence[str],
        label: str | None = None,
        threshold: float | None = None,
        bins: int = 4,
        edges: Mapping[str, Sequence[float]] | None = None,
    ) -> Encoding:
        """Bins for a classifier: quantiles of each numeric column, the categories of every other column.

        Parameters
        ----------
        threshold
            Splits a numeric label in two: at most, and above. Without it the label's values are its classes.
        bins
            Number of quantile bins of each numeric column that has no ``edges``. The edges are taken from this table
            and published with the model. Give ``edges`` if the quantiles themselves must not tell about a person.
        """
        given = dict(edges or {})

        def codes(name: str) -> ColumnEncoding:
            if name not in frame.columns:
                raise UnknownColumn(f"The table has no column `{name}`.", fix=did_you_mean(name, frame.columns))
            if name in given:
                return ColumnEncoding(name=name, edges=tuple(given[name]))
            if frame[name].dtype.is_numeric():
                values = frame[name].drop_nulls().cast(pl.Float64).to_numpy()
                cuts = np.unique(np.quantile(values, np.arange(1, bins) / bins)) if len(values) else np.empty(0)
                return ColumnEncoding(name=name, edges=tuple(cuts.tolist()))
            return _categories(frame, name)

        if label is not None and label not in frame.columns:
            raise UnknownColumn(f"The table has no column `{label}`.", fix=did_you_mean(label, frame.columns))
        target = None
        if label is not None:
            target = _categories(frame, label) if threshold is None else ColumnEncoding(name=label, edges=(threshold,))
        return cls(features=tuple(codes(name) for name in features if name != label), label=target)

    @classmethod
    def from_bounds(
        cls, bounds: Mapping[str, tuple[float, float]], *, label: ColumnEncoding | str | None = None, steps: int = 1024
    ) -> Encoding:
        """A grid over public bounds, for regression and clustering. ``label`` may be one of the bounded columns."""
        grids = {name: ColumnEncoding(name=name, grid=(*limits, steps)) for name, limits in bounds.items()}
        if isinstance(label, str) and label not in grids:
            raise BadParameter(f"The label `{label}` has no bounds.", fix="Add its public bounds.", label=label)
        target = grids.pop(label) if isinstance(label, str) else label
        return cls(features=tuple(grids.values()), label=target)

    def coarser(self, factor: int) -> Encoding:
        """The same encoding with every ``factor``-th edge of the features kept. Categories and the label stay."""
        kept = tuple(
            column if column.edges is None else column.model_copy(update={"edges": column.edges[factor - 1 :: factor]})
            for column in self.features
        )
        return self.model_copy(update={"features": kept})


def _categories(frame: pl.DataFrame, name: str) -> ColumnEncoding:
    texts = frame[name].drop_nulls().cast(pl.String).unique().sort().to_list()
    if len(texts) > 256:
        raise BadParameter(
            f"Column `{name}` has more than 256 categories.", fix="Leave it out, or give `edges`.", column=name
        )
    return ColumnEncoding(name=name, categories=tuple(texts))
