"""Declaration of a column: role, kind of values, domain and hierarchy."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from enum import StrEnum
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import (
    ConfigDict,
    Field,
    NaiveDatetime,
    SerializeAsAny,
    field_serializer,
    field_validator,
    model_validator,
)

from sfumato.data.missing import is_missing
from sfumato.dataset.casting import fit
from sfumato.dataset.hierarchy import Hierarchy, hierarchy_from_dict
from sfumato.errors import WrongKind
from sfumato.field_docs import DocumentedModel

__all__ = ["Column", "Domain", "Kind", "Role"]


class Role(StrEnum):
    """The role of a column in a disclosure."""

    IDENTIFIER = "identifier"
    """Identifies a person by itself: name, social security number, e-mail. Removed or pseudonymized."""
    QUASI = "quasi"
    """Quasi-identifier: known to outsiders and identifying in combination, such as ZIP, birth date, sex."""
    SENSITIVE = "sensitive"
    """Must not be disclosed about a person: diagnosis, salary."""
    WEIGHT = "weight"
    """Sampling weight: the number of people of the population that a row represents."""
    HOUSEHOLD = "household"
    """Household: identifies rows that belong together. Finding one member finds all."""
    PLAIN = "plain"
    """Neither known to outsiders nor secret, by somebody's decision. Released unchanged."""
    DROP = "drop"
    """Not released: nobody needs it, or it cannot be protected."""
    UNDECIDED = "undecided"
    """Nobody has decided yet. ``protect`` refuses such a column."""


