"""Domain of a column: the values that its owner declares possible. Declared, therefore public, and never observed.

A domain is all values of a category (:class:`ValuesDomain`), two bounds of a number (:class:`RangeDomain`), or a first
and a last day (:class:`PeriodDomain`). Releases, queries, tables, models, synthetic data and surveys take the same
declaration. Whatever has a guarantee takes declared domains only: a bound that is read off the rows gives the largest
value away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import ConfigDict, Discriminator, Field, NaiveDatetime, Tag, TypeAdapter, model_validator

from sfumato.arrays import Floats
from sfumato.field_docs import DocumentedModel
from sfumato.params import FORM

Value: TypeAlias = bool | int | float | str | NaiveDatetime | date | None
"""One value of a category; None: a missing value is possible."""
Day = Annotated[date | NaiveDatetime, Field(union_mode="left_to_right")]
_FORMS = "a domain is {values: [...]}, {low: ..., high: ...} or, for dates, {first: ..., last: ...}"
_MIDNIGHT = time()


class Domain(DocumentedModel):
    """The possible values of a column: a list of values, a range of numbers, or a period."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @staticmethod
    def of(written: Mapping[str, object]) -> ValuesDomain | RangeDomain | PeriodDomain:
        """The domain that a mapping declares, as a document writes it.

        >>> Domain.of({"low": 0, "high": 99})
        RangeDomain(low=0.0, high=99.0, step=None)
        """
        domain: ValuesDomain | RangeDomain | PeriodDomain = _ADAPTER.validate_python(written)
        return domain


class ValuesDomain(Domain):
    """All values of a category."""

    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    """All values of a category."""

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.values)

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as they are written: `true`, `2`, `2024-01-31`."""
        return tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in self.values)

    def codes(self, series: pl.Series) -> npt.NDArray[np.int64]:
        """The position of each value of a column, -1 for all others and for missing values.

        Values that were read as numbers are also found if they are declared as text, and the other way round; nothing
        else is converted.

        >>> ValuesDomain(values=("2", "1.5", "1")).codes(pl.Series([1, 2, None])).tolist()
        [2, 0, -1]
        """
        distinct = series.drop_nulls().unique().to_list()
        if not distinct:
            return np.full(len(series), -1, dtype=np.int64)
        declared = [str(value) for value in self.values] if series.dtype == pl.String else self.values
        index = {value: number for number, value in enumerate(declared)}
        codes = [index.get(value, index.get(str(value), -1)) for value in distinct]
        found = series.replace_strict(pl.Series(distinct, dtype=series.dtype), codes, default=-1, return_dtype=pl.Int64)
        return found.to_numpy().astype(np.int64)

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


class RangeDomain(Domain):
    """The bounds of a number. Numbers beyond are moved to the nearer bound."""

    low: float
    """Smallest value of a number."""
    high: float
    """Largest value of a number."""
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Distance of neighbouring numbers from ``low`` on: 0.01 for cents. Default: 1 for whole numbers."""

    @model_validator(mode="after")
    def _ordered(self) -> RangeDomain:
        if not -math.inf < self.low <= self.high < math.inf:
            raise ValueError("low and high must be finite numbers, low not above high")
        return self

    @property
    def middle(self) -> float:
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half of the width."""
        return self.high / 2 - self.low / 2

    def clip(self, values: npt.ArrayLike) -> Floats:
        """Numbers moved into the bounds."""
        return np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)

    def position(self, values: npt.ArrayLike) -> Floats:
        """The position between the bounds, 0 .. 1; 0 for what is no number.

        >>> RangeDomain(low=-10, high=10).position([-99, 0, 5]).tolist()
        [0.0, 0.5, 0.75]
        """
        low, high = np.float64(self.low), np.float64(self.high)
        # Halves first: the width of the largest bounds is not a finite float.
        share = (self.clip(values) / 2 - low / 2) / (high / 2 - low / 2)
        return np.asarray(np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0))

    def __str__(self) -> str:
        steps = "" if self.step is None else f" in steps of {self.step:g}"
        return f"{self.low:g} to {self.high:g}{steps}"


class PeriodDomain(Domain):
    """The first and last day of a date or time."""

    first: Day
    """First day of a date or time."""
    last: Day
    """Last day of a date or time, included."""

    @model_validator(mode="after")
    def _ordered(self) -> PeriodDomain:
        first, last = self.moments
        if first > last:
            raise ValueError("the first day must not be after the last")
        return self

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day."""
        first, last = (end.date() if isinstance(end, datetime) else end for end in (self.first, self.last))
        return first, last

    @property
    def moments(self) -> tuple[datetime, datetime]:
        """The first and the last moment; a day as the last includes all of it."""
        first, last = self.first, self.last
        return (
            first if isinstance(first, datetime) else datetime.combine(first, _MIDNIGHT),
            last if isinstance(last, datetime) else datetime.combine(last, datetime.max.time()),
        )

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


def _form(value: object) -> str | None:
    """Which domain a mapping declares: the one of which it has a key."""
    if isinstance(value, Domain):
        return FORM + type(value).__name__.lower()
    named = set(value) if isinstance(value, Mapping) else set()
    forms = [form for form in (ValuesDomain, RangeDomain, PeriodDomain) if named & set(form.model_fields)]
    return FORM + forms[0].__name__.lower() if len(forms) == 1 else None


AnyDomain = Annotated[
    Annotated[ValuesDomain, Tag(f"{FORM}valuesdomain")]
    | Annotated[RangeDomain, Tag(f"{FORM}rangedomain")]
    | Annotated[PeriodDomain, Tag(f"{FORM}perioddomain")],
    Discriminator(_form, custom_error_type="domain", custom_error_message=_FORMS),
]
"""A declared domain, as documents write it."""
_ADAPTER: TypeAdapter[ValuesDomain | RangeDomain | PeriodDomain] = TypeAdapter(AnyDomain)
