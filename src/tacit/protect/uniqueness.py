"""How many people are unique in the population, estimated from a sample's class sizes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import gammaln

__all__ = ["dankar", "pitman", "zayatz"]

Ints = npt.NDArray[np.int64]


def zayatz(sizes: Ints, fraction: float) -> float:
    """Expected share of the population's people who are unique in it, after Zayatz (1991).

    The chance that a sample unique is a population unique follows from drawing a sample of the sample with the same
    ``fraction``: P(class of 1 in the population | class of 1 in the sample), with the sample's own size distribution
    standing in for the population's.
    """
    counts = np.bincount(sizes[sizes > 0])
    if len(counts) < 2 or counts[1] == 0:
        return 0.0
    values = np.flatnonzero(counts)
    classes = counts[values] / counts.sum()
    # hypergeometric chance that exactly one of j people of a class is drawn
    people = round(int(sizes.sum()) / fraction)
    drawn = int(sizes.sum())
    one = np.exp(np.log(values) + _log_choose(people - values, drawn - 1) - _log_choose(people, drawn))
    alone = classes[values == 1][0] * one[values == 1][0] / float(classes @ one)
    return float(alone * counts[1] / drawn)


def pitman(sizes: Ints, fraction: float) -> float:
    """Expected share of the population's people who are unique in it, under Pitman's sampling formula (Hoshino 2001).

    The two parameters are fitted to the class sizes by maximum likelihood.
    """
    sizes = sizes[sizes > 0]
    rows, classes = int(sizes.sum()), len(sizes)
    if rows == classes:
        return 1.0
    if not (sizes == 1).any():
        return 0.0
    counts = np.bincount(sizes)
    # how many classes have more than i rows, for i = 1, 2, ...
    larger = counts[::-1].cumsum()[::-1][2:].astype(np.float64)
    steps = np.arange(1, len(larger) + 1, dtype=np.float64)
    number = np.arange(1, classes, dtype=np.float64)

    def loss(at: npt.NDArray[np.float64]) -> float:
        theta, alpha = float(np.exp(at[0])), float(1 / (1 + np.exp(-at[1])))
        value = np.log(theta + number * alpha).sum() + float(larger @ np.log(steps - alpha))
        return -float(value - (gammaln(theta + rows) - gammaln(theta + 1)))

    fit = minimize(loss, np.array([np.log(classes), 0.0]), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9})
    theta, alpha = float(np.exp(fit.x[0])), float(1 / (1 + np.exp(-fit.x[1])))
    people = rows / fraction
    return float(min(1.0, np.exp(gammaln(theta + 1) - gammaln(theta + alpha) + (alpha - 1) * np.log(people))))


def dankar(sizes: Ints, fraction: float) -> float:
    """Pitman's estimate for samples of up to a tenth of the population, Zayatz's above.

    The decision rule of Dankar et al. (2012), doi:10.1186/1472-6947-12-66, without its third estimator.
    """
    return pitman(sizes, fraction) if fraction <= 0.1 else zayatz(sizes, fraction)


def _log_choose(n: npt.NDArray[np.int64] | int, k: int) -> npt.NDArray[np.float64]:
    n = np.asarray(n, dtype=np.float64)
    return np.asarray(np.where(n >= k, gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1), -np.inf))
