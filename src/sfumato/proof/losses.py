"""Privacy losses: what a certificate states, what a mechanism has by its theorem, and when one follows from the other.

A stated loss has a size in epsilon or rho with a delta, and beside it the numbers that compose tightly: rho, the square
of mu (Gaussian differential privacy) or None, and the delta with which those two fail. Theorem numbers are those of
``docs/proof.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, log1p
from typing import Any

from sfumato.proof.brackets import exp, ln, normal, sqrt

ZERO = Fraction(0)


class NotProved(Exception):
    """A certificate does not prove what it states. ``node`` is the place that fails."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(f"{node}: {reason}")
        self.node, self.reason = node, reason


def number(value: object, node: str) -> Fraction:
    """An exact rational as a certificate writes it: a whole number, or text such as ``"3/10"`` or ``"0x3/0xa"``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    try:
        if isinstance(value, str) and len(value) < 100_000:
            if value.startswith("0x"):
                return Fraction(*(int(part, 16) for part in value.split("/", 1)))
            return Fraction(value)
    except (ValueError, ZeroDivisionError):
        pass
    raise NotProved(node, "is not an exact number")


@dataclass(frozen=True, kw_only=True)
class StatedLoss:
    """A stated loss."""

    measure: str
    """``epsilon`` or ``rho``."""
    size: Fraction
    delta: Fraction
    rho: Fraction
    squared_mu: Fraction | None
    curve_delta: Fraction
    """Probability with which ``rho`` and ``squared_mu`` do not hold."""

    @classmethod
    def read(cls, stated: Any, node: str) -> StatedLoss:
        """The loss that a certificate states; refused if it is not one."""
        fields = {"measure", "size", "delta", "rho", "squared_mu", "curve_delta"}
        if not isinstance(stated, Mapping) or set(stated) != fields or stated["measure"] not in ("epsilon", "rho"):
            raise NotProved(node, "does not state a loss")
        given = {name: number(stated[name], f"{node}.{name}") for name in fields - {"measure", "squared_mu"}}
        mu = stated["squared_mu"]
        loss = cls(
            measure=stated["measure"], squared_mu=None if mu is None else number(mu, f"{node}.squared_mu"), **given
        )
        if min(loss.size, loss.delta, loss.rho, loss.curve_delta, loss.squared_mu or ZERO) < 0:
            raise NotProved(node, "a loss cannot be negative")
        return loss

    def in_rho(self) -> StatedLoss:
        """The same guarantee stated in rho."""
        return StatedLoss(
            measure="rho", size=self.rho, delta=self.curve_delta, rho=self.rho, squared_mu=self.squared_mu,
            curve_delta=self.curve_delta,
        )  # fmt: skip


def compose(losses: Sequence[StatedLoss]) -> StatedLoss:
    """Theorem C1: what the losses of several draws add up to; in rho where their measures differ."""
    if len({loss.measure for loss in losses}) > 1:
        losses = [loss.in_rho() for loss in losses]
    mus = [loss.squared_mu for loss in losses]
    return StatedLoss(
        measure=losses[0].measure if losses else "epsilon",
        size=sum((loss.size for loss in losses), ZERO),
        delta=min(Fraction(1), sum((loss.delta for loss in losses), ZERO)),
        rho=sum((loss.rho for loss in losses), ZERO),
        squared_mu=None if None in mus else sum((mu for mu in mus if mu is not None), ZERO),
        curve_delta=min(Fraction(1), sum((loss.curve_delta for loss in losses), ZERO)),
    )


def repeated(loss: StatedLoss, times: int) -> StatedLoss:
    """Theorem C1: what that many draws of the same loss add up to."""
    return StatedLoss(
        measure=loss.measure, size=loss.size * times, delta=min(Fraction(1), loss.delta * times), rho=loss.rho * times,
        squared_mu=None if loss.squared_mu is None else loss.squared_mu * times,
        curve_delta=min(Fraction(1), loss.curve_delta * times),
    )  # fmt: skip


def of_group(loss: StatedLoss, size: int, node: str) -> StatedLoss:
    """Theorem G1: what ``size`` rows of one unit lose together; derived for rho without a delta alone."""
    if size == 1:
        return loss
    if loss.measure != "rho" or loss.delta or loss.curve_delta:
        raise NotProved(node, "group privacy is derived for a loss in rho without a delta")
    mu = None if loss.squared_mu is None else loss.squared_mu * size**2
    return StatedLoss(
        measure="rho", size=loss.size * size**2, delta=ZERO, rho=loss.rho * size**2, squared_mu=mu, curve_delta=ZERO
    )


def implies(loss: StatedLoss, other: StatedLoss) -> bool:
    """Whether a guarantee follows from another in every number that it states (Theorems C2 to C4)."""
    if loss.rho > other.rho or loss.curve_delta > other.curve_delta:
        return False
    if other.squared_mu is not None and (loss.squared_mu is None or loss.squared_mu > other.squared_mu):
        return False
    if loss.measure == other.measure and loss.size <= other.size and loss.delta <= other.delta:
        return True
    if other.measure == "rho":
        return loss.rho <= other.size and loss.curve_delta <= other.delta
    left = other.delta - loss.curve_delta
    if loss.squared_mu is not None and normal_within(loss.squared_mu, other.size, left):
        return True
    return concentrated_within(loss.rho, other.size, left)


def normal_within(squared_mu: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Theorem C3: whether normal noise at a squared distance is (epsilon, delta)-private."""
    if squared_mu == 0:
        return delta >= 0
    if delta <= 0 or epsilon > 90_000:
        return False
    m = sqrt(squared_mu)[1]  # delta increases with m
    here, there = normal(m / 2 - epsilon / m)[1], normal(-m / 2 - epsilon / m)[0]
    return here - exp(epsilon)[0] * there <= delta


