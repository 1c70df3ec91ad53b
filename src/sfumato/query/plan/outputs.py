"""Output expressions: typed nodes over keys and measured numbers, evaluated on noisy numbers only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, kw_only=True)
class LinearCombination:
    """A weighted sum of measured numbers."""

    terms: tuple[tuple[int, Fraction], ...]
    """(measurement, weight)."""
    unit: Fraction
    """The most one row can change it; errors of different numbers are compared in this unit."""
    what: str
    whole: bool = False
    """Whether it is a count, reported as an integer."""
    rounding: Fraction = Fraction(0)
    """The most that rounding to the grid changes one row's number."""
    rows: tuple[int, ...] = ()
    """The measurements that add up to the number of rows that are rounded."""

    def moved(self, sign: int) -> LinearCombination:
        """What it would be at most (1) or at least (-1) without rounding: each of its rows by ``rounding`` away."""
        weights = dict.fromkeys(self.rows, Fraction(0)) | dict(self.terms)
        away = dict.fromkeys(self.rows, sign * self.rounding)
        return replace(self, terms=tuple((i, w + away.get(i, 0)) for i, w in weights.items()))


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A mean: a sum divided by a count of the same rows, known to lie between ``low`` and ``high``."""

    total: LinearCombination
    count: LinearCombination
    low: float
    high: float
    rounding: float = 0.0
    """The most that rounding rows to the grid changes it."""

    def beside(self, mean: Fraction) -> LinearCombination:
        """total - mean · count, which is 0 apart from noise if ``mean`` is the true mean."""
        count = dict(self.count.terms)
        terms = tuple((index, weight - mean * count.get(index, 0)) for index, weight in self.total.terms)
        extra = tuple((i, -mean * w) for i, w in count.items() if i not in dict(self.total.terms))
        return LinearCombination(terms=terms + extra, unit=self.total.unit, what="Mean")


Number = int | LinearCombination | Ratio
"""A measured number: the index of an aggregate, or what is computed from several."""


class Output(ABC):
    """An output of a query."""

    nodes: int = 1
    """Number of nodes. A column of a noisy row counts as the output that it stands for: the time to compute it grows
    with that."""
    noisy: bool = True
    """Whether it depends on a noisy number; keys and constants do not."""
    fractional: bool = False
    """Whether its type is that of fractions, whatever its value: the type of a column follows from the query alone."""

    @abstractmethod
    def family(self, keys: Sequence[str]) -> str:
        """Type family of the value ("" if it is always missing), from the families of the keys.

        TypeError if families are mixed. The check comes before anything is spent.
        """

    def parts(self) -> tuple[Output, ...]:
        return ()

    def measured(self) -> Iterator[Measured]:
        """All measured numbers in the expression."""
        for part in self.parts():
            yield from part.measured()

    def leaves(self) -> tuple[Number, ...]:
        """The distinct measured numbers in the expression."""
        return tuple(dict.fromkeys(leaf.number for leaf in self.measured()))


@dataclass(frozen=True)
class Key(Output):
    """A key of GROUP BY."""

    index: int
    noisy = False

    def family(self, keys: Sequence[str]) -> str:
        return keys[self.index]


@dataclass(frozen=True)
class Value(Output):
    """A constant."""

    value: Any
    noisy = False

    @property
    def fractional(self) -> bool:  # type: ignore[override]
        return not isinstance(self.value, int | str | None)

    def family(self, keys: Sequence[str]) -> str:
        match self.value:
            case None:
                return ""
            case str():
                return "text"
            case bool():
                return "boolean"
        return "number"


@dataclass(frozen=True)
class Measured(Output):
    """A measured number; a mode is a value of its column's family."""

    number: Number
    what: str
    """"count", "sum", "distinct", "quantile", "mode", "mean" or "linear"."""
    kind: str = "number"

    @property
    def fractional(self) -> bool:  # type: ignore[override]
        return isinstance(self.number, Ratio)

    def family(self, keys: Sequence[str]) -> str:
        return self.kind

    def measured(self) -> Iterator[Measured]:
        yield self


@dataclass(frozen=True)
class Mean(Output):
    """The mean of the numbers of one ``Moments`` aggregate, before the planner chose how to measure it."""

    index: int
    low: float
    high: float

    def family(self, keys: Sequence[str]) -> str:
        return "number"


@dataclass(frozen=True)
class SpreadOf(Output):
    """Variance or standard deviation of one ``Moments`` aggregate, before the planner chose how to measure it."""

    index: int
    span: float
    """The largest possible variance."""
    sample: bool
    root: bool

    def family(self, keys: Sequence[str]) -> str:
        return "number"


