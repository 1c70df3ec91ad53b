"""Date hierarchy by calendar units."""

from __future__ import annotations

from datetime import date
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field, field_validator

from sfumato.dataset.hierarchy import ROOT, BoundHierarchy, Hierarchy
from sfumato.errors import WrongKind

Unit = Literal["hour", "day", "week", "month", "quarter", "year", "decade", "century"]
_ORDER: tuple[str, ...] = ("hour", "day", "week", "month", "quarter", "year", "decade", "century")
_FORMATS = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}


class DatesHierarchy(Hierarchy):
    """Calendar units from fine to coarse: 1965-07-31, then 1965-07, 1965-Q3, 1965, 1960s, 1900-1999.

    Weeks are ISO weeks. They cross month and year boundaries and cannot be combined with those units.

    >>> DatesHierarchy.build(["month", "year", "decade"]).bind("birth", pl.Series([date(1965, 7, 31)])).rows()
    [['1965-07-31', '1965-07', '1965', '1960s', '*']]
    >>> births = pl.Series([date(1930, 7, 31), date(1938, 1, 2)])
    >>> DatesHierarchy.build({"units": ["year", "decade"], "bottom": 1937}).bind("birth", births).rows()
    [['1930-07-31', '< 1937', '< 1937', '*'], ['1938-01-02', '1938', '1930s', '*']]
    """

    main: ClassVar[str | None] = "units"
    examples = (
        {"units": ["month", "year", "decade"]},
        {"units": ["quarter", "century"]},
        {"units": ["week"]},
        {"units": ["year", "decade"], "bottom": 1937},
    )
    sample = (date(1899, 12, 31), date(1900, 1, 1), date(1965, 7, 31), date(1965, 8, 1), date(1966, 1, 2))

    units: Annotated[tuple[Unit, ...], Field(min_length=1)]
    """The levels above the date, from fine to coarse; ``*`` is added. A date column skips units that are not coarser
    than a day."""
    bottom: Annotated[int, Field(ge=1, le=9999)] | None = None
    """Years before this one form one group on every level, as in ``< 1937``. HIPAA requires it for births from which an
    age over 89 follows."""

    @field_validator("units")
    @classmethod
    def _nested(cls, units: tuple[str, ...]) -> tuple[str, ...]:
        ranks = [_ORDER.index(unit) for unit in units]
        if ranks != sorted(set(ranks)):
            raise ValueError(f"must go from fine to coarse: {', '.join(_ORDER)}")
        if "week" in units and ranks[-1] > _ORDER.index("week"):
            raise ValueError("weeks cross month and year boundaries; remove `week` or all units after it")
        return units

    def level_in_words(self, level: int) -> str:
        if not 0 < level <= len(self.units):
            return super().level_in_words(level) if level <= 0 else "all values removed (*)"
        return f"{self.units[level - 1]} only" + ("" if self.bottom is None else f", before {self.bottom} together")

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        if not isinstance(values.dtype, pl.Date | pl.Datetime):
            raise WrongKind(
                f"The hierarchy of `{column}` needs dates, but the column has none.",
                fix=f"Declare it in the recipe: `{column}: {{kind: date, ...}}`.",
                column=column,
            )
        leaves = values.unique().sort()
        # units finer than the column have no effect
        units = [unit for unit in self.units if unit not in ("hour", "day") or not isinstance(values.dtype, pl.Date)]
        labels = [self._bottomed(leaves, _labels(leaves, unit)) for unit in units]
        return BoundHierarchy.from_labels(column, leaves, [*labels, [ROOT] * len(leaves)])

    def _bottomed(self, leaves: pl.Series, labels: pl.Series) -> pl.Series:
        if self.bottom is None:
            return labels
        return pl.select(
            pl.when(leaves.dt.year() < self.bottom).then(pl.lit(f"< {self.bottom}")).otherwise(labels)
        ).to_series()


def _labels(leaves: pl.Series, unit: str) -> pl.Series:
    year = leaves.dt.year()
    match unit:
        case "quarter":
            return year.cast(pl.String) + "-Q" + leaves.dt.quarter().cast(pl.String)
        case "decade":
            return (year // 10 * 10).cast(pl.String) + "s"
        case "century":
            first = year // 100 * 100
            return first.cast(pl.String) + "-" + (first + 99).cast(pl.String)
        case _:
            return leaves.dt.strftime(_FORMATS[unit])
