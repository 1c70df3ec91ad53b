"""Fixed-point budgets: losses as integers, with costs rounded up and caps rounded down."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure

__all__ = ["DELTA_GRAIN", "SIZE_GRAIN", "Grains", "cap_in_grains", "cost_in_grains", "loss_of"]

SIZE_GRAIN = Fraction(1, 10**9)
"""The unit of epsilon and rho."""
DELTA_GRAIN = Fraction(1, 10**18)
"""The unit of delta."""
_MOST = 10**18


@dataclass(frozen=True, kw_only=True)
class Grains:
    """A loss in whole units (grains) of one measure."""

    measure: PrivacyMeasure
    size: int
    delta: int

    def __add__(self, other: Grains) -> Grains:
        assert self.measure is other.measure
        return Grains(measure=self.measure, size=self.size + other.size, delta=self.delta + other.delta)

    def fits(self, cap: Grains) -> bool:
        return self.measure is cap.measure and self.size <= cap.size and self.delta <= cap.delta


def _up(value: Fraction, grain: Fraction) -> int:
    ratio = value / grain
    return -(-ratio.numerator // ratio.denominator)


def cost_in_grains(loss: PrivacyLoss, measure: PrivacyMeasure) -> Grains:
    """A cost, rounded up."""
    cost = loss.to(measure)
    return Grains(measure=measure, size=min(_up(cost.size, SIZE_GRAIN), _MOST), delta=_up(cost.delta, DELTA_GRAIN))


def cap_in_grains(loss: PrivacyLoss) -> Grains:
    """A cap, rounded down."""
    size, delta = loss.size / SIZE_GRAIN, loss.delta / DELTA_GRAIN
    return Grains(measure=loss.measure, size=min(int(size), _MOST), delta=int(delta))


def loss_of(grains: Grains) -> PrivacyLoss:
    """The loss of a number of grains."""
    delta = min(grains.delta * DELTA_GRAIN, Fraction(1))
    return PrivacyLoss(measure=grains.measure, size=grains.size * SIZE_GRAIN, delta=delta)
