"""Declaration of a column: role, kind of values, domain and hierarchy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

import polars as pl
from pydantic import ConfigDict, field_serializer, field_validator

from sfumato.data.declared import kind_of_values
from sfumato.data.missing import is_missing
from sfumato.dataset.casting import fit
from sfumato.dataset.domain import AnyDomain, PeriodDomain, RangeDomain, Value, ValuesDomain
from sfumato.dataset.hierarchy import Hierarchy
from sfumato.errors import WrongKind
from sfumato.field_docs import DocumentedModel
from sfumato.rationals import rational
from sfumato.registry import PartOf


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


PLAIN_FIX = "Say in `reason` why nobody can use it to find a person."
"""How a plain column comes by its reason."""


def plain_needs_reason(names: Iterable[str]) -> str:
    """The refusal of plain columns that nobody decided with a reason."""
    return f"A reason is required for {', '.join(f'`{name}`' for name in names)}: a plain column leaves unchanged."


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

    def fitted(self, value: Value) -> Value:
        """A declared value as a value of this kind; one that is none is refused."""
        match self:
            case Kind.CATEGORY:
                return str(value)
            case Kind.INTEGER:
                number = rational(value)  # type: ignore[arg-type]
                if number.denominator != 1:
                    raise ValueError("not whole")
                return int(number)
            case Kind.NUMBER:
                number = rational(value)  # type: ignore[arg-type]
                return value if isinstance(value, int | float) else float(number)
            case Kind.BOOLEAN:
                if not isinstance(value, bool):
                    raise ValueError("neither true nor false")
                return value
            case Kind.DATE:
                day = value if isinstance(value, date) else date.fromisoformat(str(value))
                if isinstance(day, datetime):
                    raise ValueError("a time, not a date")
                return day
            case Kind.DATETIME:
                if isinstance(value, date) and not isinstance(value, datetime):
                    return datetime(value.year, value.month, value.day)
                moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
                return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def distinct_values(values: Iterable[Value], kind: Kind) -> tuple[Value, ...]:
    """Values that engines tell apart: as floats, neighbouring whole numbers above 2**53 are one.

    >>> distinct_values((2**53, 2**53 + 1), Kind.NUMBER), distinct_values((2**53, 2**53 + 1), Kind.INTEGER)
    ((9007199254740992,), (9007199254740992, 9007199254740993))
    """
    found: dict[Value, Value] = {}
    for value in values:
        found.setdefault(float(value) if kind is Kind.NUMBER else value, value)  # type: ignore[arg-type]
    return tuple(found.values())


MissingCode: TypeAlias = int | float | str | tuple[int | float, int | float]
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
    hierarchy: Annotated[Hierarchy, PartOf("hierarchy")] | None = None
    """Generalization hierarchy. Default: the value itself, then ``*``."""
    domain: AnyDomain | None = None
    """Declared, public set of values. Default: none; observed values are private."""
    missing: Literal["category", "wildcard", "suppressed"] = "category"
    """Meaning of an empty cell in equivalence classes: a value of its own, a wildcard, or a suppressed value."""
    decided_by: str | None = None
    """Who decided the role. Published with the release."""
    reason: str | None = None
    """Why the column has its role. Published with the release."""

    missing_codes: tuple[MissingCode, ...] = ()
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
    def _sound(cls, codes: tuple[MissingCode, ...]) -> tuple[MissingCode, ...]:
        for code in codes:
            if isinstance(code, str) and not code.strip():
                raise ValueError("an empty cell is already missing")
            if isinstance(code, int | float) and not math.isfinite(code):
                raise ValueError("a missing code is a finite number, a word, or a pair [low, high]")
            if isinstance(code, tuple) and not code[0] <= code[1]:
                raise ValueError("a range of missing codes is a pair [low, high], low not above high")
        return codes

    @field_serializer("missing_codes", when_used="json")
    def _plain_codes(self, codes: tuple[MissingCode, ...]) -> list[object]:
        """Write infinity as text: JSON lacks it, and SPSS uses it in ranges."""
        return [[str(e) if math.isinf(e) else e for e in c] if isinstance(c, tuple) else c for c in codes]

    @property
    def read_kind(self) -> Kind | None:
        """The kind that cells are read as where nothing may be found from the rows: declared, or that of the domain."""
        if self.kind is not None or self.domain is None:
            return self.kind
        if isinstance(self.domain, ValuesDomain):
            return Kind(kind_of_values(self.domain.values))
        if isinstance(self.domain, RangeDomain):
            return Kind.NUMBER
        return Kind(kind_of_values((self.domain.first, self.domain.last)))

    @property
    def values(self) -> tuple[Value, ...] | None:
        """The declared values as values of the kind, each once: two ways to write a value are one group."""
        kind = self.read_kind
        if kind is None or not isinstance(self.domain, ValuesDomain):
            return None
        return distinct_values((kind.fitted(value) for value in self.domain.values), kind)

    @property
    def public_domain(self) -> ValuesDomain | RangeDomain | PeriodDomain | None:
        """The declared domain, values as values of the kind; that of a boolean is known."""
        if self.domain is None and self.kind is Kind.BOOLEAN:
            return ValuesDomain(values=(False, True))
        values = self.values
        return self.domain if values is None else ValuesDomain(values=values)

    @property
    def usable(self) -> bool:
        """Whether it may leave in some form: not if it identifies people, is dropped, or waits for a decision.

        A declaration that says nothing of a role is one for queries; plans refuse it.
        """
        waits = self.role is Role.UNDECIDED and "role" in self.model_fields_set
        return not waits and self.role not in (Role.IDENTIFIER, Role.DROP)

    @property
    def askable(self) -> bool:
        """Whether queries may name the column: it is usable. Missing codes would be read as values."""
        return self.usable and not self.missing_codes

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