def concentrated_within(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Theorem C4: whether rho-zCDP is (epsilon, delta)-private, at an order that is searched in floats."""
    if rho == 0:
        return delta >= 0
    if delta <= 0:
        return False
    inverse = ln(1 / delta)[1] if delta < 1 else ZERO
    if rho + 2 * sqrt(rho * inverse)[1] <= epsilon:
        return True
    r, e = float(rho), float(epsilon)
    order = max((e / r + 1) / 2, 1 + 1e-9)
    for _ in range(100):  # Newton's method on the derivative (2a - 1)·rho - epsilon + ln(1 - 1/a)
        step = (e - (2 * order - 1) * r - log1p(-1 / order)) / (2 * r + 1 / (order * (order - 1)))
        order += step
        if order <= 1 or abs(step) < 1e-15 * order:
            break
    if not 1 < order < float("inf"):
        return False
    a = Fraction(order)
    return a * rho + ln((a - 1) / a)[1] + (inverse - ln(a)[0]) / (a - 1) <= epsilon


_ORDERS = (*range(2, 65), 72, 80, 96, 112, 128, 160, 192, 224, 256)


def sampled_within(rate: Fraction, squared_mu: Fraction, steps: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Theorem A1: whether so many steps of normal noise on Poisson samples are (epsilon, delta)-private, at an order
    that proves it."""
    if not 0 < rate <= 1 or not 0 < delta < 1:
        return False
    inverse = ln(1 / delta)[1]
    for order in _ORDERS:
        if order * (order - 1) * squared_mu > 180_000:
            return False
        total = sum(
            comb(order, k) * (1 - rate) ** (order - k) * rate**k * exp(k * (k - 1) * squared_mu / 2)[1]
            for k in range(order + 1)
        )
        tail = ln(Fraction(order - 1, order))[1] + (inverse - ln(Fraction(order))[0]) / (order - 1)
        if steps * ln(Fraction(total))[1] / (order - 1) + tail <= epsilon:
            return True
    return False


def pure_within(epsilon: Fraction, squared_mu: Fraction) -> bool:
    """Theorem C5: whether pure epsilon is at most mu in Gaussian differential privacy."""
    if epsilon == 0:
        return True
    return normal(-sqrt(squared_mu)[0] / 2)[1] * (1 + exp(epsilon)[1]) <= 1


@dataclass(frozen=True, kw_only=True)
class Pure:
    """``draws`` independent draws of pure ``epsilon`` each; ``ranged``: of bounded range. ``chance``: of failure."""

    epsilon: Fraction
    draws: int
    ranged: bool = False
    chance: Fraction = ZERO

    def problem(self, stated: StatedLoss) -> str:
        """Why the stated loss does not follow, or nothing."""
        if stated.measure != "epsilon" or stated.size != self.draws * self.epsilon:
            return f"epsilon is {self.draws * self.epsilon}"
        if min(stated.delta, stated.curve_delta) < min(self.chance, Fraction(1)):
            return "delta is too small"
        one = self.epsilon / 2 if self.ranged else self.epsilon  # bounded range: Theorem C6
        if stated.rho < self.draws * one**2 / 2:
            return "rho is too small"
        mu = stated.squared_mu
        if mu is not None and not (pure_within(self.draws * one, mu) or pure_within(one, mu / self.draws)):
            return "mu is too small"
        return ""


@dataclass(frozen=True, kw_only=True)
class Normal:
    """Normal noise at a squared distance in units of the variance. ``chance``: of failure."""

    squared_mu: Fraction
    chance: Fraction = ZERO

    def problem(self, stated: StatedLoss) -> str:
        """Why the stated loss does not follow, or nothing."""
        if stated.squared_mu != self.squared_mu:
            return f"mu² is {self.squared_mu}"
        if stated.rho != self.squared_mu / 2:
            return f"rho is {self.squared_mu / 2}"
        if min(stated.delta, stated.curve_delta) < min(self.chance, Fraction(1)):
            return "delta is too small"
        if stated.measure == "rho":
            return "" if stated.size == stated.rho else f"rho is {stated.rho}"
        left = stated.delta - self.chance
        if normal_within(self.squared_mu, stated.size, left) or concentrated_within(stated.rho, stated.size, left):
            return ""
        return "epsilon and delta are too small"


@dataclass(frozen=True, kw_only=True)
class Concentrated:
    """rho-zero-concentrated differential privacy without more: discrete normal noise."""

    rho: Fraction

    def problem(self, stated: StatedLoss) -> str:
        """Why the stated loss does not follow, or nothing."""
        if stated.measure != "rho" or stated.size != self.rho or stated.rho != self.rho:
            return f"rho is {self.rho}"
        return "" if stated.squared_mu is None else "no mu is proved for discrete normal noise"


Law = Pure | Normal | Concentrated
