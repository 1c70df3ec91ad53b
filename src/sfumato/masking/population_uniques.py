"""Estimators of population uniques from the class sizes of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.errors import NotApplicable


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

    The parameters are 0 <= α < 1 and θ > -α. The likelihood is evaluated on a grid, maximized from the best points of
    the grid, and compared with Ewens's formula (α = 0), which is the maximum if class sizes vary little. A point where
    the likelihood can still be raised is refused.

    Reference: Hoshino, N. (2001). Applying Pitman's sampling formula to microdata disclosure risk assessment. Journal
    of Official Statistics 17(4).
    """
    from scipy.optimize import minimize
    from scipy.special import expit, gammaln

    if sample.unique == 0:
        return 0.0
    if sample.unique == sample.rows or sample.classes < 2 or sample.size.max() == 1:
        raise NotApplicable("Every equivalence class has one row; class sizes cannot be estimated.")
    rows, number = sample.rows, sample.classes

    def likelihood(shifted: Floats, logit: Floats) -> Floats:
        """The log likelihood at θ = exp(shifted) - α, for arrays of points."""
        alpha = expit(logit)
        theta = np.exp(shifted) - alpha
        value: Floats = (number - 1) * np.log(alpha) + _log_rising(theta / alpha + 1, number - 1)
        value -= _log_rising(theta + 1, rows - 1)
        column = alpha[..., None]
        value += (gammaln(sample.size - column) - gammaln(1 - column)) @ sample.count
        return value

    def cost(point: Floats) -> float:
        value = likelihood(point[:1], point[1:])[0]
        return float(-value) if np.isfinite(value) else 1e300

    shifted, logit = (axis.ravel() for axis in np.meshgrid(np.linspace(-8, np.log(rows) + 4, 32), _LOGITS))
    with np.errstate(all="ignore"):
        value = np.nan_to_num(likelihood(shifted, logit), nan=-np.inf)
        starts = np.argsort(-value)[[0, 3, 40]]
        options = {"xatol": 1e-9, "fatol": 1e-10, "maxiter": 5000}
        fits = [
            minimize(
                cost,
                np.array([shifted[place], logit[place]]),
                method="Nelder-Mead",
                options={**options, "initial_simplex": _simplex(shifted[place], logit[place])},
            )
            for place in starts
        ]
        fit = min(fits, key=lambda found: float(found.fun))
    theta_0, without = _ewens(sample)
    if without >= -fit.fun - 1e-9 or fit.x[1] < _LOGITS[0]:
        return float(min(1.0, theta_0 / sample.population))
    alpha = float(expit(fit.x[1]))
    theta = float(np.exp(fit.x[0])) - alpha
    steps = [cost(fit.x + step) for step in 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])]
    if not fit.success or alpha > 1 - 1e-9 or min(steps) < fit.fun - 1e-9:
        raise NotApplicable("Pitman's model does not fit these class sizes.")
    share = np.exp(gammaln(theta + 1) - gammaln(theta + alpha) + (alpha - 1) * np.log(sample.population))
    return float(min(1.0, share))


_LOGITS = np.linspace(-14.0, 8.0, 32)
"""Logits of α on the grid; below the first one α is 0 to the accuracy of the estimate."""


def _simplex(shifted: float, logit: float) -> Floats:
    return np.array([[shifted, logit], [shifted + 0.5, logit], [shifted, logit + 0.5]])


def _ewens(sample: Sizes) -> tuple[float, float]:
    """The parameter θ of Ewens's sampling formula by maximum likelihood, and the log likelihood there."""
    from scipy.optimize import brentq
    from scipy.special import digamma, gammaln

    rows, number = sample.rows, sample.classes

    def score(log_theta: float) -> float:
        theta = np.exp(log_theta)
        return float((number - 1) - theta * (digamma(theta + rows) - digamma(theta + 1)))

    theta = float(np.exp(brentq(score, -30.0, 2 * np.log(rows) + 5)))
    value = (number - 1) * np.log(theta) - float(_log_rising(np.array([theta + 1.0]), rows - 1)[0])
    return theta, float(value + sample.count @ gammaln(sample.size))


def _log_rising(start: Floats, steps: int) -> Floats:
    """The logarithm of start (start + 1) ... (start + steps - 1), accurate for large starts."""
    from scipy.special import gammaln

    far = np.maximum(start, 1e4)
    stirling = (far + steps - 0.5) * np.log1p(steps / far) + steps * (np.log(far) - 1)
    stirling = stirling + (1 / (far + steps) - 1 / far) / 12
    value: Floats = np.where(start > 1e4, stirling, gammaln(start + steps) - gammaln(start))
    return value


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
