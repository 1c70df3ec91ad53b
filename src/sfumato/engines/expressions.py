"""Expressions of engine statements: typed, frozen nodes. Each engine's SQL is generated from them.

The type of every node is known when it is built: int, huge (more than 64 bits), float, text, date, time, flag or null.
No node raises on any data, whatever the engine: generators write each operation so that it cannot.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

__all__ = [
    "FALSE",
    "NOTHING",
    "TRUE",
    "And",
    "Arithmetic",
    "Case",
    "Cast",
    "Coalesce",
    "ColumnRef",
    "Compare",
    "Constant",
    "CountRows",
    "DatePart",
    "DenseRank",
    "Expression",
    "Extreme",
    "Function",
    "Hash",
    "In",
    "IsNull",
    "IsTruth",
    "Largest",
    "Like",
    "Modulo",
    "Negative",
    "Not",
    "NullIf",
    "Or",
    "Origin",
    "Quotient",
    "Read",
    "RoundTo",
    "RowNumber",
    "Shaped",
    "ShiftRight",
    "Size",
    "StoredUnit",
    "Substring",
    "Total",
    "Unit",
    "all_of",
    "any_of",
    "constant",
    "double",
    "equal",
    "walk",
    "when",
]

Size = tuple[float, float]
"""Largest absolute value, and smallest one that is not zero. Values are finite and not NaN."""
Origin = tuple[str, str]
"""A stored table and its column."""
_NUMBERS = ("int", "huge", "float")


@dataclass(frozen=True)
class Expression:
    """One value per row (or per group, for aggregates)."""

    nodes: int = field(init=False, compare=False, repr=False)
    """Number of nodes, those that occur several times counted as often: what a generator writes grows with it."""
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        nodes, depth = 1, 0
        for part in self.parts():
            nodes += part.nodes
            depth = max(depth, part.depth)
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "depth", depth + 1)

    @property
    @abstractmethod
    def type(self) -> str:
        """The type of the value."""

    def parts(self) -> tuple[Expression, ...]:
        """The expressions that the node is computed from."""
        return ()


def walk(node: Expression) -> Iterator[Expression]:
    """The node and everything under it."""
    yield node
    for part in node.parts():
        yield from walk(part)


@dataclass(frozen=True)
class ColumnRef(Expression):
    """A column of a subquery, with the type and size of the expression that it was computed by."""

    name: str
    kind: str
    table: str = ""
    size: Size | None = field(default=None, compare=False)

    @property
    def type(self) -> str:
        return self.kind


@dataclass(frozen=True)
class Unit(Expression):
    """The privacy unit that a row belongs to, as stored in ``origin``; as text where it is from several tables."""

    origin: Origin | None
    table: str = ""

    @property
    def type(self) -> str:
        return "unit" if self.origin else "text"


@dataclass(frozen=True)
class StoredUnit(Expression):
    """The privacy unit of a row of a stored table."""

    origin: Origin

    @property
    def type(self) -> str:
        return "unit"


@dataclass(frozen=True)
class Read(Expression):
    """A column of a stored table, read as its declared type; missing where a value does not fit it."""

    origin: Origin
    kind: str

    @property
    def type(self) -> str:
        return self.kind


@dataclass(frozen=True)
class Constant(Expression):
    """A value that is written out."""

    value: Any
    kind: str

    @property
    def type(self) -> str:
        return self.kind


@dataclass(frozen=True)
class _One(Expression):
    a: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (self.a,)

    @property
    def type(self) -> str:
        return self.a.type


@dataclass(frozen=True)
class _Two(Expression):
    a: Expression
    b: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (self.a, self.b)

    @property
    def type(self) -> str:
        return self.a.type


@dataclass(frozen=True)
class _Several(Expression):
    items: tuple[Expression, ...]

    def parts(self) -> tuple[Expression, ...]:
        return self.items


class _Flag:
    @property
    def type(self) -> str:
        return "flag"


@dataclass(frozen=True)
class Cast(_One):
    """A conversion; missing where it is not possible."""

    to: str

    @property
    def type(self) -> str:
        return self.to


@dataclass(frozen=True)
class Arithmetic(Expression):
    """``+ - * /``: of floats by IEEE 754, of whole numbers exactly (no ``/``)."""

    sign: str
    a: Expression
    b: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (self.a, self.b)

    @property
    def type(self) -> str:
        return _common(self.a, self.b)


class Modulo(_Two):
    """The remainder of a division that truncates towards zero, of two whole numbers or two floats."""


class Quotient(_Two):
    """The whole quotient of two whole numbers that are not negative."""


@dataclass(frozen=True)
class ShiftRight(_One):
    """A whole number that is not negative, without its lowest bits."""

    bits: int


class Negative(_One):
    """The negative of a number."""


@dataclass(frozen=True)
class Compare(_Flag, Expression):
    """``= <> < <= > >=`` of two values of one family; text is ordered by its bytes."""

    sign: str
    a: Expression
    b: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (self.a, self.b)


class And(_Flag, _Several):
    """All conditions hold."""


class Or(_Flag, _Several):
    """Some condition holds."""


class Not(_Flag, _One):
    """A condition does not hold."""


class IsNull(_Flag, _One):
    """A value is missing."""


@dataclass(frozen=True)
class IsTruth(_Flag, _One):
    """A flag is TRUE, or is FALSE; never missing."""

    truth: bool


@dataclass(frozen=True)
class In(_Flag, Expression):
    """A value is one of some constants."""

    a: Expression
    items: tuple[Constant, ...]

    def parts(self) -> tuple[Expression, ...]:
        return (self.a, *self.items)


@dataclass(frozen=True)
class Like(_Flag, _One):
    """A text matches a pattern, with or without regard to upper and lower case."""

    pattern: str
    fold: bool


@dataclass(frozen=True)
class Case(Expression):
    """The result of the first condition that holds."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (*(part for branch in self.branches for part in branch), self.default)

    @property
    def type(self) -> str:
        return _common(*(result for _, result in self.branches), self.default)


