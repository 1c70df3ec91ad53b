"""Joint measurement: counts, sums, means and variances of the same rows from few noisy numbers (shares).

A value x between a and b divides a row's weight of 1 into two shares, (x - a)/(b - a) for the upper end and the rest
for the lower. Neither is negative and together they are 1, so one row changes both sums by 1 in total: both can have
the noise that a single count would need. The number of rows is the sum U + L of the shares and the sum of the values is
b·U + a·L. With an end at 0 the sum has the same variance as if it were the only aggregate, and the count has twice the
variance of a count alone; splitting the cost in two would give each four times its variance.

The same in degree 2: (1-t)², 2t(1-t) and t² (Bernstein's polynomials, t = (x - a)/(b - a)) are not negative and add up
to 1, and the sum of squares is among what they span. Rows without a value may form a further share, so that COUNT(*)
and COUNT(x) come out of the same numbers. A sum without a mean treats them as zeros, which it may. The number of rows
for which a condition holds is the sum of their ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.engines.expressions import (
    NOTHING,
    TRUE,
    And,
    Arithmetic,
    Case,
    ColumnRef,
    Expression,
    Quotient,
    all_of,
    constant,
    when,
)
from sfumato.query.plan.aggregates import (
    Aggregate,
    BernsteinSum,
    BinCounts,
    Count,
    FixedPoint,
    Moments,
    Sum,
)
from sfumato.query.plan.outputs import (
    Composite,
    LinearCombination,
    Mean,
    Measured,
    Output,
    OutputSpread,
    Ratio,
    SpreadOf,
)
from sfumato.query.plan.query import Query
from sfumato.query.plan.row_steps import changed_step

_FINE = 20
"""Squares of up to 2**20 steps are summed; a wider number is first put on a coarser grid."""
_SCALED = 20
"""A row's weight is divided in at least 2**20 steps where a unit's shares may be scaled down to whole steps."""
_HOSTS = 2
"""A count that several sums could give is the mean of this many at most."""


@dataclass
class _Block:
    """A joint measurement under construction."""

    of: FixedPoint
    condition: Expression
    """Condition of the rows whose values are measured."""
    degree: int
    scaled: bool
    """Whether the shares of a unit with too many rows are scaled down, which takes finer steps than adding them up."""
    rows: Expression | None = None
    """Condition of the rows that are counted, with missing values as zeros; None: rows that have a value."""
    others: Expression | None = None
    """Condition of the rows of which those without a value are a further share; None: there is no such share."""
    first: int = 0
    """Index of its first aggregate; column names contain it."""

    @property
    def ends(self) -> tuple[int, int]:
        """Lower end and width, in steps of ``grid``."""
        if self.rows is not None:
            low = min(self.of.low, 0)
            return low, max(self.of.high, 0, low + 1) - low
        width = max(self.of.high - self.of.low, 1)
        return self.of.low, -(-width // self.coarse)

    @property
    def coarse(self) -> int:
        width = max(self.of.high - self.of.low, 1)
        return 1 << max(0, (width - 1).bit_length() - _FINE) if self.degree == 2 else 1

    @property
    def fine(self) -> int:
        """How many steps of a share each step of the number has."""
        return 1 << max(0, -(-_SCALED // self.degree) - self.ends[1].bit_length() + 1) if self.scaled else 1

    @property
    def counted(self) -> Expression:
        return self.rows if self.rows is not None else all_of(self.condition, self.of.present)

    def shares(self) -> list[Aggregate]:
        low, width = self.ends
        has = all_of(self.condition, self.of.present)
        inside = self.of.node if self.rows is None else when(has, self.of.node, constant(0))
        up: Expression = Arithmetic("-", inside, constant(low))
        if self.coarse > 1:  # to the nearest
            up = Quotient(Arithmetic("+", up, constant(self.coarse // 2)), constant(self.coarse))
        if self.fine > 1:
            up, width = Arithmetic("*", up, constant(self.fine)), width * self.fine
        whole = width**self.degree
        x = ColumnRef(f"x{self.first}", "int", size=(float(width), 1.0))
        down = Arithmetic("-", constant(width), x)
        steps: list[Expression] = [down, x]
        if self.degree == 2:
            twice = Arithmetic("*", Arithmetic("*", constant(2), x), down)
            steps = [Arithmetic("*", down, down), twice, Arithmetic("*", x, x)]
        columns: dict[int, tuple[str, Expression]] = {0: (x.name, when(self.counted, up))}
        if self.others is not None:
            none = ColumnRef(f"x{self.first + len(steps)}", "int", size=(float(whole), 1.0))
            other = Case(((self.counted, NOTHING), (self.others, constant(whole))), NOTHING)
            columns[len(steps)] = (none.name, other)
            steps.append(none)
        common: dict[str, Any] = {
            "low": 0,
            "high": whole,
            "grid": Fraction(1, whole),
            "parts": len(steps),
            "degree": self.degree,
        }
        return [
            BernsteinSum(steps=step, column=columns.get(place), place=place, **common)
            for place, step in enumerate(steps)
        ]

    @property
    def rounding(self) -> Fraction:
        """The most that rounding changes one row's number."""
        return self.of.rounding + (self.of.grid * self.coarse / 2 if self.coarse > 1 else 0)

    def _linear(self, weights: tuple[Fraction | int, ...], unit: Fraction, what: str) -> LinearCombination:
        terms = tuple((self.first + i, Fraction(weight)) for i, weight in enumerate(weights) if weight)
        return LinearCombination(terms=terms, unit=unit, what=what)

    def count(self, *, all_rows: bool) -> LinearCombination:
        parts = self.degree + 1 + (all_rows and self.others is not None)
        what = "Number of rows" if all_rows or self.rows is not None else "Number of values"
        return replace(self._linear((1,) * parts, Fraction(1), what), whole=True)

    def total(self) -> LinearCombination:
        low, width = self.ends
        bottom, high = self.of.grid * low, self.of.grid * (low + width * self.coarse)
        weights = (bottom, high) if self.degree == 1 else (bottom, (bottom + high) / 2, high)
        unit = max(abs(self.of.low), abs(self.of.high)) * self.of.grid
        rows = tuple(range(self.first, self.first + self.degree + 1))
        return replace(self._linear(weights, unit or Fraction(1), "Sum"), rounding=self.rounding, rows=rows)

    def spread(self) -> tuple[LinearCombination, LinearCombination]:
        """The sums of squared and of plain distances from the middle of the range."""
        span = self.ends[1] * self.coarse * self.of.grid
        second = self._linear((span**2 / 4, -(span**2) / 4, span**2 / 4), span**2 / 4, "Sum of squares")
        return second, self._linear((-span / 2, Fraction(0), span / 2), span / 2, "Sum of distances")


