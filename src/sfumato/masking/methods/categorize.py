"""Categorization of numbers into intervals."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field, model_validator

from sfumato.dataset import Column, Data
from sfumato.errors import BadParameter
from sfumato.masking.base import Context
from sfumato.masking.methods._masking import Masking, numbers_of
from sfumato.release import Change


class Categorize(Masking):
    """Replace numbers by intervals, written as text such as ``[20, 30)``.

    Truthful: the person's value lies in the interval. Preserves the order of people up to ties. Does not protect people
    who are alone in an interval; check the result with a privacy model. Breaks computed from the data (``bins``) are
    data values and visible in the release; use ``breaks`` to avoid this.

    Missing values stay missing.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"age": [3, 20, 95]})),
    ...                     Schema(columns={"age": Column(role="quasi")}))
    >>> Categorize(breaks=[20, 60]).apply(people, Context(rng=Rng(1))).table.frame["age"].to_list()
    ['< 20', '[20, 60)', '>= 60']
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["breaks"]}, {"required": ["bins"]}]})

    truthful = True
    simulable = False
    stronger = {"bins": "less"}
    independent_columns = True
    main = "breaks"
    examples = ({"breaks": [0, 30, 60]}, {"bins": 4}, {"bins": 4, "by": "quantile"})
    reference = "Hundepool et al.: Statistical Disclosure Control (2012), section 3.6, doi:10.1002/9781118348239"

    breaks: Annotated[tuple[float, ...], Field(min_length=1)] | None = None
    """Interval boundaries, ascending; a value equal to a break belongs to the interval above it."""
    bins: Annotated[int, Field(ge=2, le=1000)] | None = None
    """Instead of ``breaks``: the number of intervals to compute from the data."""
    by: Literal["width", "quantile"] = "width"
    """With ``bins``: intervals of equal width, or with about equal numbers of people."""

    @model_validator(mode="after")
    def _one(self) -> Categorize:
        if (self.breaks is None) == (self.bins is None):
            raise ValueError("give either `breaks` or `bins`")
        if self.breaks is not None and any(not a < b for a, b in pairwise(self.breaks)):
            raise ValueError("`breaks` must rise")
        if self.breaks is not None and not np.isfinite(self.breaks).all():
            raise ValueError("`breaks` must be finite numbers")
        return self

    @classmethod
    def column_in_words(cls, published: Mapping[str, Any], column: str, declared: Column) -> str:
        if column not in published.get("columns", ()):
            return ""
        given = published.get("parameters", {})
        if given.get("bins") is None:
            return f"ranges with borders at {', '.join(f'{edge:g}' for edge in given.get('breaks', ()))}"
        shape = "of equal width" if given.get("by") == "width" else "with equal numbers of people"
        return f"{given['bins']} ranges {shape}"

    def apply(self, data: Data, context: Context) -> Change:
        if self.strata:
            raise BadParameter("categorize: `strata` is not supported; intervals must be the same for all rows.")
        names, frame = self.chosen(data), data.table.frame
        masked = []
        for name in names:
            series = frame.get_column(name)
            values = numbers_of(series)
            breaks = np.asarray(self.breaks) if self.breaks is not None else self._found(values[~np.isnan(values)])
            codes = np.searchsorted(breaks, values, side="right")
            labels = pl.Series(name, _labels(breaks))
            column = labels.gather(codes)
            masked.append(pl.select(pl.when(series.is_not_null()).then(column)).to_series().alias(name))
        table = data.table.with_frame(frame.with_columns(masked))
        return Change(table=table, public=self.public_columns(names))

    def _found(
        self, values: np.ndarray[tuple[int], np.dtype[np.float64]]
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        assert self.bins is not None
        if not len(values):
            return np.array([0.0])
        shares = np.arange(1, self.bins) / self.bins
        if self.by == "width":
            low, high = values.min(), values.max()
            return np.unique(low + shares * (high - low))
        return np.unique(np.quantile(values, shares, method="higher"))


def _labels(breaks: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[str]:
    text = [f"{value:.12g}" for value in breaks]
    return [f"< {text[0]}", *(f"[{a}, {b})" for a, b in pairwise(text)), f">= {text[-1]}"]
