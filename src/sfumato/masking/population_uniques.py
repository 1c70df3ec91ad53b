"""Estimators of population uniques from the class sizes of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.errors import NotApplicable

__all__ = ["Sizes", "pitman", "snb", "zayatz"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Frequencies of class sizes in a sample, and its sampling fraction."""

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
        raise NotApplicable("Every equivalence class has one row; class sizes cannot be estimated.")
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

    A class of size F = 1 + X is sampled row by row with the sampling fraction; classes without a sampled member are
    unobserved, and the likelihood is conditional on that. Reference: Chen, G., Keller-McNulty, S. (1998). Estimation of
    identification disclosure risk in microdata. Journal of Official Statistics 14(1).
    """
    from scipy.optimize import minimize
    from scipy.stats import nbinom

    if sample.unique == 0:
        return 0.0
    if sample.size.max() == 1:
        raise NotApplicable("Every equivalence class has one row; class sizes cannot be estimated.")
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