def combine_aggregates(query: Query, *, counted: bool = False) -> Query:
    """Rewrite a query so that aggregates of the same rows are measured jointly as shares.

    Unless each row is a unit, every sum, mean and count is measured as shares of the same rows, those that
    ``_common_rows`` gives. Of a unit with too many of these rows all of them then lose the same share, whatever their
    own conditions are, so that a quotient of any two is that of the unit's rows. With ``counted`` all sums are measured
    with the number of their rows: private keys can then be selected by that count.
    """
    blocks: list[_Block] = []
    scaled = not query.rows.by_row
    common = _common_rows(query.aggregates) if scaled else None
    for moments in (m for m in query.aggregates if isinstance(m, Moments)):
        block = next((b for b in blocks if (b.of, b.condition) == (moments.of, moments.condition)), None)
        if block is None:
            blocks.append(_Block(of=moments.of, condition=moments.condition, degree=moments.degree, scaled=scaled))
        else:
            block.degree = max(block.degree, moments.degree)
    means = list(blocks)
    counts = [m for m in query.aggregates if isinstance(m, Count) and not m.once]
    sums = [m for m in query.aggregates if isinstance(m, Sum) and m.of is not None]
    hosted = {_tests(block.counted) for block in means}
    asked = {_tests(m.condition) for m in counts}
    for block in means:
        if common is not None:
            block.others = common if _tests(common) != _tests(block.counted) else None
        elif (counted and any((m.of, m.condition) == (block.of, block.condition) for m in sums)) or (
            _tests(block.condition) in asked - hosted
        ):
            block.others = block.condition
            hosted.add(_tests(block.condition))
    alone: dict[Aggregate, _Block] = {}
    for aggregate in sums:
        of, condition = aggregate.of, aggregate.condition
        assert of is not None
        if any((b.of, b.condition) == (of, condition) for b in means):
            continue
        if common is not None or counted or _tests(condition) in asked - hosted:
            alone[aggregate] = _Block(of=of, condition=condition, degree=1, scaled=scaled, rows=common or condition)
    if common is not None:
        known = {*hosted, _tests(common)}
        for count in counts:
            if _tests(count.condition) not in known:
                alone[count] = _Block(of=_ONE, condition=count.condition, degree=1, scaled=scaled, rows=common)
    blocks += alone.values()
    families = [_family(m) for m in query.aggregates if isinstance(m, BinCounts)]
    if not blocks and len(set(families)) == len(families):
        return query
    return _rewritten(query, blocks, means, alone)


_ONE = FixedPoint(value=constant(1), present=TRUE, least=Fraction(1), most=Fraction(1))
"""What is summed to count rows."""


def _ordered(condition: Expression) -> tuple[Expression, ...]:
    return condition.items if isinstance(condition, And) else (condition,)


def _tests(condition: Expression) -> frozenset[Expression]:
    """The conditions that hold together, in any order."""
    return frozenset(_ordered(condition)) - {TRUE}


