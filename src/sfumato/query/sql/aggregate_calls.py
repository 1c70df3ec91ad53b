"""Aggregate functions of SELECT, HAVING and ORDER BY: from syntax nodes to the aggregates that are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.dataset import Kind
from sfumato.engines.expressions import TRUE, Arithmetic, Compare, Expression, all_of, any_of, constant
from sfumato.errors import QueryRefused
from sfumato.query.plan.aggregates import (
    Aggregate,
    Count,
    DistinctCount,
    bin_counts_aggregate,
    bounds_problem,
    moments_aggregate,
    present,
    sum_aggregate,
    value_counts_aggregate,
)
from sfumato.query.plan.outputs import Clipped, Mean, Measured, Operation, Output, SpreadOf, Value
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.dates import dated_number
from sfumato.query.sql.expressions import ExpressionCompiler
from sfumato.query.sql.refusal import called

_MAX_AGGREGATES = 20
_MAX_CANDIDATES = 1_000


class AggregateCompiler:
    """Compiles calls of aggregate functions. Equal calls share one measured aggregate."""

    NAMES = (
        "COUNT, COUNT(DISTINCT), COUNT_IF, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE_CONT, MODE, VARIANCE, STDDEV, CORR, "
        "COVAR_POP, COVAR_SAMP, REGR_SLOPE, REGR_INTERCEPT, REGR_R2"
    )

    def __init__(self, reader: ExpressionCompiler) -> None:
        self.aggregates: list[Aggregate] = []
        self.assumed: list[Expression] = []
        """Conditions of rows whose number is clipped to bounds that only the declared limits imply."""
        self._reader = reader

    @staticmethod
    def is_aggregate(node: exp.Expr) -> bool:
        """Whether a syntax node is the call of an aggregate function, without FILTER or WITHIN GROUP around it."""
        return type(node) in _AGGREGATES

    def compile(self, node: exp.Expr) -> Output | None:
        """The output expression of an aggregate call; None if the node is not one."""
        if not self.is_aggregate(node) and not isinstance(node, exp.Filter | exp.WithinGroup):
            return None
        return self._aggregate(node)

    def _aggregate(self, node: exp.Expr) -> Output:
        condition: Expression = TRUE
        if isinstance(node, exp.Filter):
            condition = self._reader.condition(node.expression.this).node
            node = node.this
        if isinstance(node, exp.WithinGroup):
            inner = node.this
            ordered = node.expression.expressions
            if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc) or len(ordered) != 1:
                raise self._reader.refuse(
                    node, "WITHIN GROUP is supported for PERCENTILE_CONT(rank) ... (ORDER BY column)."
                )
            if ordered[0].args.get("desc"):
                raise self._reader.refuse(node, "WITHIN GROUP supports ascending order only.", "Use 1 - rank instead.")
            return self._quantile(node, ordered[0].this, self._rank(inner.this), condition)
        if not self.is_aggregate(node):
            raise self._reader.refuse(node, "FILTER is supported for aggregates only.")
        return _AGGREGATES[type(node)](self, node, condition)

    def _add_aggregate(self, aggregate: Aggregate) -> int:
        if aggregate not in self.aggregates:
            if len(self.aggregates) >= _MAX_AGGREGATES:
                raise QueryRefused(f"A query has at most {_MAX_AGGREGATES} aggregates.", fix="Use two queries.")
            self.aggregates.append(aggregate)
        return self.aggregates.index(aggregate)

    def _rank(self, node: exp.Expr | None) -> Fraction:
        if node is None:
            raise QueryRefused("A quantile needs its rank.", fix="Use QUANTILE_CONT(column, 0.9).")
        try:
            constant = self._reader.read(node).constant
        except QueryRefused:
            constant = None
        if not isinstance(constant, Fraction) or not 0 <= constant <= 1 or constant.denominator > 10**6:
            raise self._reader.refuse(
                node,
                "The rank must be a constant from 0 to 1, such as 0.9.",
                "Use one QUANTILE_CONT(column, rank) for each rank.",
            )
        return constant

    def _bounded(self, node: exp.Expr) -> Scalar:
        scalar = self._reader.number(node)
        if scalar.expected is not None and (scalar.low is None or scalar.high is None):
            low, high = scalar.expected
            scalar = replace(scalar, low=low, high=high)
            self._assume(scalar, low, high)
        reason = bounds_problem(scalar)
        if reason:
            raise self._reader.refuse(node, reason, "Use CLIP(x, low, high), or declare a domain for the column.")
        return scalar

    def _assume(self, scalar: Scalar, low: Fraction, high: Fraction) -> None:
        """Note that values beyond these ends are cut, by more than rows are rounded to a grid."""
        x, near = scalar.as_double(), (high - low) / (1 << 16)
        below, above = (constant(float(end)) for end in (low - near, high + near))
        beyond = all_of(present(scalar), any_of(Compare("<", x, below), Compare(">", x, above)))
        if beyond not in self.assumed:
            self.assumed.append(beyond)

    def _quantile(self, node: exp.Expr, inner: exp.Expr, rank: Fraction, condition: Expression) -> Output:
        scalar, scale, family = dated_number(self._reader, inner), None, "number"
        if scalar is None:
            number = self._bounded(inner)
        else:
            number, scale, family = scalar
        return Measured(self._add_aggregate(bin_counts_aggregate(number, condition, rank, scale)), "quantile", family)

    def _sum(self, node: exp.Expr, condition: Expression) -> Output:
        scalar = self._bounded(self._argument(node))
        if scalar.low == scalar.high == 0:
            raise self._reader.refuse(node, "This sum is 0 whatever the data: the number is between 0 and 0.")
        measured = sum_aggregate(scalar, condition)
        return Measured(self._add_aggregate(measured), "sum")

    def _mode(self, node: exp.Expr, condition: Expression) -> Output:
        scalar = self._reader.read(self._argument(node))
        candidates = tuple(sorted(scalar.keys() or ()))
        if not candidates:
            raise self._reader.refuse(
                node,
                "MODE needs a column whose values are publicly known.",
                "Declare `domain: {values: [...]}` for the column, or use CASE WHEN ... END.",
            )
        if len(candidates) > _MAX_CANDIDATES or scalar.node.nodes * len(candidates) > 20_000:
            raise self._reader.refuse(
                node,
                f"MODE chooses among at most {_MAX_CANDIDATES:,} values of a short expression.",
                "Use fewer or coarser values.",
            )
        aggregate = value_counts_aggregate(scalar, condition, candidates)
        return Measured(self._add_aggregate(aggregate), "mode", scalar.family)

    def _count(self, node: exp.Expr, condition: Expression) -> Output:
        inner = node.this
        if isinstance(inner, exp.Star) or inner is None:
            return Measured(self._add_aggregate(Count(condition=condition)), "count")
        if isinstance(inner, exp.Distinct):
            if len(inner.expressions) != 1:
                raise self._reader.refuse(node, "COUNT(DISTINCT ...) accepts one column.")
            return self._distinct(inner.expressions[0], condition)
        if node.args.get("expressions"):
            raise self._reader.refuse(node, "COUNT accepts one column.")
        scalar = self._reader.read(inner)
        filled = condition if scalar.unit or scalar.constant is not None else all_of(condition, present(scalar))
        return Measured(self._add_aggregate(Count(condition=filled)), "count")

    def _distinct(self, inner: exp.Expr, condition: Expression) -> Output:
        scalar = self._reader.read(inner)
        if scalar.unit:
            return Measured(self._add_aggregate(Count(condition=condition, once=True)), "count")
        filled = all_of(condition, present(scalar))
        return Measured(self._add_aggregate(DistinctCount(value=scalar.node, condition=filled)), "distinct")

    def _mean(self, node: exp.Expr, condition: Expression) -> Output:
        scalar = self._bounded(self._argument(node))
        index = self._add_aggregate(moments_aggregate(scalar, condition, 1))
        return Mean(index, float(scalar.low or 0), float(scalar.high or 0))

    def _spread(self, node: exp.Expr, condition: Expression, *, root: bool, sample: bool) -> Output:
        scalar = self._bounded(self._argument(node))
        span = (float(scalar.high or 0) - float(scalar.low or 0)) ** 2 / 4
        return SpreadOf(self._add_aggregate(moments_aggregate(scalar, condition, 2)), span, sample, root)

    def _pair(self, node: exp.Expr, condition: Expression) -> PairedMoments:
        y, x = (self._bounded(item) for item in (node.this, node.expression))
        return PairedMoments(self._add_aggregate, x, y, condition)

    def _count_if(self, node: exp.Expr, condition: Expression) -> Output:
        holds = self._reader.condition(self._argument(node)).node
        return Measured(self._add_aggregate(Count(condition=all_of(condition, holds))), "count")

    def _argument(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node.this, exp.Distinct):
            raise self._reader.refuse(node, "DISTINCT is supported for COUNT only.")
        inner: exp.Expr | None = node.this
        if inner is None:
            raise self._reader.refuse(node, f"{called(node, self._reader.text)} needs the column that it is about.")
        return inner


_Rule = Callable[[AggregateCompiler, exp.Expr, Expression], Output]


def _extreme(rank: int) -> _Rule:
    return lambda c, node, where: c._quantile(node, c._argument(node), Fraction(rank), where)


_AGGREGATES: dict[type[exp.Expr], _Rule] = {
    exp.Count: AggregateCompiler._count,
    exp.ApproxDistinct: lambda c, node, where: c._distinct(c._argument(node), where),
    exp.Sum: AggregateCompiler._sum,
    exp.Avg: AggregateCompiler._mean,
    exp.Variance: lambda c, node, where: c._spread(node, where, root=False, sample=True),
    exp.VariancePop: lambda c, node, where: c._spread(node, where, root=False, sample=False),
    exp.Stddev: lambda c, node, where: c._spread(node, where, root=True, sample=True),
    exp.StddevSamp: lambda c, node, where: c._spread(node, where, root=True, sample=True),
    exp.StddevPop: lambda c, node, where: c._spread(node, where, root=True, sample=False),
    exp.Mode: AggregateCompiler._mode,
    exp.CountIf: AggregateCompiler._count_if,
    exp.Corr: lambda c, node, where: c._pair(node, where).correlation(),
    exp.CovarPop: lambda c, node, where: c._pair(node, where).covariance(),
    exp.CovarSamp: lambda c, node, where: c._pair(node, where).sample_covariance(),
    exp.RegrSlope: lambda c, node, where: c._pair(node, where).slope(),
    exp.RegrIntercept: lambda c, node, where: c._pair(node, where).intercept(),
    exp.RegrR2: lambda c, node, where: c._pair(node, where).determination(),
    exp.ApproxQuantile: lambda c, node, where: c._quantile(
        node, c._argument(node), c._rank(node.args.get("quantile")), where
    ),
    exp.Min: _extreme(0),
    exp.Max: _extreme(1),
    exp.Median: lambda c, node, where: c._quantile(node, c._argument(node), Fraction(1, 2), where),
    exp.PercentileCont: lambda c, node, where: c._quantile(node, c._argument(node), c._rank(node.expression), where),
    exp.PercentileDisc: lambda c, node, where: c._quantile(node, c._argument(node), c._rank(node.expression), where),
    exp.Quantile: lambda c, node, where: c._quantile(
        node, c._argument(node), c._rank(node.args.get("quantile")), where
    ),
}


class PairedMoments:
    """Moments of two bounded numbers over the rows that have both, for CORR, COVAR and REGR.

    Three measurements: mean and variance of each number, and the mean of the product of their distances from the
    middles of their ranges. One row moves each by no more than its bounds allow, as with AVG and VARIANCE; everything
    else is post-processing. The covariance of the distances is that of the numbers.
    """

    def __init__(self, add: Callable[[Aggregate], int], x: Scalar, y: Scalar, where: Expression) -> None:
        self._add, self._x, self._y = add, x, y
        self._with_x, self._with_y = all_of(where, present(x)), all_of(where, present(y))
        self._count = all_of(where, present(y), present(x))

    def count(self) -> Output:
        return Measured(self._add(Count(condition=self._count)), "count")

    def mean(self, *, of_x: bool) -> Output:
        scalar, where = (self._x, self._with_y) if of_x else (self._y, self._with_x)
        index = self._add(moments_aggregate(scalar, where, 1))
        return Mean(index, float(scalar.low or 0), float(scalar.high or 0))

    def spread(self, *, of_x: bool, root: bool = False) -> Output:
        scalar, where = (self._x, self._with_y) if of_x else (self._y, self._with_x)
        span = (float(scalar.high or 0) - float(scalar.low or 0)) ** 2 / 4
        return SpreadOf(self._add(moments_aggregate(scalar, where, 2)), span, False, root)

    def covariance(self) -> Output:
        (x, mid_x, wide_x), (y, mid_y, wide_y) = _centred(self._x), _centred(self._y)
        most = wide_x * wide_y
        product = Scalar(node=Arithmetic("*", x, y), kind=Kind.NUMBER, low=-most, high=most)
        both = Mean(self._add(moments_aggregate(product, self._with_y, 1)), -float(most), float(most))
        from_middle = [
            Operation((self.mean(of_x=of_x), Value(float(middle))), "-")
            for of_x, middle in ((True, mid_x), (False, mid_y))
        ]
        return Operation((both, Operation((from_middle[0], from_middle[1]), "*")), "-")

    def slope(self) -> Output:
        return Operation((self.covariance(), self.spread(of_x=True)), "/")

    def intercept(self) -> Output:
        return Operation((self.mean(of_x=False), Operation((self.slope(), self.mean(of_x=True)), "*")), "-")

    def correlation(self) -> Output:
        roots = Operation((self.spread(of_x=True, root=True), self.spread(of_x=False, root=True)), "*")
        return Clipped((Operation((self.covariance(), roots), "/"),), -1.0, 1.0)

    def sample_covariance(self) -> Output:
        count = self.count()
        return Operation((Operation((self.covariance(), count), "*"), Operation((count, Value(1)), "-")), "/")

    def determination(self) -> Output:
        correlation = self.correlation()
        return Operation((correlation, correlation), "*")


def _centred(scalar: Scalar) -> tuple[Expression, Fraction, Fraction]:
    """The distance from the middle of the range, the middle, and half of the range's width."""
    low, high = scalar.low or Fraction(0), scalar.high or Fraction(0)
    middle = Fraction(float((low + high) / 2))
    node = Arithmetic("-", scalar.as_double(), constant(float(middle)))
    return node, middle, max(high - middle, middle - low, Fraction(1, 10**9))
