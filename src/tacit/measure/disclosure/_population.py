"""From a sample to its population: how rare in the population are those who are rare in the sample?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import NotApplicable

__all__ = ["Sizes", "individual_risk", "pitman", "snb", "zayatz"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


# --- risk of one person with sampling weights -----------------------------------------------------------------------


def individual_risk(fits: Ints, weight: Floats, *, formula: str = "exact") -> Floats:
    """Expected 1 / F per row, where F, the class's size in the population, is negative binomial given the sample.

    ``fits`` is the class's size in the sample, ``weight`` the sum of its sampling weights, which estimates F. "exact"
    is the posterior mean of 1 / F; "sdcmicro" is exact for classes of one or two and p / (f - 1 + p) for larger ones.

    >>> individual_risk(np.array([1, 2]), np.array([17.0, 110.0])).round(8).tolist()
    [0.1770758, 0.01714426]
    """
    share = np.clip(fits / weight, 1e-300, 1.0)
    found = np.empty(len(fits))
    rest = 1 - share
    if formula == "sdcmicro":
        found = share / (fits - rest)
        small = (fits <= 2) & (rest > 0)
        found[small] = _exact(fits[small], share[small])
        found[rest <= 0] = 1 / fits[rest <= 0]
        return found
    return _exact(fits, share)


def _exact(fits: Ints, share: Floats) -> Floats:
    """p times the integral of u^(f-1) / (p + q u) over 0..1: closed form for f = 1, then a recursion, then a series."""
    distinct, place = np.unique(np.column_stack([fits, share]), axis=0, return_inverse=True)
    values = np.empty(len(distinct))
    for index, (f, p) in enumerate(distinct):
        values[index] = _posterior_mean(int(f), float(p))
    return values[place.ravel()]


def _posterior_mean(f: int, p: float) -> float:
    q = 1 - p
    if q <= 1e-12:
        return 1 / f
    if f > 60:
        term, total = 1.0, 1.0
        for order in range(1, 40):
            term *= order * q / (f + order)
            total += term
            if term < 1e-16:
                break
        return p * total / f
    if p < 0.5:
        # Each step multiplies the error of the one before by p / q, which is below one here.
        integral = float(-np.log(p) / q)
        for step in range(1, f):
            integral = (1 / step - p * integral) / q
        return p * integral
    nodes, weights = np.polynomial.legendre.leggauss(64)
    u = (nodes + 1) / 2
    return float(p * (weights / 2) @ (u ** (f - 1) / (p + q * u)))


# --- share of people who are unique in the population ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Class sizes of a sample, counted, and the share of the population that was sampled."""

    size: Ints
    count: Ints
    fraction: float

    @classmethod
    def of(cls, sizes: Ints, fraction: float) -> Sizes:
        size, count = np.unique(sizes, return_counts=True)
        return cls(size=size.astype(np.int64), count=count.astype(np.int64), fraction=fraction)

    @property
    def rows(self) -> int:
        return int(self.size @ self.count)

    @property
    def classes(self) -> int:
        return int(self.count.sum())

    @property
    def unique(self) -> int:
        return int(self.count[self.size == 1].sum())

    @property
    def population(self) -> float:
        return self.rows / self.fraction


def zayatz(sample: Sizes) -> float:
    """Share of the population that is unique, taking the sample's class sizes for the population's (Zayatz 1991)."""
    from scipy.stats import hypergeom

    if sample.unique == 0:
        return 0.0
    alone = hypergeom.pmf(1, round(sample.population), sample.size, sample.rows)
    seen = float((sample.count / sample.classes) @ alone)
    truly = sample.unique / sample.classes * sample.fraction / seen
    return float(sample.unique / sample.rows * min(1.0, truly))


def pitman(sample: Sizes) -> float:
    """Share of the population that is unique under Pitman's sampling formula, fitted by maximum likelihood.

    Reference: Hoshino, N. (2001). Applying Pitman's sampling formula to microdata disclosure risk assessment. Journal
    of Official Statistics 17(4).
    """
    from scipy.optimize import minimize
    from scipy.special import gammaln

    if sample.unique == 0:
        return 0.0
    if sample.unique == sample.rows or sample.classes < 2 or sample.size.max() == 1:
        raise NotApplicable("Every class has one row: the population's class sizes cannot be estimated.")
    rows, number = sample.rows, sample.classes

    def cost(point: Floats) -> float:
        theta, alpha = np.exp(point[0]), 1 / (1 + np.exp(-point[1]))
        likelihood = (number - 1) * np.log(alpha) + gammaln(theta / alpha + number) - gammaln(theta / alpha + 1)
        likelihood -= gammaln(theta + rows) - gammaln(theta + 1)
        likelihood += float(sample.count @ (gammaln(sample.size - alpha) - gammaln(1 - alpha)))
        return float(-likelihood) if np.isfinite(likelihood) else 1e300

    start = np.array([np.log(max(1.0, number / 4)), 0.0])
    fit = minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 5000})
    theta, alpha = float(np.exp(fit.x[0])), float(1 / (1 + np.exp(-fit.x[1])))
    if not fit.success or not 1e-6 < alpha < 1 - 1e-9:
        raise NotApplicable("Pitman's model does not fit these class sizes.")
    share = np.exp(gammaln(theta + 1) - gammaln(theta + alpha) + (alpha - 1) * np.log(sample.population))
    return float(min(1.0, share))


def snb(sample: Sizes) -> float:
    """Share of the population that is unique when class sizes less one are negative binomial, by maximum likelihood.

    A class of size F = 1 + X is sampled row by row with the sampling fraction; classes of which nobody was sampled are
    not seen, and the likelihood is conditional on that. Reference: Chen, G., Keller-McNulty, S. (1998). Estimation of
    identification disclosure risk in microdata. Journal of Official Statistics 14(1).
    """
    from scipy.optimize import minimize
    from scipy.stats import nbinom

    if sample.unique == 0:
        return 0.0
    if sample.size.max() == 1:
        raise NotApplicable("Every class has one row: the population's class sizes cannot be estimated.")
    p = sample.fraction

    def masses(point: Floats) -> tuple[float, float, Floats, float]:
        shape, stop = float(np.exp(point[0])), float(1 / (1 + np.exp(-point[1])))
        thinned = stop / (stop + (1 - stop) * p)
        seen = (1 - p) * nbinom.pmf(sample.size, shape, thinned) + p * nbinom.pmf(sample.size - 1, shape, thinned)
        unseen = (1 - p) * float(nbinom.pmf(0, shape, thinned))
        return shape, stop, seen, unseen

    def cost(point: Floats) -> float:
        _, _, seen, unseen = masses(point)
        with np.errstate(divide="ignore"):
            value = float(sample.count @ np.log(seen)) - sample.classes * np.log1p(-unseen)
        return -value if np.isfinite(value) else 1e300

    best = min(
        (
            minimize(
                cost, np.array(start), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-8, "maxiter": 4000}
            )
            for start in ((0.0, 0.0), (-2.0, -3.0), (1.0, -2.0))
        ),
        key=lambda fit: float(fit.fun),
    )
    shape, stop, _, unseen = masses(best.x)
    if not np.isfinite(best.fun) or not 1e-12 < stop < 1 - 1e-12:
        raise NotApplicable("The slide negative binomial model does not fit these class sizes.")
    total = sample.classes / (1 - unseen)
    return float(min(1.0, total * stop**shape / sample.population))
