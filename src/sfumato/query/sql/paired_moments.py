"""CORR, COVAR and REGR from noisy moments of two numbers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sfumato.dataset import Kind
from sfumato.engines.expressions import Arithmetic, Expression, all_of, constant
from sfumato.query.plan.aggregates import Aggregate, Count, moments_aggregate, present
from sfumato.query.plan.outputs import Clipped, Mean, Measured, Operation, Output, SpreadOf, Value
from sfumato.query.plan.scalar import Scalar

__all__ = ["PairedMoments"]


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
