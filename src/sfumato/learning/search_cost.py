"""Cost of a search for hyper-parameters: private selection of the best of a random number of fits.

The number of fits has the logarithmic distribution, which is the truncated negative binomial with shape 0: P(k) =
(1-g)^k / (k · ln(1/g)), with mean (1/g - 1) / ln(1/g). If one fit with its score is squared-Gaussian private, it has
Rényi differential privacy order · squared/2 at every order, and the best of all fits has
order · squared/2 + (h-1) · squared/2 + ln(1/g)/h + ln(mean)/(order-1) for any h >= 1 (Papernot, Steinke 2022, arXiv
2110.03620, Theorem 2). The best h is sqrt(2·ln(1/g)/squared). What is left to convert is zero-concentrated differential
privacy at delta/mean, plus a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log

from sfumato.dp.analytic_gaussian import squared_for
from sfumato.dp.os_random import below_big
from sfumato.dp.rational_bounds import ln_bracket, sqrt_up
from sfumato.dp.zcdp import epsilon_at
from sfumato.errors import BadParameter

_STEPS = 1000


@dataclass(frozen=True, kw_only=True)
class SearchCost:
    """A random number of fits with a given mean, and what choosing the best of them costs.

    >>> cost = SearchCost.for_mean(10)
    >>> float(cost.epsilon(Fraction(1, 100), Fraction(1, 10**6))) < 1
    True
    """

    inverse: Fraction
    """1/g, above 1."""

    @classmethod
    def for_mean(cls, fits: int) -> SearchCost:
        """The distribution whose mean is this number of fits."""
        if isinstance(fits, bool) or not isinstance(fits, int) or not 2 <= fits <= 100:
            raise BadParameter("`fits`, the expected number of fits of a search, must be a whole number of 2 to 100.")
        low, high = 1.0001, 1e5
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if (middle - 1) / log(middle) <= fits else (low, middle)
        return cls(inverse=Fraction(int(low * _STEPS), _STEPS))

    @property
    def mean(self) -> Fraction:
        """An upper bound of the expected number of fits."""
        return (self.inverse - 1) / ln_bracket(self.inverse, 30)[0]

    def epsilon(self, squared: Fraction, delta: Fraction) -> Fraction:
        """An epsilon at which the search is (epsilon, delta)-private if every fit with its score is ``squared``."""
        size = ln_bracket(self.inverse, 30)[1]
        constant = size
        if 2 * size >= squared:  # the best second order is at least 1
            constant = min(size, sqrt_up(2 * squared * size) - squared / 2)
        return epsilon_at(squared / 2, delta / self.mean) + constant

    def squared_for(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The squared Gaussian parameter of one fit with its score, close to the largest, for a search."""
        low, high = Fraction(0), squared_for(epsilon, delta)
        for _ in range(40):
            middle = Fraction((low + high) / 2).limit_denominator(1 << 60)
            low, high = (middle, high) if self.epsilon(middle, delta) <= epsilon else (low, middle)
        if not low:
            raise BadParameter("The budget is too small for a search.", fix="Use a larger epsilon, or fewer fits.")
        return low

    def draw(self) -> int:
        """A number of fits, exactly from the logarithmic distribution."""
        width, drawn = 256, below_big(1 << 256)
        while True:
            below, above = ln_bracket(self.inverse, width // 2)
            least = self._quantile(Fraction(drawn, 1 << width) * below)
            if least == self._quantile(Fraction(drawn + 1, 1 << width) * above):
                return least
            drawn, width = (drawn << width) | below_big(1 << width), 2 * width  # too close to tell: more bits

    def _quantile(self, mass: Fraction) -> int:
        """The smallest k at which the sum of (1-g)^j / j over j = 1 .. k is above ``mass``."""
        share, power, total, k = 1 - 1 / self.inverse, Fraction(1), Fraction(0), 0
        while total <= mass:
            k += 1
            power *= share
            total += power / k
        return k
