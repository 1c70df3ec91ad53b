"""Exact budgets: charges, totals and caps as rationals, so that three thirds fill a budget of one.

A charge has three bounds at once, and so has a total: an epsilon with a delta, a rho and a Gaussian parameter (the last
two with the delta of the curve). Each adds up on its own, so an account may be charged in any measure and has a total
in each; a cap is compared with the bounds of its own measure (:mod:`sfumato.ledger.composition`).

What people write (1/3, 0.1, 1e-6) is kept as written. Computed losses may have denominators of hundreds of digits, and
so may their sums; beyond :data:`_LARGEST_DENOMINATOR` a cost and a total are rounded up and a cap is rounded down, by
less than 2**-128.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.dp.curve import ZERO, Curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import BadParameter

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
    """What was charged to an account, in every measure. Its delta may exceed 1, unlike that of a privacy loss."""

    epsilon: Fraction = Fraction(0)
    """:data:`NO_EPSILON` after a charge in rho, which has none."""
    delta: Fraction = Fraction(0)
    curve: Curve = ZERO

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            epsilon=min(_up(self.epsilon + other.epsilon), NO_EPSILON), delta=_up(self.delta + other.delta),
            curve=_curve_up(self.curve + other.curve),
        )  # fmt: skip

    def __sub__(self, earlier: Amount) -> Amount:
        """What was added since an earlier total. An epsilon or a curve that is not known any more stays unknown."""
        now, then = self.curve, earlier.curve
        squared = None if now.gaussian is None or then.gaussian is None else now.gaussian - then.gaussian
        chance = now.delta if now.delta == 1 else now.delta - then.delta
        return Amount(
            epsilon=NO_EPSILON if self.epsilon >= NO_EPSILON else self.epsilon - earlier.epsilon,
            delta=self.delta - earlier.delta,
            curve=Curve(rho=now.rho - then.rho, gaussian=squared, delta=chance),
        )

    def loss(self, measure: PrivacyMeasure = PrivacyMeasure.EPSILON) -> PrivacyLoss:
        """The loss in a measure; in rho where no epsilon is known. It has the curve, so that nothing is lost by it."""
        if measure is PrivacyMeasure.RHO or self.epsilon >= NO_EPSILON:
            return PrivacyLoss(
                measure=PrivacyMeasure.RHO, size=self.curve.rho, delta=self.curve.delta, curve=self.curve
            )
        delta = min(self.delta, Fraction(1))
        return PrivacyLoss(measure=measure, size=self.epsilon, delta=delta, curve=self.curve)


def cost_amount(loss: PrivacyLoss) -> Amount:
    """What a loss adds to the totals of an account, rounded up."""
    curve = _curve_up(loss.composable())
    known = loss.measure is PrivacyMeasure.EPSILON or not loss.size
    # The events of the curve are among those of the loss (`ledger.composition` relies on it).
    return Amount(
        epsilon=min(_up(loss.size), NO_EPSILON) if known else NO_EPSILON, delta=max(_up(loss.delta), curve.delta),
        curve=curve,
    )  # fmt: skip


def cost_loss(loss: PrivacyLoss) -> PrivacyLoss:
    """A cost as it was stated, rounded up."""
    return replace(loss, size=_up(loss.size), delta=min(_up(loss.delta), Fraction(1)))


def cap_loss(loss: PrivacyLoss) -> PrivacyLoss:
    """A cap, rounded down; one beyond the largest is refused: a budget that nothing can exceed bounds nothing."""
    if loss.size > _MOST:
        raise BadParameter(f"a budget is at most {float(_MOST):g}.", fix="Set one that bounds the loss.")
    return replace(loss, size=_down(loss.size), delta=_down(loss.delta), curve=None)