def _common_rows(aggregates: Sequence[Aggregate]) -> Expression:
    """The condition of the rows that all sums, means and counts are shares of: what their conditions have in common.

    It holds for every row that one of them reads, and is the condition itself where they have the same.
    """
    read: list[Expression] = []
    for aggregate in aggregates:
        match aggregate:
            case Moments():
                read.append(all_of(aggregate.condition, aggregate.of.present))
            case Sum() | Count(once=False):
                read.append(aggregate.condition)
    if not read:
        return TRUE
    shared = frozenset.intersection(*map(_tests, read))
    return all_of(*dict.fromkeys(test for test in _ordered(read[0]) if test in shared))


def _family(cells: BinCounts) -> BinCounts:
    """The counts without the rank: equal for quantiles that can be measured by one draw."""
    return replace(cells, rank=Fraction(0))


def _rewritten(query: Query, blocks: list[_Block], means: list[_Block], alone: dict[Aggregate, _Block]) -> Query:
    def mean_of(of: FixedPoint | None, condition: Expression) -> _Block | None:
        return next((b for b in means if (b.of, b.condition) == (of, condition)), None)

    def count_of(condition: Expression) -> LinearCombination | None:
        own = [b for b in blocks if _tests(b.counted) == _tests(condition)]
        if not own:
            block = next((b for b in means if b.others is not None and _tests(b.others) == _tests(condition)), None)
            return None if block is None else block.count(all_rows=True)
        exact = [b.count(all_rows=False) for b in own[:_HOSTS]]
        terms = tuple((index, weight / len(exact)) for one in exact for index, weight in one.terms)
        return replace(exact[0], terms=terms)

    aggregates: list[Aggregate] = []
    for block in blocks:
        block.first = len(aggregates)
        aggregates += block.shares()
    places: dict[int, object] = {}
    for i, aggregate in enumerate(query.aggregates):
        match aggregate:
            case BinCounts():
                if i in places:
                    continue
                own = [(k, m) for k, m in enumerate(query.aggregates)
                       if isinstance(m, BinCounts) and _family(m) == _family(aggregate)]  # fmt: skip
                for k, m in sorted(own, key=lambda pair: pair[1].rank):  # together and ascending: one draw
                    places[k] = len(aggregates)
                    aggregates.append(m)
                continue
            case Moments():
                places[i] = mean_of(aggregate.of, aggregate.condition)
                continue
            case Count(once=False) if (ones := alone.get(aggregate)) is not None:
                places[i] = replace(ones.total(), what="Number of rows", whole=True)
                continue
            case Count(once=False) if (count := count_of(aggregate.condition)) is not None:
                places[i] = count
                continue
            case Sum():
                shared = alone.get(aggregate) or mean_of(aggregate.of, aggregate.condition)
                if shared is not None:
                    places[i] = shared.total()
                    continue
        places[i] = len(aggregates)
        aggregates.append(aggregate)
    change = _changer(places)
    return replace(
        query,
        aggregates=tuple(aggregates),
        outputs=tuple((name, change(output)) for name, output in query.outputs),
        steps=tuple(changed_step(step, change) for step in query.steps),
    )


def _changer(places: dict[int, Any]) -> Callable[[Output], Output]:
    def leaf(value: LinearCombination) -> Measured:
        return Measured(value, "linear")

    def change(output: Output) -> Output:
        match output:
            case Measured(int() as index):
                place = places[index]
                return leaf(place) if isinstance(place, LinearCombination) else replace(output, number=place)
            case Mean(index, low, high):
                block = places[index]
                ratio = Ratio(total=block.total(), count=block.count(all_rows=False), low=low, high=high,
                              rounding=float(block.rounding))  # fmt: skip
                return Measured(ratio, "mean")
            case SpreadOf(index, span, sample, root):
                block = places[index]
                second, first = block.spread()
                args = (leaf(second), leaf(first), leaf(replace(block.count(all_rows=False), whole=False)))
                # Numbers that move by r each move the variance by at most 2·r·(standard deviation) + r².
                step = float(block.rounding)
                return OutputSpread(args, span, sample, root, 2 * step * span**0.5 + step**2)
            case Composite(args):
                return replace(output, args=tuple(change(arg) for arg in args))
            case _:
                return output

    return change


def joint_ranks(query: Query, index: int) -> tuple[Fraction, ...]:
    """Ranks of the quantiles that are selected together, starting here; empty if an earlier aggregate covers them."""
    cells = query.aggregates[index]
    assert isinstance(cells, BinCounts)
    before = query.aggregates[index - 1] if index else None
    if isinstance(before, BinCounts) and _family(before) == _family(cells):
        return ()
    ranks = []
    for other in query.aggregates[index:]:
        if not isinstance(other, BinCounts) or _family(other) != _family(cells):
            break
        ranks.append(other.rank)
    return tuple(ranks)