class Coalesce(_Several):
    """The first value that is not missing."""

    @property
    def type(self) -> str:
        return _common(*self.items)


@dataclass(frozen=True)
class Extreme(_Several):
    """The least or greatest of some values; NaN is above all numbers."""

    least: bool

    @property
    def type(self) -> str:
        return _common(*self.items)


class NullIf(_Two):
    """The first value, missing where it equals the second."""


_RESULTS = {"isnan": "flag", "length": "int", "lower": "text", "upper": "text", "trim": "text"}


@dataclass(frozen=True)
class Function(_One):
    """floor, ceil, round, trunc, sqrt, abs, isnan of floats; lower, upper, trim, length of text."""

    name: str

    @property
    def type(self) -> str:
        return _RESULTS.get(self.name, "float")


@dataclass(frozen=True)
class RoundTo(_One):
    """A float rounded to some decimals."""

    places: int

    @property
    def type(self) -> str:
        return "float"


@dataclass(frozen=True)
class Shaped(_One):
    """A text of the shape that casts to a type need; else a text that casts to a missing value."""

    shape: str

    @property
    def type(self) -> str:
        return f"{self.shape} in text"


@dataclass(frozen=True)
class Substring(_One):
    """A part of a text, from a place (counted from 1) on."""

    start: int
    length: int | None

    @property
    def type(self) -> str:
        return "text"


@dataclass(frozen=True)
class DatePart(_One):
    """A part of a date or time as a whole number."""

    part: str

    @property
    def type(self) -> str:
        return "int"


class Hash(_Several):
    """A keyed hash: at least 60 bits that are not negative as a whole number."""

    @property
    def type(self) -> str:
        return "int"


@dataclass(frozen=True)
class CountRows(Expression):
    """Number of rows with a value; of all rows without one; of different values if ``distinct``."""

    a: Expression | None = None
    distinct: bool = False
    where: Expression | None = None

    def parts(self) -> tuple[Expression, ...]:
        return tuple(part for part in (self.a, self.where) if part is not None)

    @property
    def type(self) -> str:
        return "int"


class Total(_One):
    """The exact sum of whole numbers."""

    @property
    def type(self) -> str:
        return "huge"


@dataclass(frozen=True)
class Largest(_One):
    """The largest value of a group, or its least."""

    least: bool
    where: Expression | None = None

    def parts(self) -> tuple[Expression, ...]:
        return (self.a,) if self.where is None else (self.a, self.where)


@dataclass(frozen=True)
class RowNumber(Expression):
    """The number of a row, from 1, within its partition."""

    partition: tuple[Expression, ...]
    order: tuple[Expression, ...]

    def parts(self) -> tuple[Expression, ...]:
        return (*self.partition, *self.order)

    @property
    def type(self) -> str:
        return "int"


class DenseRank(RowNumber):
    """As the number of a row, but equal rows have the same."""


TRUE, FALSE = Constant(True, "flag"), Constant(False, "flag")
NOTHING = Constant(None, "null")


def _common(*items: Expression) -> str:
    """The type of one of several results. Numbers of different types are floats if one is, else wide."""
    kinds = {item.type for item in items} - {"null"}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else "null"
    if kinds <= set(_NUMBERS):
        return "float" if "float" in kinds else "huge"
    raise AssertionError(f"values of mixed types: {sorted(kinds)}")


def constant(value: Any) -> Constant:
    """A value as a constant of its own type."""
    match value:
        case bool():
            return TRUE if value else FALSE
        case int():
            return Constant(value, "int" if -(1 << 63) <= value < 1 << 63 else "huge")
        case float():
            return Constant(value, "float")
        case datetime():
            return Constant(value, "time")
        case date():
            return Constant(value, "date")
        case str():
            return Constant(value, "text")
    raise AssertionError("no constant of this type")


def double(a: Expression) -> Expression:
    """A number as a float: floats raise no overflow error."""
    return a if a.type == "float" else Cast(a, "float")


def equal(a: Expression, b: Expression) -> Compare:
    return Compare("=", a, b)


def when(condition: Expression, result: Expression, default: Expression = NOTHING) -> Case:
    return Case(((condition, result),), default)


def all_of(*conditions: Expression) -> Expression:
    """All conditions together; those that are always true are left out."""
    items: list[Expression] = []
    for condition in conditions:
        items += condition.items if isinstance(condition, And) else [condition]
    items = [item for item in items if item != TRUE]
    return TRUE if not items else items[0] if len(items) == 1 else And(tuple(items))


def any_of(*conditions: Expression) -> Expression:
    """One of the conditions."""
    items: list[Expression] = []
    for condition in conditions:
        items += condition.items if isinstance(condition, Or) else [condition]
    return FALSE if not items else items[0] if len(items) == 1 else Or(tuple(items))
