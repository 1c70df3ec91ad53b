"""Composition curves: bounds of a release that add up over adaptively chosen releases.

A :class:`Curve` holds three numbers of one release. ``rho`` is zero-concentrated differential privacy, ``gaussian`` is
the squared parameter of Gaussian differential privacy (Dong, Roth, Su 2022, doi:10.1111/rssb.12454), and ``delta`` is
the probability with which neither holds. Each is additive even if an analyst chooses the next release, and its loss,
after seeing the answers so far: Whitehouse, Ramdas, Rogers, Wu 2023 (arXiv 2203.05481, Theorem 1) for approximate
zero-concentrated, Smith, Thakurta 2022 (arXiv 2210.17520) for Gaussian differential privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.dp.analytic_gaussian import squared_of_pure


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Bounds of one release, or of several together, that add up."""

    rho: Fraction
    gaussian: Fraction | None
    """Squared parameter of Gaussian differential privacy; None where no bound is known."""
    delta: Fraction = Fraction(0)
    """Probability with which the other two do not hold."""

    def __add__(self, other: Curve) -> Curve:
        known = self.gaussian is not None and other.gaussian is not None
        return Curve(
            rho=self.rho + other.rho,
            gaussian=(self.gaussian or 0) + (other.gaussian or Fraction(0)) if known else None,
            delta=min(self.delta + other.delta, Fraction(1)),
        )

    def times(self, count: int) -> Curve:
        """The curve of that many releases with this curve each."""
        squared = None if self.gaussian is None else self.gaussian * count
        return Curve(rho=self.rho * count, gaussian=squared, delta=min(self.delta * count, Fraction(1)))

    def for_group(self, size: int) -> Curve | None:
        """The curve of ``size`` units together: rho and mu² grow by size² (:meth:`PrivacyLoss.for_group`)."""
        if self.delta:
            return None
        squared = None if self.gaussian is None else self.gaussian * size**2
        return Curve(rho=self.rho * size**2, gaussian=squared)

    def within(self, other: Curve) -> bool:
        """Whether no bound is larger than the other's."""
        squared = other.gaussian is None or (self.gaussian is not None and self.gaussian <= other.gaussian)
        return squared and self.rho <= other.rho and self.delta <= other.delta


ZERO = Curve(rho=Fraction(0), gaussian=Fraction(0))
"""No release."""


def epsilon_curve(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Curve:
    """The curve of any (epsilon, delta)-private release: rho = epsilon²/2 (Bun, Steinke 2016, Proposition 1.4)."""
    return Curve(rho=epsilon**2 / 2, gaussian=squared_of_pure(epsilon), delta=delta)


def range_curve(epsilon: Fraction) -> Curve:
    """The curve of an epsilon-bounded-range release, such as a selection by the exponential mechanism.

    Bounded range: over all outputs, the logarithm of the ratio of the two probabilities varies by at most epsilon
    (Durfee, Rogers 2019, arXiv 1905.04273). It implies rho = epsilon²/8 (Cesar, Rogers 2021, arXiv 2004.07223, Lemma
    3.4). The worst pairs of distributions have two outputs whose log-odds differ by epsilon (Dong, Durfee, Rogers 2020,
    arXiv 1909.13830). The normal quantile of the logistic distribution function is concave above 0 (van Zwet 1964), so
    among these pairs the symmetric one is the easiest to tell apart: randomized response with epsilon/2.
    """
    return Curve(rho=epsilon**2 / 8, gaussian=squared_of_pure(epsilon / 2))


def gaussian_curve(squared: Fraction) -> Curve:
    """The curve of normal noise at a squared distance, in units of the variance."""
    return Curve(rho=squared / 2, gaussian=squared)
