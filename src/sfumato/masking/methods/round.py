"""Rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.dataset import Data
from sfumato.errors import WrongKind
from sfumato.masking.base import Context
from sfumato.masking.channel import PublicKnowledge, StepChannel
from sfumato.masking.methods._masking import Masking, Strata, numbers_of
from sfumato.release import Change


class Round(Masking):
    """Round numbers to multiples of a base.

    ``nearest`` changes a value by at most half the base, the other two by less than the base. ``random`` preserves
    every value and total in expectation; ``controlled`` preserves the total of each stratum within half the base.
    Outliers are not protected: a rounded outlier is still an outlier, and an attacker who knows the true value knows
    the rounded one (``nearest``) or one of two candidates (the others).

    Missing values stay missing. Whole numbers stay whole if the base is.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"pay": [1203, 1251, 998]})),
    ...                     Schema(columns={"pay": Column(role="quasi")}))
    >>> Round(base=100).apply(people, Context(rng=Rng(1))).table.frame["pay"].to_list()
    [1200, 1300, 1000]
    """

    report_phrase = "rounded to multiples of {base:g}"
    simulable = True
    stronger = {"base": "more"}
    independent_columns = True
    main = "base"
    examples = ({"base": 10}, {"base": 5, "variant": "random"}, {"base": 5, "variant": "controlled"})
    reference = "Willenborg, de Waal: Elements of Statistical Disclosure Control (2001), doi:10.1007/978-1-4613-0121-9"

    base: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """The result is a multiple of this: 1000, 10, 0.5."""
    variant: Literal["nearest", "random", "controlled"] = "nearest"
    """``nearest``: to the nearest multiple (a tie goes to the even one). ``random``: up with the probability that
    makes it right on average, else down. ``controlled``: up or down so that the column's total (of each stratum) is
    the nearest multiple of its true total; the largest remainders go up."""

    @classmethod
    def channels(cls, published: Mapping[str, Any], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
        random = published["parameters"].get("variant") == "random"
        return () if random else cls.certain_result(published, knowledge)

    def apply(self, data: Data, context: Context) -> Change:
        names, frame, strata = self.chosen(data), data.table.frame, self.parts(data)
        masked = []
        for name in names:
            series = frame.get_column(name)
            if series.dtype.is_integer() and float(self.base).is_integer() and _long(series):
                masked.append(self._exactly(series, strata, context.rng.child(name).generator))
                continue
            with np.errstate(over="ignore"):
                units = numbers_of(series) / self.base
            if np.isinf(units).any():
                raise WrongKind(f"round: numbers of `{name}` are too large for a base of {self.base:g}.", column=name)
            match self.variant:
                case "nearest":
                    units = np.rint(units)
                case "random":
                    low = np.floor(units)
                    units = low + (context.rng.child(name).generator.random(len(units)) < units - low)
                case "controlled":
                    new = units.copy()
                    for rows in strata:
                        new[rows] = _controlled(units[rows])
                    units = new
            column = pl.Series(name, units * self.base, nan_to_null=True)
            whole = series.dtype.is_integer() and float(self.base).is_integer()
            masked.append(column.round(0).cast(pl.Int64) if whole else column.round(12))
        table = data.table.with_frame(frame.with_columns(masked))
        return Change(table=table, public=self.public_columns(names))

    def _exactly(self, series: pl.Series, strata: Strata, random: np.random.Generator) -> pl.Series:
        """The same in integer arithmetic: floats hold 15 digits, and account numbers may have more."""
        base, held = int(self.base), series.is_not_null().to_numpy()
        low, rest = np.zeros(len(series), dtype=object), np.zeros(len(series), dtype=object)
        values = np.array(series.drop_nulls().to_list(), dtype=object)
        low[held], rest[held] = values // base, values % base
        match self.variant:
            case "nearest":
                up = (2 * rest > base) | ((2 * rest == base) & (low % 2 == 1))
            case "random":
                up = random.random(len(series)) * base < rest
            case "controlled":
                up = np.zeros(len(series), dtype=bool)
                for rows in strata:
                    whole, part = divmod(sum(rest[rows]), base)
                    odd = (sum(low[rows]) + whole) % 2
                    count = whole + (2 * part > base or (2 * part == base and odd))
                    up[rows[np.argsort(-rest[rows], kind="stable")[:count]]] = True
        rounded = [int(value) if there else None for value, there in zip((low + up) * base, held, strict=True)]
        try:
            return pl.Series(series.name, rounded, dtype=pl.Int64)
        except (TypeError, OverflowError):
            raise WrongKind(
                f"round: numbers of `{series.name}` leave the range of whole numbers when they are rounded.",
                fix="Divide the column by a power of ten first.",
                column=series.name,
            ) from None


def _long(series: pl.Series) -> bool:
    """Whether some whole number has more digits than a float holds."""
    ends = (series.min(), series.max())
    return any(isinstance(end, int) and abs(end) >= 2**53 for end in ends)


def _controlled(units: Floats) -> Floats:
    present = ~np.isnan(units)
    low = np.floor(units)
    ups = max(0, int(np.rint(np.nansum(units))) - int(np.nansum(low)))
    rest = np.where(present, units - low, -1.0)
    low[np.argsort(-rest, kind="stable")[:ups]] += 1
    return low