@dataclass(frozen=True)
class Composite(Output):
    """An expression over other outputs."""

    args: tuple[Output, ...]
    nodes: int = field(init=False, compare=False, repr=False)
    noisy: bool = field(init=False, compare=False, repr=False)
    fractional: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", 1 + sum(arg.nodes for arg in self.args))
        object.__setattr__(self, "noisy", any(arg.noisy for arg in self.args))
        object.__setattr__(self, "fractional", self._fraction())

    def parts(self) -> tuple[Output, ...]:
        return self.args

    def _fraction(self) -> bool:
        return any(arg.fractional for arg in self.args)

    def family(self, keys: Sequence[str]) -> str:
        return _common([arg.family(keys) for arg in self.args], "number")


@dataclass(frozen=True)
class OutputSpread(Composite):
    """Variance or standard deviation from sums of squares and of distances from the middle, and the count."""

    span: float
    sample: bool
    root: bool
    rounding: float = 0.0
    """The most that rounding rows to the grid changes the variance."""

    def _fraction(self) -> bool:
        return True


@dataclass(frozen=True)
class Operation(Composite):
    """``+ - * /`` of two numbers."""

    sign: str

    def _fraction(self) -> bool:
        return self.sign == "/" or super()._fraction()


@dataclass(frozen=True)
class LaterDate(Composite):
    """A date so much later; the last day of a month is used where a day is too late."""

    months: int = 0
    days: int = 0
    minutes: int = 0

    def family(self, keys: Sequence[str]) -> str:
        return self.args[0].family(keys)


class Minus(Composite):
    """The negative of a number."""


class Absolute(Composite):
    """The absolute value of a number."""


@dataclass(frozen=True)
class Rounded(Composite):
    places: int

    def _fraction(self) -> bool:
        return self.places > 0 and super()._fraction()


@dataclass(frozen=True)
class Clipped(Composite):
    low: float
    high: float

    def _fraction(self) -> bool:
        return super()._fraction() or not (self.low.is_integer() and self.high.is_integer())


@dataclass(frozen=True)
class Applied(Composite):
    """An increasing function of a number: sqrt, exp, ln, log10, log2, floor, ceil, trunc, sign, rint or float.

    The result is missing where the function is undefined.
    """

    function: str

    def _fraction(self) -> bool:
        return self.function not in ("floor", "ceil", "trunc", "sign", "rint")


@dataclass(frozen=True)
class Extremum(Composite):
    """LEAST or GREATEST of some numbers; missing where one is."""

    least: bool


class Power(Composite):
    """A number to the power of another; missing where it is undefined."""

    def _fraction(self) -> bool:
        return True


class Remainder(Composite):
    """The remainder of a division that truncates towards zero."""


class Joined(Composite):
    """Concatenated texts; missing where one is."""

    def family(self, keys: Sequence[str]) -> str:
        return _common([arg.family(keys) for arg in self.args], "text")


class Written(Composite):
    """A value as text."""

    def family(self, keys: Sequence[str]) -> str:
        for arg in self.args:
            arg.family(keys)
        return "text"


@dataclass(frozen=True)
class OutputComparison(Composite):
    """``= <> < <= > >=`` of two values of one family."""

    sign: str

    def family(self, keys: Sequence[str]) -> str:
        _common([arg.family(keys) for arg in self.args])
        return "boolean"


@dataclass(frozen=True)
class Logic(Composite):
    """AND (``every``) or OR. A missing value counts as false."""

    every: bool

    def family(self, keys: Sequence[str]) -> str:
        return _common([arg.family(keys) for arg in self.args], "boolean")


class Negation(Composite):
    """NOT. A missing value counts as false."""

    def family(self, keys: Sequence[str]) -> str:
        return _common([arg.family(keys) for arg in self.args], "boolean")


class Missing(Composite):
    """IS NULL."""

    def family(self, keys: Sequence[str]) -> str:
        for arg in self.args:
            arg.family(keys)
        return "boolean"


class First(Composite):
    """COALESCE: the first value that is not missing."""

    def family(self, keys: Sequence[str]) -> str:
        return _common([arg.family(keys) for arg in self.args])


class Choice(Composite):
    """CASE with one condition: its result if the condition holds, else the other."""

    def _fraction(self) -> bool:
        return any(arg.fractional for arg in self.args[1:])

    def family(self, keys: Sequence[str]) -> str:
        test, *results = (arg.family(keys) for arg in self.args)
        _common([test], "boolean")
        return _common(results)


def _common(families: list[str], required: str = "") -> str:
    distinct = {name for name in [*families, required] if name}
    if len(distinct) > 1:
        raise TypeError(" and ".join(sorted(distinct)))
    return distinct.pop() if distinct else ""
