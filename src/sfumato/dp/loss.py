"""Privacy loss as exact rationals in one of two measures, with partial order and composition.

``epsilon`` with ``delta`` is classic differential privacy (pure when delta is 0). ``rho`` with ``delta`` is
zero-concentrated differential privacy, delta-approximate when delta is above 0 (Bun and Steinke 2016,
doi:10.1007/978-3-662-53641-4_24). Neighbours differ by adding or removing everything one privacy unit contributed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import reduce

from sfumato.dp.analytic_gaussian import normal_delta, normal_epsilon
from sfumato.dp.curve import Curve, epsilon_curve, range_curve
from sfumato.dp.rational_bounds import exp_bracket, ln_up, sqrt_up
from sfumato.dp.zcdp import epsilon_at
from sfumato.errors import BadParameter, NotComparable
from sfumato.rationals import Number, rational


class PrivacyMeasure(StrEnum):
    """The measure of a privacy loss."""

    EPSILON = "epsilon"
    RHO = "rho"


@dataclass(frozen=True, kw_only=True)
class PrivacyLoss:
    """A bound on the privacy loss of one unit. Losses are partially ordered.

    >>> pure("0.1") + pure("0.2")
    Loss(epsilon=3/10)
    >>> pure(1) <= concentrated("1/2"), concentrated("1/2") <= pure(1)
    (True, False)
    """

    measure: PrivacyMeasure
    size: Fraction
    delta: Fraction = Fraction(0)
    curve: Curve | None = field(default=None, compare=False)
    """Bounds that add up more tightly, where they are known."""

    def __post_init__(self) -> None:
        if self.size < 0:
            raise BadParameter("a privacy loss cannot be negative.")
        if not 0 <= self.delta <= 1:
            raise BadParameter("delta is a probability and lies in 0 .. 1.")

    def to(self, measure: PrivacyMeasure) -> PrivacyLoss:
        """The same guarantee in another measure. Only epsilon converts to rho without a delta: epsilon**2 / 2, or the
        rho of the curve."""
        if measure is self.measure:
            return self
        if measure is PrivacyMeasure.RHO:
            curve = self.composable()
            return PrivacyLoss(measure=measure, size=curve.rho, delta=curve.delta, curve=curve)
        if self.size == 0:
            return PrivacyLoss(measure=measure, size=self.size, delta=self.delta)
        raise NotComparable(
            "A loss in rho has no epsilon without a delta.", fix="Use `loss.at(delta)` to get the epsilon at a delta."
        )

    def composable(self) -> Curve:
        """The curve, or the curve that every loss of this size has."""
        if self.curve is not None:
            return self.curve
        if self.measure is PrivacyMeasure.EPSILON:
            return epsilon_curve(self.size, self.delta)
        return Curve(rho=self.size, gaussian=None, delta=self.delta)

    def at(self, delta: Number) -> PrivacyLoss:
        """The (epsilon, delta) guarantee that this loss implies, with ``delta`` in total."""
        total = rational(delta)
        if self.measure is PrivacyMeasure.EPSILON:
            if total < self.delta:
                raise NotComparable("The loss already has a larger delta.")
            return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=self.size, delta=total)
        if self.size == 0 and total >= self.delta:
            return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=Fraction(0), delta=total)
        if total <= self.delta:
            raise NotComparable("The delta must exceed the delta that the loss already has.")
        size = epsilon_at(self.size, total - self.delta)
        if self.curve is not None and self.curve.gaussian is not None:
            size = min(size, normal_epsilon(self.curve.gaussian, total - self.curve.delta))
        return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=size, delta=total, curve=self.curve)

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        if self.measure is not other.measure:
            if NOTHING in (self, other):
                return other if self == NOTHING else self
            return self.to(PrivacyMeasure.RHO) + other.to(PrivacyMeasure.RHO)
        known = self.curve is not None or other.curve is not None
        return PrivacyLoss(
            measure=self.measure, size=self.size + other.size, delta=min(self.delta + other.delta, Fraction(1)),
            curve=self.composable() + other.composable() if known else None,
        )  # fmt: skip

    def __le__(self, other: PrivacyLoss) -> bool:
        """Whether this guarantee is at least as strong as the other."""
        if self.measure is other.measure and self.size <= other.size and self.delta <= other.delta:
            return True
        if other.measure is PrivacyMeasure.RHO:
            return self.measure is not other.measure and self.to(PrivacyMeasure.RHO) <= other
        if self.measure is PrivacyMeasure.RHO and self.size == 0:
            return self.delta <= other.delta
        return self._curve_within(other)

    def _curve_within(self, other: PrivacyLoss) -> bool:
        """Whether a guarantee in (epsilon, delta) follows from the curve."""
        if self.measure is PrivacyMeasure.EPSILON and self.curve is None:
            return False
        curve = self.composable()
        left = other.delta - curve.delta
        if left <= 0:
            return False
        if curve.gaussian is not None and normal_delta(curve.gaussian, other.size) <= left:
            return True
        return epsilon_at(curve.rho, left) <= other.size

    def __ge__(self, other: PrivacyLoss) -> bool:
        return other <= self

    def times(self, count: int) -> PrivacyLoss:
        """The loss of that many answers with this loss each."""
        if count < 0:
            raise BadParameter("a number of answers cannot be negative.")
        return PrivacyLoss(
            measure=self.measure, size=self.size * count, delta=min(self.delta * count, Fraction(1)),
            curve=self.composable().times(count),
        )  # fmt: skip

    def for_group(self, size: int) -> PrivacyLoss:
        """Group privacy: the loss of ``size`` units together, such as the rows of one person.

        Pure: k·epsilon (Dwork, Roth 2014, Theorem 2.2, doi:10.1561/0400000042). Approximate: (k·epsilon,
        k·exp((k-1)·epsilon)·delta) (Vadhan 2017, Lemma 2.2, doi:10.1007/978-3-319-57048-8_7). Concentrated: k²·rho
        (Bun, Steinke 2016, Proposition 1.9). Gaussian: k·mu (Dong, Roth, Su 2022, "group privacy"). The last two hold
        without a delta: a loss in rho that has one is refused, and a curve that has one is dropped.
        """
        if size < 1:
            raise BadParameter("a group has at least one member.")
        if size == 1:
            return self
        if self.measure is PrivacyMeasure.RHO:
            if self.delta:
                raise NotComparable("Group privacy of a zero-concentrated loss is defined only for delta = 0.")
            return PrivacyLoss(
                measure=self.measure, size=self.size * size**2, curve=self.curve and self.curve.for_group(size)
            )
        growth = exp_bracket((size - 1) * self.size)[1] if self.delta else Fraction(1)
        # Each of the k steps from one input to the other multiplies probabilities by exp(epsilon) and adds a delta,
        # which later steps multiply again: delta times the sum of exp(i·epsilon), i < k, is at most k of the largest.
        delta = min(size * growth * self.delta, Fraction(1))
        curve = self.curve and self.curve.for_group(size)
        return PrivacyLoss(measure=self.measure, size=self.size * size, delta=delta, curve=curve)

    def for_replacement(self) -> PrivacyLoss:
        """The loss by adding or removing a unit that implies this one where a unit is *replaced* by another.

        Replacing is removing one unit and adding one: group privacy of two (:meth:`for_group`), solved for the single
        unit. A zero-concentrated loss with a delta is refused.

        >>> pure(1).for_replacement(), concentrated(1).for_replacement()
        (Loss(epsilon=1/2), Loss(rho=1/4))
        """
        if self.measure is PrivacyMeasure.RHO:
            if self.delta:
                raise NotComparable("Group privacy of a zero-concentrated loss is defined only for delta = 0.")
            return PrivacyLoss(measure=self.measure, size=self.size / 4)
        delta = self.delta / (2 * exp_bracket(self.size / 2)[1]) if self.delta else self.delta
        return PrivacyLoss(measure=self.measure, size=self.size / 2, delta=delta)

    @property
    def pure(self) -> bool:
        return self.measure is PrivacyMeasure.EPSILON and self.delta == 0

    def to_dict(self) -> dict[str, str]:
        """As plain data with exact fractions."""
        return {str(self.measure): str(self.size), "delta": str(self.delta)}

    def shown(self, digits: int = 4) -> str:
        """The loss for readers, with that many significant digits."""
        sign = "ε" if self.measure is PrivacyMeasure.EPSILON else "ρ"
        tail = f", δ = {float(self.delta):.{digits - 1}g}" if self.delta else ""
        return f"{sign} = {float(self.size):.{digits}g}{tail}"

    def __str__(self) -> str:
        return self.shown()

    def __repr__(self) -> str:
        tail = f", delta={self.delta}" if self.delta else ""
        return f"Loss({self.measure}={self.size}{tail})"


NOTHING = PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=Fraction(0))
"""The loss of an answer that does not depend on the data."""


def bounded_range(epsilon: Number) -> PrivacyLoss:
    """Pure epsilon-differential privacy of a selection whose log-probabilities move within a range of epsilon."""
    size = rational(epsilon)
    return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=size, curve=range_curve(size))


def pure(epsilon: Number) -> PrivacyLoss:
    """Pure epsilon-differential privacy."""
    return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=rational(epsilon))


def approximate(epsilon: Number, delta: Number) -> PrivacyLoss:
    """(epsilon, delta)-differential privacy."""
    return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=rational(epsilon), delta=rational(delta))


def concentrated(rho: Number, delta: Number = 0) -> PrivacyLoss:
    """Zero-concentrated differential privacy, delta-approximate where a delta is given."""
    return PrivacyLoss(measure=PrivacyMeasure.RHO, size=rational(rho), delta=rational(delta))


def sequential(losses: Iterable[PrivacyLoss]) -> PrivacyLoss:
    """Sequential composition: losses of answers about the same units add up, also for adaptive questions."""
    items = list(losses)
    total = reduce(PrivacyLoss.__add__, items, NOTHING)
    if len(items) < 2:
        return total
    return replace(total, curve=reduce(Curve.__add__, [loss.composable() for loss in items]))


def parallel(losses: Iterable[PrivacyLoss]) -> PrivacyLoss:
    """Parallel composition: for answers about disjoint units, the loss is the largest of them."""
    items = list(losses)
    if len({loss.measure for loss in items}) > 1:
        items = [loss.to(PrivacyMeasure.RHO) for loss in items]
    if not items:
        return NOTHING
    size, delta = max(loss.size for loss in items), max(loss.delta for loss in items)
    return PrivacyLoss(measure=items[0].measure, size=size, delta=delta)


def advanced(losses: Iterable[PrivacyLoss], delta: Number) -> PrivacyLoss:
    """Advanced composition: an epsilon smaller than the sum for many small losses, at an additional ``delta``.

    The losses must be fixed in advance: this is not a filter for adaptively chosen losses.

    The smaller of the sum and the heterogeneous bound sum e_i·(exp(e_i) - 1)/(exp(e_i) + 1) + sqrt(2·ln(1/delta)·sum
    e_i²) (Kairouz, Oh and Viswanath 2015, doi:10.1109/TIT.2017.2685505, Theorem 3.5), rounded up.
    """
    items = [loss.to(PrivacyMeasure.EPSILON) for loss in losses]
    extra = rational(delta)
    if not 0 < extra < 1:
        raise BadParameter("advanced composition needs a delta between 0 and 1.")
    total = sequential(items)
    drift, squares = Fraction(0), Fraction(0)
    for loss in items:
        grown = exp_bracket(loss.size)[1]
        drift += loss.size * (grown - 1) / (grown + 1)
        squares += loss.size**2
    bound = drift + sqrt_up(2 * ln_up(1 / extra) * squares)
    if bound >= total.size:
        return total
    return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=bound, delta=min(total.delta + extra, Fraction(1)))
