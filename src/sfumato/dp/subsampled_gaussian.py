"""Normal noise on Poisson samples: Rényi differential privacy of the sampled Gaussian mechanism.

Every unit is in the sample of a step with probability ``rate``, independently, and a step adds normal noise to a sum of
which a unit in the sample moves a squared distance of at most ``squared`` variances. For an integer order a, a step has
Rényi differential privacy 1/(a-1) · ln(sum over k of binomial(a, k) (1-rate)^(a-k) rate^k exp(k(k-1)·squared/2))
(Mironov, Talwar, Zhang 2019, arXiv 1908.10530, section 3.3). Steps add up, and an order proves an epsilon as in
Canonne, Kamath, Steinke 2020, Proposition 12. The order is searched in floats; the bound at that order is evaluated
with upward rounding, so that an inaccurate search makes the bound looser but never wrong.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb, inf, log, log1p

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from sfumato.dp.rational_bounds import ln_bracket, ln_up
from sfumato.errors import BadParameter

_UP = Context(prec=50, rounding=ROUND_CEILING, Emax=10**9, Emin=-(10**9))
_ABOVE = Decimal(1) + Decimal(10) ** -45
"""Factor that turns a correctly rounded exponential into an upper bound."""
_ORDERS = (*range(2, 33), 36, 40, 48, 56, 64, 80, 96, 128, 192, 256)


def touched_rate(rate: Fraction, rows: int) -> Fraction:
    """The probability that one of the rows of a unit is in a sample of rows.

    Given that one is, the rows move the sum at most ``rows`` times as far as one. The pair of distributions is a
    mixture over which rows are in the sample, and the Rényi divergence of a mixture is at most the largest.

    >>> touched_rate(Fraction(1, 2), 2)
    Fraction(3, 4)
    """
    return 1 - (1 - rate) ** rows


def sampled_renyi(order: int, *, rate: Fraction, squared: Fraction) -> Fraction:
    """An upper bound of the Rényi differential privacy of one step at an integer order."""
    stay, take = (_decimal(share) for share in (1 - rate, rate))
    half = _decimal(squared / 2)
    total = Decimal(0)
    for k in range(order + 1):
        grown = _UP.multiply(_UP.exp(_UP.multiply(half, Decimal(k * (k - 1)))), _ABOVE)
        share = _UP.multiply(_power(stay, order - k), _power(take, k))
        total = _UP.add(total, _UP.multiply(_UP.multiply(Decimal(comb(order, k)), share), grown))
    return ln_up(Fraction(total)) / (order - 1)


def _power(base: Decimal, exponent: int) -> Decimal:
    """An upper bound of a power, by multiplications that round up."""
    found = Decimal(1)
    for bit in bin(exponent)[2:] if exponent else "":
        found = _UP.multiply(found, found)
        if bit == "1":
            found = _UP.multiply(found, base)
    return found


def _decimal(value: Fraction) -> Decimal:
    return _UP.divide(Decimal(value.numerator), Decimal(value.denominator))


def _rough(rate: float, squared: float) -> npt.NDArray[np.float64]:
    """The Rényi differential privacy of one step at all orders, in floats."""
    found = []
    for order in _ORDERS:
        k = np.arange(order + 1)
        binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
        stay = np.append((order - k[:-1]) * (log1p(-rate) if rate < 1 else -inf), 0.0)
        found.append(logsumexp(binomial + stay + k * log(rate) + k * (k - 1) * squared / 2) / (order - 1))
    return np.array(found)


def _rough_epsilons(rate: float, squared: float, steps: int, delta: float) -> npt.NDArray[np.float64]:
    orders = np.array(_ORDERS, dtype=float)
    tail = np.log1p(-1 / orders) - (log(delta) + np.log(orders)) / (orders - 1)
    return np.asarray(steps * _rough(rate, squared) + tail)


@lru_cache(maxsize=256)
def sampled_epsilon(squared: Fraction, *, rate: Fraction, steps: int, delta: Fraction) -> Fraction:
    """An epsilon, close to the smallest that an order proves, at which all steps together are (epsilon, delta)-DP."""
    rough = _rough_epsilons(float(rate), float(squared), steps, float(delta))
    order = _ORDERS[int(rough.argmin())]
    tail = ln_up(Fraction(order - 1, order)) + (ln_up(1 / delta) - ln_bracket(Fraction(order), 30)[0]) / (order - 1)
    found = max(Fraction(0), steps * sampled_renyi(order, rate=rate, squared=squared) + tail)
    return Fraction(-(-found.numerator * 10**15 // found.denominator), 10**15)


@lru_cache(maxsize=256)
def sampled_squared_for(epsilon: Fraction, delta: Fraction, *, rate: Fraction, steps: int) -> Fraction:
    """A squared distance, close to the largest, at which all steps together are (epsilon, delta)-DP."""
    low, high = log(1e-12), log(1e4)
    for _ in range(50):
        middle = (low + high) / 2
        worst = _rough_epsilons(float(rate), np.exp(middle), steps, float(delta)).min()
        low, high = (middle, high) if worst <= float(epsilon) else (low, middle)
    for slack in (1e-12, 1e-9, 1e-6, 1e-3):
        squared = Fraction(np.exp(low) * (1 - slack))
        if sampled_epsilon(squared, rate=rate, steps=steps, delta=delta) <= epsilon:
            return squared
    raise BadParameter("delta is too small for so small an epsilon.", fix="Use a larger epsilon or delta.")