class Kind(StrEnum):
    """Kind of values of a column."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    DATETIME = "datetime"
    CATEGORY = "category"

    @classmethod
    def of(cls, dtype: pl.DataType) -> Kind:
        """The kind of a Polars type."""
        if dtype == pl.Boolean:
            return cls.BOOLEAN
        if dtype.is_integer():
            return cls.INTEGER
        if dtype.is_numeric():
            return cls.NUMBER
        if dtype == pl.Date:
            return cls.DATE
        if dtype == pl.Datetime:
            return cls.DATETIME
        return cls.CATEGORY


_Day = Annotated[date | NaiveDatetime, Field(union_mode="left_to_right")]


class Domain(DocumentedModel):
    """The possible values of a column, declared by the data owner and therefore public.

    A column without a domain has only its *observed* values, which are private. Masking methods may use them; they are
    never used as bounds or keys of a differentially private answer.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "anyOf": [{"required": ["values"]}, {"required": ["low", "high"]}, {"required": ["first", "last"]}]
        },
    )

    values: tuple[Any, ...] | None = None
    """All values of a category."""
    low: float | None = None
    """Smallest value of a number."""
    high: float | None = None
    """Largest value of a number."""
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Distance of neighbouring numbers from ``low`` on: 0.01 for cents. Default: 1 for whole numbers."""
    first: _Day | None = None
    """First day of a date or time."""
    last: _Day | None = None
    """Last day of a date or time, included."""

    @model_validator(mode="after")
    def _one_form(self) -> Domain:
        forms = (self.values,), (self.low, self.high), (self.first, self.last)
        if sum(any(end is not None for end in form) for form in forms[1:]) > 1 or not any(
            all(end is not None for end in form) for form in forms
        ):
            raise ValueError(
                "a domain is {values: [...]}, {low: ..., high: ...} or, for dates, {first: ..., last: ...}"
            )
        if self.first is not None and self.last is not None and self.ends(time=True)[0] > self.ends(time=True)[1]:
            raise ValueError("the first day must not be after the last")
        if self.step is not None and self.low is None:
            raise ValueError("a step belongs to low and high")
        if self.low is not None and self.high is not None and not -math.inf < self.low <= self.high < math.inf:
            raise ValueError("low and high must be finite numbers, low not above high")
        return self

    def ends(self, *, time: bool) -> tuple[Any, Any]:
        """The first and last day, or with ``time`` the first and last moment; a day as the last includes all of it."""
        return _moment(self.first, last=False, time=time), _moment(self.last, last=True, time=time)


def _moment(end: date | None, *, last: bool, time: bool) -> Any:
    if end is None:
        return None
    if not time:
        return end.date() if isinstance(end, datetime) else end
    return end if isinstance(end, datetime) else datetime.combine(end, datetime.max.time() if last else _MIDNIGHT)


_MIDNIGHT = time()
_MARKS = (
    "Numbers are read as 1234.5, 1234,5, 1.234,5 or 1,234.5, in one format per column and without ambiguous separators"
)
_DAYS = "Dates are read as 1990-01-31, 31.01.1990, 31/01/1990 or 01/31/1990, in one unambiguous format per column"
_WRITTEN = {
    **dict.fromkeys(("integer", "number"), f"{_MARKS}. "),
    **dict.fromkeys(("date", "datetime"), f"{_DAYS}. "),
}
"""Accepted text formats by kind, for error messages."""


class Column(DocumentedModel):
    """One column of the schema, as a recipe declares it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role = Role.UNDECIDED
    """The role of the column in a disclosure. A release needs it."""
    kind: Kind | None = None
    """Kind of values. Default: as stored in the file."""
    hierarchy: SerializeAsAny[Hierarchy] | None = None
    """Generalization hierarchy. Default: the value itself, then ``*``."""
    domain: Domain | None = None
    """Declared, public set of values. Default: none; observed values are private."""
    missing: Literal["category", "wildcard", "suppressed"] = "category"
    """Meaning of an empty cell in equivalence classes: a value of its own, a wildcard, or a suppressed value."""
    decided_by: str | None = None
    """Who decided the role. Published with the release."""
    reason: str | None = None
    """Why the column has its role. Published with the release."""

    missing_codes: tuple[int | float | str | tuple[int | float, int | float], ...] = ()
    """Codes for missing values (-9, 999, ``n/a``; a pair is a range), which are read as empty cells."""

    @field_validator("missing_codes", mode="before")
    @classmethod
    def _written(cls, value: object) -> object:
        if not isinstance(value, list | tuple):
            return value
        if any(isinstance(code, bool) for code in value):
            raise ValueError("true and false cannot be missing codes")
        # YAML reads 9999-12-31 as a date
        return [code.isoformat() if isinstance(code, date) else code for code in value]

    @field_validator("missing_codes")
    @classmethod
    def _sound(cls, codes: tuple[Any, ...]) -> tuple[Any, ...]:
        for code in codes:
            if isinstance(code, str) and not code.strip():
                raise ValueError("an empty cell is already missing")
            if isinstance(code, int | float) and not math.isfinite(code):
                raise ValueError("a missing code is a finite number, a word, or a pair [low, high]")
            if isinstance(code, tuple) and not code[0] <= code[1]:
                raise ValueError("a range of missing codes is a pair [low, high], low not above high")
        return codes

    @field_serializer("missing_codes", when_used="json")
    def _plain_codes(self, codes: tuple[Any, ...]) -> list[Any]:
        """Write infinity as text: JSON lacks it, and SPSS uses it in ranges."""
        return [[str(e) if math.isinf(e) else e for e in c] if isinstance(c, tuple) else c for c in codes]

    @field_validator("hierarchy", mode="before")
    @classmethod
    def _named_part(cls, value: object, info: Any) -> object:
        return hierarchy_from_dict(value, base=(info.context or {}).get("base"))

    @property
    def askable(self) -> bool:
        """Whether queries may name the column: not if it identifies people, is dropped, or waits for a decision.

        A declaration that says nothing of a role is one for queries. Missing codes would be read as values.
        """
        waits = self.role is Role.UNDECIDED and "role" in self.model_fields_set
        return not waits and not self.missing_codes and self.role not in (Role.IDENTIFIER, Role.DROP)

    def cast(self, series: pl.Series) -> pl.Series:
        """Cast a column to its declared kind and blank its missing codes.

        The error counts values that do not fit and never shows them.
        """
        if self.missing_codes:
            series = series.set(is_missing(series, self.missing_codes), None)
        if self.kind is None or Kind.of(series.dtype) == self.kind:
            return series
        fitted = fit(series, self.kind)
        bad = (fitted.is_null() & series.is_not_null()).arg_true()
        if len(bad):
            raise WrongKind(
                f"Column `{series.name}` is declared {self.kind}, but {len(bad)} of its {len(series)} values are not "
                f"(first in row {bad[0] + 1}).",
                fix=f"{_WRITTEN.get(self.kind.value, '')}Add codes for missing values to missing_codes,"
                " change its kind in the recipe, or clean the file.",
                column=series.name,
                rows=tuple(bad.head(10).to_list()),
            )
        return fitted
