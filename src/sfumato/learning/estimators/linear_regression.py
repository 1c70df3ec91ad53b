"""Linear regression with differential privacy: ridge regression on noisy second moments."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from sfumato.arrays import Floats
from sfumato.errors import BadParameter
from sfumato.learning.base import PrivateEstimator
from sfumato.learning.domain import FeatureDomain
from sfumato.learning.moments import measured_scaling, noisy_moments, shortened
from sfumato.learning.noisy_sums import FEATURE_STEPS, NoisySums

_MEAN = Fraction(1, 10)
"""Share of the budget for the number of rows and the sum of the target."""
_SPREADS = Fraction(1, 5)
"""Share of the budget that finds where the numbers are."""
_VISIBLE = 1 / 12
"""Largest eigenvalue of the noise of the moments with which slopes are fitted. Numbers within three spreads have a mean
square of 1/9: a slope is not visible where the noise is about as large."""
_PENALTIES = (2.0, 4.0, 8.0, 16.0, 32.0, np.inf)
"""Ridge penalties that are tried, in units of noise·sqrt(width): the noise of the matrix has eigenvalues up to about
twice that, so the smallest penalty keeps the normal equations positive definite. The last one predicts the mean."""
_THINNINGS = 32
"""How often the noisy moments are divided to choose a penalty."""
_CAUTION = 0.5
"""Standard deviations of noise by which slopes must be better than smaller ones."""
_TAUGHT = 0.7
"""Noise that is added to the part that fits, in units of that of the moments."""


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Linear regression with differential privacy, from noisy sufficient statistics.

    A tenth of the budget measures the number of rows and the mean of the target. If the noise of the second moments
    would hide all slopes, which follows from the noisy number of rows, the rest measures the mean again, and the model
    predicts it. Otherwise a fifth of the budget finds mean and spread of every number; features and target are clipped
    to three spreads and scaled. What is left measures all second moments at once (AnalyzeGauss), on rows shortened to
    about a quarter of the largest possible squared norm. The intercept is not penalized. The ridge penalty is chosen
    among multiples of the noise, an infinite one included.

    Parameters
    ----------
    epsilon, delta, bounds, categories, max_rows, ledger, dataset
        As for :class:`~sfumato.learning.LogisticRegression`.
    target_bounds
        Public bounds ``(low, high)`` of the target; required. Targets are clipped to them.

    Attributes
    ----------
    coef_, intercept_
        Coefficients of the features scaled to -1 .. 1, in the unit of the target.
    range_
        Three noisy spreads around the noisy mean of the target, within its bounds: where predictions lie.
    """

    supervised = True

    categories: Any = None
    target_bounds: Any = None

    def _target_options(self) -> dict[str, object]:
        return {"y_numeric": True}

    def fit(self, X: Any, y: Any) -> LinearRegression:  # noqa: N803
        """Charge the budget and fit the model."""
        self._check_budget()
        if self.target_bounds is None:
            raise BadParameter(
                "`target_bounds` is required: the public bounds of `y`.", fix="For example target_bounds=(0, 100000)."
            )
        target = FeatureDomain.declare(1, bounds=tuple(self.target_bounds))
        rows, y = self._checked_rows(X, y, reset=True)
        domain = self._domain()
        design = np.hstack([
            domain.in_steps(rows, constant=False),
            target.in_steps(np.asarray(y, dtype=np.float64)[:, None], constant=True),
        ])  # fmt: skip
        numbers, sums = np.append(domain.numbers, True), self._charge()
        # Numbers within three spreads have a mean square of 1/9; indicators of a category have 1 for each feature.
        count = int(np.count_nonzero(numbers))
        norm = 1 + domain.squared_norm + 1 - count + -(-count // 4)
        [column] = target.columns
        half = (column.high - column.low) / 2  # type: ignore[union-attr]
        first = _sum_and_rows(design, _MEAN, sums)
        hidden = sums.deviation(distance=norm**2 * FEATURE_STEPS**4, share=1 - _MEAN - _SPREADS) / FEATURE_STEPS**2
        if hidden * sqrt(design.shape[1]) > _VISIBLE * max(1.0, first[1]):
            total, rows_seen = float(_MEAN) * first + float(1 - _MEAN) * _sum_and_rows(design, 1 - _MEAN, sums)
            mean_target = float(np.clip(total / max(1.0, rows_seen), -1, 1))
            self.coef_ = np.zeros(design.shape[1] - 2)
            self.intercept_ = (mean_target + 1) * half + column.low  # type: ignore[union-attr]
            self.range_ = (self.intercept_, self.intercept_)
            return self
        scaling = measured_scaling(design, numbers, share=_SPREADS, sums=sums)
        moments, _, noise = noisy_moments(
            shortened(scaling.steps(design), norm=norm), norm=norm, share=1 - _MEAN - _SPREADS, sums=sums
        )
        slopes = _slopes(moments, _penalty(moments, noise))
        scales = scaling.scale[:-1]
        weights = slopes * scales[-1] / scales[:-1]
        mean = moments[-1, :-1] * scales + scaling.center[:-1]
        self.coef_ = weights * half
        self.intercept_ = float((mean[-1] - weights @ mean[:-1] + 1) * half + column.low)  # type: ignore[union-attr]
        ends = scaling.center[-2] + scaling.scale[-2] * np.array([-1.0, 1.0])
        self.range_ = tuple(((ends + 1) * half + column.low).tolist())  # type: ignore[union-attr]
        return self

    def predict(self, X: object) -> Floats:  # noqa: N803
        """The predicted target of every row, within ``range_``."""
        rows = self._fitted_rows(X)
        return np.asarray(np.clip(self._domain().scaled(rows) @ self.coef_ + self.intercept_, *self.range_))


def _sum_and_rows(design: Floats, share: Fraction, sums: NoisySums) -> Floats:
    """The noisy sum of the scaled target, and the noisy number of rows. One row moves each of them by at most one."""
    exact = design[:, -2:].sum(axis=0).astype(np.int64)
    return sums.measure(exact, distance=2 * FEATURE_STEPS**2, share=share) / FEATURE_STEPS


def _centered(moments: Floats) -> Floats:
    """Covariances of features and target, from second moments whose last column is that of the constant."""
    mean = moments[-1, :-1]
    return np.asarray(moments[:-1, :-1] - np.outer(mean, mean))


def _slopes(moments: Floats, penalty: float) -> Floats:
    """Slopes of the ridge regression of the last column but one on the columns before it."""
    covariance = _centered(moments)
    values, directions = np.linalg.eigh(covariance[:-1, :-1])
    return np.asarray(directions @ ((directions.T @ covariance[:-1, -1]) / (np.maximum(values, 0) + penalty)))


def _penalty(moments: Floats, noise: float) -> float:
    """The ridge penalty with the smallest error on an independent part of the noisy moments, less its own noise.

    Data thinning (Neufeld, Dharamshi, Gao, Witten 2024, doi:10.48550/arXiv.2301.07276): with g as the noise of z, but
    drawn anew, z + t·g and z - g/t are independent. Slopes from the first are judged by the second without bias. Noise
    is common to all thinnings, so half a standard deviation of what it does to the error of slopes w is added:
    noise·sqrt(2·|w|⁴ + 4·|w|²) at most. This looks at noisy moments only and costs no budget.
    """
    draw, upper = np.random.default_rng(0), np.triu_indices(len(moments))
    penalties = [noise * sqrt(len(moments) - 2) * size for size in _PENALTIES]
    errors = np.zeros(len(penalties))
    for _ in range(_THINNINGS):
        change = np.zeros_like(moments)
        change[upper] = draw.normal(scale=noise, size=len(upper[0]))
        change[-1, -1] = 0  # the number of rows divides both parts
        change += np.triu(change, 1).T
        judge = _centered(moments - change / _TAUGHT)
        for index, penalty in enumerate(penalties):
            slopes = _slopes(moments + _TAUGHT * change, penalty)
            length = float(slopes @ slopes)
            errors[index] += slopes @ judge[:-1, :-1] @ slopes - 2 * slopes @ judge[:-1, -1]
            errors[index] += _CAUTION * noise * sqrt(2 * length**2 + 4 * length)
    return penalties[int(np.argmin(errors))]
