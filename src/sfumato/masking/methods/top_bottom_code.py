"""Top and bottom coding."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import ConfigDict, Field, model_validator

from sfumato.arrays import Floats
from sfumato.dataset import Column, Data
from sfumato.errors import BadParameter
from sfumato.masking.base import Context
from sfumato.masking.methods._masking import Masking, numbers_of, weights_of
from sfumato.release import Change


class TopBottomCode(Masking):
    """Replace values beyond a top or bottom threshold by the threshold, or by the mean or median of the replaced
    values.

    Removes extreme values, which are the most identifying. Preserves every value between the thresholds and all ranks
    up to ties; ``mean`` also preserves the column mean (weighted, if the table has weights). Values between the
    thresholds are not protected, and a replaced value reveals that the person lies beyond the threshold. If fewer than
    3 values are replaced, the threshold is used instead of their mean or median, which would be close to a person's own
    value.

    Missing values stay missing.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"age": [3, 40, 95, 99]})),
    ...                     Schema(columns={"age": Column(role="quasi")}))
    >>> TopBottomCode(top=90).apply(people, Context(rng=Rng(1))).table.frame["age"].to_list()
    [3, 40, 90, 90]
    """

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name]} for name in ("top", "bottom", "top_percent", "bottom_percent")]
        }
    )

    simulable = True
    draws = False
    stronger = {"top_percent": "more", "bottom_percent": "more"}
    independent_columns = True
    reads_weights = True
    examples = ({"top": 60}, {"top_percent": 5, "bottom_percent": 5}, {"top_percent": 10, "replace_by": "mean"})
    reference = "Hundepool et al.: Statistical Disclosure Control (2012), section 3.6, doi:10.1002/9781118348239"

    top: float | dict[str, float] | None = None
    """Largest value that stays, for all columns or by column: ``{age: 85, pay: 200000}``."""
    bottom: float | dict[str, float] | None = None
    """Smallest value that stays, for all columns or by column."""
    top_percent: Annotated[float, Field(gt=0, lt=100)] | None = None
    """Instead of ``top``: the largest values that make up this *percentage* of the records (of their weight)."""
    bottom_percent: Annotated[float, Field(gt=0, lt=100)] | None = None
    """Instead of ``bottom``: the smallest values that make up this percentage."""
    replace_by: Literal["threshold", "mean", "median"] = "threshold"
    """Replacement of the coded values. A threshold by percentage is the nearest unchanged value."""

    @model_validator(mode="after")
    def _something(self) -> TopBottomCode:
        if (self.top is not None and self.top_percent is not None) or (
            self.bottom is not None and self.bottom_percent is not None
        ):
            raise ValueError("give a threshold or a percentage, not both")
        if self.top is None is self.bottom and self.top_percent is None is self.bottom_percent:
            raise ValueError("give at least one of top, bottom, top_percent, bottom_percent")
        if (self.top_percent or 0) + (self.bottom_percent or 0) >= 100:
            raise ValueError("the sum of the two percentages must be below 100")
        thresholds = [*_each(self.top), *_each(self.bottom)]
        if not all(isfinite(value) for _, value in thresholds):
            raise ValueError("a threshold must be a finite number")
        for column, high in _each(self.top):
            for other, low in _each(self.bottom):
                if high < low and (column is None or other is None or column == other):
                    raise ValueError("`top` lies below `bottom`")
        return self

    @classmethod
    def column_in_words(cls, published: Mapping[str, Any], column: str, declared: Column) -> str:
        if column not in published.get("columns", ()):
            return ""
        given, words = published.get("parameters", {}), []
        for name, sign in (("top", "+"), ("bottom", "-")):
            limit = given.get(name)
            value = limit.get(column) if isinstance(limit, dict) else limit
            if value is not None:
                words.append(f"{name} {value:g}{sign}" if sign == "+" else f"{name} {value:g} and below")
            if given.get(f"{name}_percent") is not None:
                words.append(f"{name} {given[f'{name}_percent']:g}% coded")
        return ", ".join(words) or "top or bottom coded"

    def chosen(self, data: Data) -> tuple[str, ...]:
        named = [set(limit) for limit in (self.top, self.bottom) if isinstance(limit, dict)]
        if self.columns is None and named:
            wanted = set[str]().union(*named)
            return self.model_copy(update={"columns": tuple(sorted(wanted))}).chosen(data)
        return super().chosen(data)

    def apply(self, data: Data, context: Context) -> Change:
        names, frame, weights = self.chosen(data), data.table.frame, weights_of(data)
        strata = self.parts(data)
        masked, coded = [], {}
        for name in names:
            series = frame.get_column(name)
            values = numbers_of(series)
            new = values.copy()
            for rows in strata:
                here = values[rows]
                weight = None if weights is None else weights[rows]
                self._code(new, rows, here, weight, name)
            changed = (new != values) & ~np.isnan(values)
            coded[name] = int(changed.sum())
            masked.append(_put(series, new, changed))
        table = data.table.with_frame(frame.with_columns(masked))
        return Change(table=table, public=self.public_columns(names), private={"values_coded": coded})

    def _code(self, new: Floats, rows: Any, here: Floats, weight: Floats | None, name: str) -> None:
        low, high = self._threshold(here, weight, name, False), self._threshold(here, weight, name, True)
        if low is not None and high is not None and high < low:
            raise BadParameter(f"top-bottom-code: the top threshold of `{name}` lies below its bottom threshold.")
        for threshold, upper in ((low, False), (high, True)):
            if threshold is None:
                continue
            beyond = here > threshold if upper else here < threshold
            value = threshold
            if int(beyond.sum()) >= 3 and self.replace_by == "mean":
                value = float(np.average(here[beyond], weights=None if weight is None else weight[beyond]))
            elif int(beyond.sum()) >= 3 and self.replace_by == "median":
                value = float(np.median(here[beyond]))
            new[rows[beyond]] = value

    def _threshold(self, here: Floats, weight: Floats | None, name: str, upper: bool) -> float | None:
        limit = self.top if upper else self.bottom
        percent = self.top_percent if upper else self.bottom_percent
        threshold = limit.get(name) if isinstance(limit, dict) else limit
        if threshold is None and percent is not None:
            return _quantile(here, weight, 1 - percent / 100 if upper else percent / 100, upper)
        return threshold


def _each(limit: float | dict[str, float] | None) -> list[tuple[str | None, float]]:
    """A threshold by column; None stands for every column."""
    return [] if limit is None else list(limit.items()) if isinstance(limit, dict) else [(None, limit)]


def _put(series: pl.Series, new: Floats, changed: npt.NDArray[np.bool_]) -> pl.Series:
    """Insert the coded values; all other values stay exact, including long integers."""
    whole = series.dtype.is_integer() and bool((new[changed] % 1 == 0).all())
    kind = series.dtype if whole or series.dtype == pl.Float32 else pl.Float64
    coded = pl.Series(np.where(changed, new, np.nan), nan_to_null=True).cast(kind)
    column = pl.when(pl.Series(changed)).then(coded).otherwise(series.cast(kind))
    return pl.select(column).to_series().alias(series.name)


def _quantile(values: Floats, weights: Floats | None, share: float, upper: bool) -> float:
    """The outermost unchanged value: at most the requested share of the weight lies beyond it."""
    present = ~np.isnan(values)
    count = int(present.sum())
    if not count:
        return np.inf if upper else -np.inf
    if weights is None:
        # The k-th smallest value, without sorting the others.
        at = int(np.ceil(share * count - 1e-9 * count)) - 1 if upper else int(np.floor(share * count + 1e-9 * count))
        at = min(max(at, 0), count - 1)
        return float(np.partition(values[present], at)[at])
    order = np.argsort(values[present])
    ordered, running = values[present][order], np.cumsum(weights[present][order])
    mark = share * running[-1]
    if upper:
        at = int(np.searchsorted(running, mark - 1e-9 * running[-1], side="left"))
    else:
        at = int(np.searchsorted(running, mark + 1e-9 * running[-1], side="right"))
    return float(ordered[min(at, len(ordered) - 1)])
