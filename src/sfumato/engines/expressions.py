"""Expressions of engine statements: typed, frozen nodes. Each engine's SQL is generated from them.

The type of every node is known when it is built: int, huge (more than 64 bits), float, text, date, time, flag or null.
No node raises on any data, whatever the engine: generators write each operation so that it cannot. What a node costs at
most is known, too, whatever the data: its size with all subqueries written out, and the length of its texts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, ClassVar

Size = tuple[float, float]
"""Largest absolute value, and smallest one that is not zero. Values are finite and not NaN."""
Origin = tuple[str, str]
"""A stored table and its column."""
_NUMBERS = ("int", "huge", "float")
STORED_TEXT = 1_000
"""Characters of a private text that are read. Further ones are cut off, of every row alike."""
MOST_TEXT = 10_000
"""Characters of one computed text at most."""
_WRITTEN = 48
"""Characters of a number, a date or a flag as text at most."""


@dataclass(frozen=True)
class Expression:
    """One value per row (or per group, for aggregates)."""

    nodes: int = field(init=False, compare=False, repr=False)
    """Number of nodes, those that occur several times counted as often, and a column as what it stands for: engines
    write subqueries out, so that their time to plan grows with it."""
    depth: int = field(init=False, compare=False, repr=False)
    width: int = field(init=False, compare=False, repr=False)
    """Characters of the value at most, if it is a text."""
    written: int = field(init=False, compare=False, repr=False)
    """Characters of all texts that are made to compute the value of one row, at most."""
    made: frozenset[Expression] = field(init=False, compare=False, repr=False)
    """The texts that are made for it, without those that these are made of. One that occurs several times, because it
    is compared with several others for example, is made once."""
    makes_text: ClassVar[bool] = False
    """Whether a text that it gives is a new one, not one of its parts."""

    def __post_init__(self) -> None:
        nodes, depth, width = 1, 0, self._width()
        made: frozenset[Expression] = frozenset()
        for part in self.parts():
            nodes += part.nodes
            depth = max(depth, part.depth)
            made |= part.made
        new = self.makes_text and width > 0
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "depth", depth + 1)
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "written", sum(text.written for text in made) + (width if new else 0))
        object.__setattr__(self, "made", frozenset({self}) if new else made)

    def _width(self) -> int:
        """The longest of its parts: what passes a text on makes it no longer. Nodes that make it longer say so."""
        return max((part.width for part in self.parts()), default=0)

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
    of: tuple[Expression, ...] = field(default=(), compare=False, repr=False)
    """What it stands for: the one of these expressions that the row has. Only their costs are read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for cost in ("nodes", "depth", "width", "written"):
            if self.of:
                object.__setattr__(self, cost, max(getattr(node, cost) for node in self.of))
        object.__setattr__(self, "made", frozenset({self} if self.written else ()))
        object.__setattr__(self, "of", ())

    def _width(self) -> int:
        return MOST_TEXT if self.kind == "text" else 0

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
    most: int | None = None
    """Characters of a text after which it is cut; None for public texts, which are read whole."""

    def _width(self) -> int:
        return 0 if self.kind != "text" else MOST_TEXT if self.most is None else self.most

    @property
    def type(self) -> str:
        return self.kind


@dataclass(frozen=True)
class Constant(Expression):
    """A value that is written out."""

    value: Any
    kind: str

    def _width(self) -> int:
        return len(self.value) if isinstance(self.value, str) else 0

    @property
    def type(self) -> str:
        return self.kind


@dataclass(frozen=True)
class Unary(Expression):
    a: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (self.a,)

    @property
    def type(self) -> str:
        return self.a.type


@dataclass(frozen=True)
class Binary(Expression):
    a: Expression
    b: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (self.a, self.b)

    @property
    def type(self) -> str:
        return self.a.type


@dataclass(frozen=True)
class Variadic(Expression):
    items: tuple[Expression, ...]

    def parts(self) -> tuple[Expression, ...]:
        return self.items


class FlagValued:
    @property
    def type(self) -> str:
        return "flag"

    def _width(self) -> int:
        return 0


@dataclass(frozen=True)
class Cast(Unary):
    """A conversion; missing where it is not possible."""

    to: str
    makes_text: ClassVar[bool] = True

    def _width(self) -> int:
        return 0 if self.to != "text" else self.a.width if self.a.type == "text" else _WRITTEN

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


class Modulo(Binary):
    """The remainder of a division that truncates towards zero, of two whole numbers or two floats."""


class Quotient(Binary):
    """The whole quotient of two whole numbers that are not negative."""


@dataclass(frozen=True)
class ShiftRight(Unary):
    """A whole number that is not negative, without its lowest bits."""

    bits: int


class Negative(Unary):
    """The negative of a number."""


@dataclass(frozen=True)
class Compare(FlagValued, Expression):
    """``= <> < <= > >=`` of two values of one family; text is ordered by its bytes."""

    sign: str
    a: Expression
    b: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (self.a, self.b)


class And(FlagValued, Variadic):
    """All conditions hold."""


class Or(FlagValued, Variadic):
    """Some condition holds."""


class Not(FlagValued, Unary):
    """A condition does not hold."""


class IsNull(FlagValued, Unary):
    """A value is missing."""


@dataclass(frozen=True)
class IsTruth(FlagValued, Unary):
    """A flag is TRUE, or is FALSE; never missing."""

    truth: bool


@dataclass(frozen=True)
class In(FlagValued, Expression):
    """A value is one of some constants."""

    a: Expression
    items: tuple[Constant, ...]

    def parts(self) -> tuple[Expression, ...]:
        return (self.a, *self.items)


@dataclass(frozen=True)
class Case(Expression):
    """The result of the first condition that holds."""

    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression

    def parts(self) -> tuple[Expression, ...]:
        return (*(part for branch in self.branches for part in branch), self.default)

    def _width(self) -> int:
        return max(self.default.width, *(result.width for _, result in self.branches))

    @property
    def type(self) -> str:
        return _common(*(result for _, result in self.branches), self.default)


class Coalesce(Variadic):
    """The first value that is not missing."""

    @property
    def type(self) -> str:
        return _common(*self.items)


@dataclass(frozen=True)
class Extreme(Variadic):
    """The least or greatest of the values that are not missing; NaN is above all numbers."""

    least: bool

    @property
    def type(self) -> str:
        return _common(*self.items)


class NullIf(Binary):
    """The first value, missing where it equals the second."""


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


def constant(value: object) -> Constant:
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


def standing_for(name: str, *nodes: Expression, kind: str = "", table: str = "") -> ColumnRef:
    """A column of a subquery that has the value of an expression, or of one of several, at the costs of these."""
    return ColumnRef(name, kind or nodes[0].type, table, of=nodes)


def equal(a: Expression, b: Expression) -> Compare:
    return Compare("=", a, b)


def when(condition: Expression, result: Expression, default: Expression = NOTHING) -> Case:
    return Case(((condition, result),), default)


def all_of(*conditions: Expression) -> Expression:
    """All conditions together; those that are always true are left out.

    >>> a, b = ColumnRef("a", "flag"), ColumnRef("b", "flag")
    >>> all_of(TRUE, a) == a, all_of(all_of(a, b), TRUE) == And((a, b)), all_of() == TRUE
    (True, True, True)
    """
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
