"""Exact budgets: charges, totals and caps as rationals, so that three thirds fill a budget of one.

What people write (1/3, 0.1, 1e-6) is kept as written. Computed losses may have denominators of hundreds of digits, and
so may their sums; beyond :data:`_LARGEST_DENOMINATOR` a cost and a total are rounded up and a cap is rounded down, by
less than 2**-128.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.dp.curve import Curve, epsilon_curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import BadParameter

__all__ = ["NO_EPSILON", "SLACK", "Amount", "cap_amount", "cost_amount", "loss_of"]

SLACK = Fraction(1, 10**15)
"""Far above the roundings of a charge and its total together."""
_LARGEST_DENOMINATOR = 2**256
_GRID = 2**128
_MOST = Fraction(10**9)
"""The largest cap."""
NO_EPSILON = 2 * _MOST
"""A size above every cap: no epsilon is known, or it is too large."""


def _up(value: Fraction) -> Fraction:
    if value.denominator <= _LARGEST_DENOMINATOR:
        return value
    return Fraction(-(-value.numerator * _GRID // value.denominator), _GRID)


def _down(value: Fraction) -> Fraction:
    return value if value.denominator <= _LARGEST_DENOMINATOR else Fraction(int(value * _GRID), _GRID)


def _curve_up(curve: Curve) -> Curve:
    squared = None if curve.gaussian is None else _up(curve.gaussian)
    return Curve(rho=_up(curve.rho), gaussian=squared, delta=min(_up(curve.delta), Fraction(1)))


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A loss of one account in one measure; unlike a :class:`PrivacyLoss` its delta may exceed 1."""

    measure: PrivacyMeasure
    size: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    bounds: Curve | None = None
    """The curve, where it is kept: for losses in epsilon of a data set with a delta."""

    def __add__(self, other: Amount) -> Amount:
        assert self.measure is other.measure
        known = self.bounds is not None or other.bounds is not None
        return Amount(
            measure=self.measure, size=min(_up(self.size + other.size), NO_EPSILON),
            delta=_up(self.delta + other.delta),
            bounds=_curve_up(self.curved() + other.curved()) if known else None,
        )  # fmt: skip

    def curved(self) -> Curve:
        """The curve, or the curve that every loss of this epsilon and delta has."""
        if self.bounds is not None:
            return self.bounds
        return _curve_up(epsilon_curve(self.size, min(self.delta, Fraction(1))))

    def __sub__(self, earlier: Amount) -> Amount:
        """What was added since an earlier total. An epsilon or a curve that is not known any more stays unknown."""
        assert self.measure is earlier.measure
        size = NO_EPSILON if self.size >= NO_EPSILON else self.size - earlier.size
        if self.bounds is None:
            return Amount(measure=self.measure, size=size, delta=self.delta - earlier.delta)
        now, then = self.bounds, earlier.curved()
        squared = None if now.gaussian is None or then.gaussian is None else now.gaussian - then.gaussian
        chance = now.delta if now.delta == 1 else now.delta - then.delta
        bounds = Curve(rho=now.rho - then.rho, gaussian=squared, delta=chance)
        return Amount(measure=self.measure, size=size, delta=self.delta - earlier.delta, bounds=bounds)

    def fits(self, cap: Amount) -> bool:
        return self.measure is cap.measure and self.size <= cap.size and self.delta <= cap.delta


def cost_amount(loss: PrivacyLoss, measure: PrivacyMeasure, *, curved: bool = False) -> Amount:
    """A cost; with its curve if ``curved``, and then a cost in rho may lack an epsilon."""
    if curved and measure is PrivacyMeasure.EPSILON:
        bounds = _curve_up(loss.composable())
        # The events of the curve are among those of the loss (`dp.composition` relies on it).
        delta = max(_up(loss.delta), bounds.delta)
        if loss.measure is not measure and loss.size:
            return Amount(measure=measure, size=NO_EPSILON, delta=delta, bounds=bounds)
        return replace(cost_amount(loss, measure), delta=delta, bounds=bounds)
    cost = loss.to(measure)
    return Amount(measure=measure, size=min(_up(cost.size), NO_EPSILON), delta=_up(cost.delta))


def cap_amount(loss: PrivacyLoss) -> Amount:
    """A cap; one beyond the largest is refused: a budget that nothing can exceed bounds nothing."""
    if loss.size > _MOST:
        raise BadParameter(f"a budget is at most {float(_MOST):g}.", fix="Set one that bounds the loss.")
    return Amount(measure=loss.measure, size=_down(loss.size), delta=_down(loss.delta))


def loss_of(amount: Amount) -> PrivacyLoss:
    """The loss of an amount; in rho where no epsilon is known."""
    if amount.size >= NO_EPSILON and amount.bounds is not None:
        return PrivacyLoss(measure=PrivacyMeasure.RHO, size=amount.bounds.rho, delta=amount.bounds.delta)
    return PrivacyLoss(measure=amount.measure, size=amount.size, delta=min(amount.delta, Fraction(1)))
