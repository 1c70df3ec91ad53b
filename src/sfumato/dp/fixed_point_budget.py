"""Fixed-point budgets: losses as integers, with costs rounded up and caps rounded down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.dp.curve import Curve, epsilon_curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure

__all__ = [
    "DELTA_GRAIN", "NO_EPSILON", "ROUNDING", "SIZE_GRAIN", "CurveGrains", "Grains", "cap_in_grains", "cost_in_grains",
    "loss_of",
]  # fmt: skip

SIZE_GRAIN = Fraction(1, 10**9)
"""The unit of epsilon and rho."""
DELTA_GRAIN = Fraction(1, 10**18)
"""The unit of delta."""
_CURVE_GRAIN = Fraction(1, 10**15)
"""The unit of rho and of the squared Gaussian parameter of a curve."""
ROUNDING = _CURVE_GRAIN
"""The most that a number of a curve is rounded up by."""
_MOST = 10**18
"""The largest cap."""
NO_EPSILON = 2 * 10**18
"""A size above every cap: no epsilon is known, or it is too large."""


def _up(value: Fraction, grain: Fraction) -> int:
    ratio = value / grain
    return -(-ratio.numerator // ratio.denominator)


@dataclass(frozen=True, kw_only=True)
class CurveGrains:
    """A curve in whole units."""

    rho: int
    gaussian: int | None
    delta: int

    @classmethod
    def of(cls, curve: Curve) -> CurveGrains:
        squared = None if curve.gaussian is None else _up(curve.gaussian, _CURVE_GRAIN)
        return cls(rho=_up(curve.rho, _CURVE_GRAIN), gaussian=squared, delta=_up(curve.delta, DELTA_GRAIN))

    def __add__(self, other: CurveGrains) -> CurveGrains:
        squared = None if self.gaussian is None or other.gaussian is None else self.gaussian + other.gaussian
        return CurveGrains(rho=self.rho + other.rho, gaussian=squared, delta=self.delta + other.delta)

    def __sub__(self, other: CurveGrains) -> CurveGrains:
        squared = None if self.gaussian is None or other.gaussian is None else self.gaussian - other.gaussian
        return CurveGrains(rho=self.rho - other.rho, gaussian=squared, delta=self.delta - other.delta)

    @property
    def curve(self) -> Curve:
        squared = None if self.gaussian is None else self.gaussian * _CURVE_GRAIN
        return Curve(rho=self.rho * _CURVE_GRAIN, gaussian=squared, delta=min(self.delta * DELTA_GRAIN, Fraction(1)))

    def numbers(self) -> list[int | None]:
        return [self.rho, self.gaussian, self.delta]


@dataclass(frozen=True, kw_only=True)
class Grains:
    """A loss in whole units (grains) of one measure."""

    measure: PrivacyMeasure
    size: int
    delta: int
    bounds: CurveGrains | None = None
    """The curve, where it is kept: for losses in epsilon of a data set with a delta."""

    def __add__(self, other: Grains) -> Grains:
        assert self.measure is other.measure
        known = self.bounds is not None or other.bounds is not None
        return Grains(
            measure=self.measure, size=min(self.size + other.size, NO_EPSILON), delta=self.delta + other.delta,
            bounds=self.curved() + other.curved() if known else None,
        )  # fmt: skip

    def curved(self) -> CurveGrains:
        """The curve, or the curve that every loss of this epsilon and delta has."""
        if self.bounds is not None:
            return self.bounds
        return CurveGrains.of(epsilon_curve(self.size * SIZE_GRAIN, min(self.delta * DELTA_GRAIN, Fraction(1))))

    def __sub__(self, earlier: Grains) -> Grains:
        """What was added since an earlier total. An epsilon that is not known any more stays unknown."""
        assert self.measure is earlier.measure
        size = NO_EPSILON if self.size >= NO_EPSILON else self.size - earlier.size
        bounds = None if self.bounds is None else self.bounds - earlier.curved()
        return Grains(measure=self.measure, size=size, delta=self.delta - earlier.delta, bounds=bounds)

    def fits(self, cap: Grains) -> bool:
        return self.measure is cap.measure and self.size <= cap.size and self.delta <= cap.delta


def cost_in_grains(loss: PrivacyLoss, measure: PrivacyMeasure, *, curved: bool = False) -> Grains:
    """A cost, rounded up; with its curve if ``curved``, and then a cost in rho may lack an epsilon."""
    if curved and measure is PrivacyMeasure.EPSILON:
        bounds = CurveGrains.of(loss.composable())
        # The events of the curve are among those of the loss (`dp.composition` relies on it).
        delta = max(_up(loss.delta, DELTA_GRAIN), bounds.delta)
        if loss.measure is not measure and loss.size:
            return Grains(measure=measure, size=NO_EPSILON, delta=delta, bounds=bounds)
        return replace(cost_in_grains(loss, measure), delta=delta, bounds=bounds)
    cost = loss.to(measure)
    size = min(_up(cost.size, SIZE_GRAIN), NO_EPSILON)
    return Grains(measure=measure, size=size, delta=_up(cost.delta, DELTA_GRAIN))


def cap_in_grains(loss: PrivacyLoss) -> Grains:
    """A cap, rounded down."""
    size, delta = loss.size / SIZE_GRAIN, loss.delta / DELTA_GRAIN
    return Grains(measure=loss.measure, size=min(int(size), _MOST), delta=int(delta))


def loss_of(grains: Grains) -> PrivacyLoss:
    """The loss of a number of grains; in rho where no epsilon is known."""
    if grains.size >= NO_EPSILON and grains.bounds is not None:
        curve = grains.bounds.curve
        return PrivacyLoss(measure=PrivacyMeasure.RHO, size=curve.rho, delta=curve.delta)
    delta = min(grains.delta * DELTA_GRAIN, Fraction(1))
    return PrivacyLoss(measure=grains.measure, size=grains.size * SIZE_GRAIN, delta=delta)
