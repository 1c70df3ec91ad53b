"""Privacy loss as exact rationals in one of two measures, with partial order and composition.

``epsilon`` with ``delta`` is classic differential privacy (pure when delta is 0). ``rho`` with ``delta`` is
zero-concentrated differential privacy, delta-approximate when delta is above 0 (Bun and Steinke 2016,
doi:10.1007/978-3-662-53641-4_24). Neighbours differ by adding or removing everything one privacy unit contributed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, reduce
from math import log, log1p

from sfumato.dp.rational_bounds import exp_bracket, ln_bracket, ln_up, sqrt_up
from sfumato.errors import BadParameter, NotComparable
from sfumato.rationals import Number, rational

__all__ = [
    "NOTHING",
    "PrivacyLoss",
    "PrivacyMeasure",
    "advanced",
    "approximate",
    "concentrated",
    "epsilon_at",
    "parallel",
    "pure",
    "rho_for",
    "sequential",
]


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

    def __post_init__(self) -> None:
        if self.size < 0:
            raise BadParameter("a privacy loss cannot be negative.")
        if not 0 <= self.delta <= 1:
            raise BadParameter("delta is a probability and lies in 0 .. 1.")

    def to(self, measure: PrivacyMeasure) -> PrivacyLoss:
        """The same guarantee in another measure. Only epsilon converts to rho (epsilon**2 / 2) without a delta."""
        if measure is self.measure:
            return self
        if measure is PrivacyMeasure.RHO:
            return PrivacyLoss(measure=measure, size=self.size**2 / 2, delta=self.delta)
        if self.size == 0:
            return PrivacyLoss(measure=measure, size=self.size, delta=self.delta)
        raise NotComparable(
            "A loss in rho has no epsilon without a delta.", fix="Use `loss.at(delta)` to get the epsilon at a delta."
        )

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
        return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=epsilon_at(self.size, total - self.delta), delta=total)

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        if self.measure is not other.measure:
            if NOTHING in (self, other):
                return other if self == NOTHING else self
            return self.to(PrivacyMeasure.RHO) + other.to(PrivacyMeasure.RHO)
        return PrivacyLoss(
            measure=self.measure, size=self.size + other.size, delta=min(self.delta + other.delta, Fraction(1))
        )

    def __le__(self, other: PrivacyLoss) -> bool:
        """Whether this guarantee is at least as strong as the other."""
        if self.measure is other.measure:
            return self.size <= other.size and self.delta <= other.delta
        if other.measure is PrivacyMeasure.RHO:
            return self.to(PrivacyMeasure.RHO) <= other
        if self.size == 0:
            return self.delta <= other.delta
        return self.delta < other.delta and self.at(other.delta).size <= other.size

    def __ge__(self, other: PrivacyLoss) -> bool:
        return other <= self

    def times(self, count: int) -> PrivacyLoss:
        """The loss of that many answers with this loss each."""
        if count < 0:
            raise BadParameter("a number of answers cannot be negative.")
        return PrivacyLoss(measure=self.measure, size=self.size * count, delta=min(self.delta * count, Fraction(1)))

    def group(self, size: int) -> PrivacyLoss:
        """Group privacy: the loss of ``size`` units together.

        Pure: k·epsilon. Approximate: (k·epsilon, k·exp((k-1)·epsilon)·delta). Concentrated: k²·rho, only for delta = 0.
        """
        if size < 1:
            raise BadParameter("a group has at least one member.")
        if self.measure is PrivacyMeasure.RHO:
            if self.delta and size > 1:
                raise NotComparable("Group privacy of a zero-concentrated loss is defined only for delta = 0.")
            return PrivacyLoss(measure=self.measure, size=self.size * size**2, delta=self.delta)
        growth = exp_bracket((size - 1) * self.size)[1] if self.delta and size > 1 else Fraction(1)
        return PrivacyLoss(
            measure=self.measure, size=self.size * size, delta=min(size * growth * self.delta, Fraction(1))
        )

    @property
    def pure(self) -> bool:
        return self.measure is PrivacyMeasure.EPSILON and self.delta == 0

    def to_dict(self) -> dict[str, str]:
        """As plain data with exact fractions."""
        return {str(self.measure): str(self.size), "delta": str(self.delta)}

    def __str__(self) -> str:
        sign = "ε" if self.measure is PrivacyMeasure.EPSILON else "ρ"
        tail = f", δ = {float(self.delta):.3g}" if self.delta else ""
        return f"{sign} = {float(self.size):.4g}{tail}"

    def __repr__(self) -> str:
        tail = f", delta={self.delta}" if self.delta else ""
        return f"Loss({self.measure}={self.size}{tail})"


NOTHING = PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=Fraction(0))
"""The loss of an answer that does not depend on the data."""


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
    return reduce(PrivacyLoss.__add__, losses, NOTHING)


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


def _delta_exponent(rho: float, epsilon: float, order: float) -> float:
    """ln of the delta that order ``order`` proves for rho-zCDP at epsilon."""
    return (order - 1) * (order * rho - epsilon) + (order - 1) * log1p(-1 / order) - log(order)


def _best_order(rho: float, epsilon: float) -> float:
    """The order with the smallest delta, by Newton's method on the derivative, (2a - 1)·rho - epsilon + ln(1 - 1/a).

    The derivative is increasing and concave, so that steps from below do not overshoot.
    """
    order = max((epsilon / rho + 1) / 2, 1 + 1e-9)
    for _ in range(70):
        left = epsilon - (2 * order - 1) * rho - log1p(-1 / order)
        step = left / (2 * rho + 1 / (order * (order - 1)))
        if step <= 1e-13 * order:
            break
        order += step
    return order


@lru_cache(maxsize=1024)
def epsilon_at(rho: Fraction, delta: Fraction) -> Fraction:
    """A rational epsilon such that rho-zCDP implies (epsilon, delta)-DP.

    Any order a > 1 proves epsilon = a·rho + ln((a-1)/a) + (ln(1/delta) - ln a)/(a-1) (Canonne, Kamath and Steinke 2020,
    Proposition 12). The order is searched in floats; the bound at that order is evaluated with directed rounding, so
    that an inaccurate search makes the bound looser but never wrong.

    >>> float(epsilon_at(Fraction(1, 2), Fraction(1, 10**6))) < 5.3
    True
    """
    if rho == 0:
        return Fraction(0)
    r, d = float(rho), float(delta)
    classic = rho + 2 * sqrt_up(rho * ln_up(1 / delta))
    low, high = 0.0, float(classic)
    for _ in range(60):
        middle = (low + high) / 2
        if _delta_exponent(r, middle, _best_order(r, middle)) <= log(d):
            high = middle
        else:
            low = middle
    order = Fraction(round(_best_order(r, high) * 2**20), 2**20)
    if order <= 1:
        return classic
    ratio = (order - 1) / order
    sharp = order * rho + ln_up(ratio) + (ln_up(1 / delta) - ln_bracket(order, 30)[0]) / (order - 1)
    return _round_up(max(Fraction(0), min(classic, sharp)))


def _round_up(value: Fraction, step: int = 10**15) -> Fraction:
    return Fraction(-(-value.numerator * step // value.denominator), step)


@lru_cache(maxsize=1024)
def rho_for(epsilon: Number, delta: Number) -> Fraction:
    """A rational rho, close to the largest, such that rho-zCDP implies (epsilon, delta)-DP."""
    limit, chance = rational(epsilon), rational(delta)
    if limit <= 0 or not 0 < chance < 1:
        raise BadParameter("epsilon must be above 0 and delta between 0 and 1.")
    low, high, target = 0.0, 4 * max(float(limit), 1.0), log(float(chance))
    for _ in range(60):
        middle = (low + high) / 2
        if middle > 0 and _delta_exponent(middle, float(limit), _best_order(middle, float(limit))) <= target:
            low = middle
        else:
            high = middle
    for slack in (0, 10**-12, 10**-9, 10**-6, 10**-3):
        rho = Fraction(low) * (1 - rational(slack))
        rho = Fraction(rho.numerator * 2**80 // rho.denominator, 2**80)
        if rho > 0 and epsilon_at(rho, chance) <= limit:
            return rho
    raise BadParameter("delta is too small for so small an epsilon.", fix="Use a larger epsilon or delta.")
