"""Logistic regression with differential privacy: noisy full-batch Newton steps with a fixed, noisy curvature."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin

from sfumato.arrays import Floats
from sfumato.errors import BadParameter
from sfumato.learning.base import ScoringClassifier
from sfumato.learning.moments import clip_to_spread, noisy_moments
from sfumato.learning.noisy_sums import FEATURE_STEPS, WEIGHT_STEPS, NoisySums, exact_product
from sfumato.learning.residuals import residuals

_MOMENTS = Fraction(1, 10)
"""Share of the budget for the second moments of the features."""
_CURVATURE = 0.12
"""Typical p·(1 - p), at most 1/4: the Hessian is taken as this times the second moments."""
_DAMPING = 6.0
"""Smallest curvature of a direction, in standard deviations of the noise of a gradient."""


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(ClassifierMixin, ScoringClassifier):  # type: ignore[misc]
    """Logistic regression with differential privacy, for two or more classes.

    Features are scaled to -1 .. 1 by their public bounds, categories become indicators. The second moments of the
    features are measured once with noise, for one tenth of the budget. Numbers are then clipped three noisy standard
    deviations around their noisy mean and scaled again, so that wide bounds cost little. The moments also serve as a
    fixed curvature, so that ``steps`` noisy gradients over all rows suffice. The model is the average of the later
    iterates. A row's gradient is bounded by its number of features; there is no clipping threshold to tune.

    Parameters
    ----------
    epsilon, delta
        Privacy loss of one row; required.
    bounds
        Public bounds of numbers: ``(low, high)`` for all, one pair per feature, or ``{feature: (low, high)}``.
    categories
        Public values of categories: ``{feature: values}``. Values that are not declared become zeros.
    classes
        All labels that ``y`` may have; required.
    steps
        Number of noisy gradients.
    max_rows
        The largest number of rows of one person. It is not enforced here: the caller promises it.
    ledger, dataset
        The budget ledger (a path, a URL or a :class:`~sfumato.ledger.Ledger`) and the data set that is charged.

    Attributes
    ----------
    coef_, intercept_
        Coefficients of the scaled features, in the order of features and their categories.
    center_, scale_
        Position and half width of the clipped numbers, in features scaled to -1 .. 1 by their bounds.
    privacy_
        The :class:`~sfumato.release.guarantee.Guarantee`.
    """

    steps: int = 24

    def fit(self, X: Any, y: Any) -> LogisticRegression:  # noqa: N803
        """Charge the budget and fit the model."""
        self._check_budget()
        if not isinstance(self.steps, int) or isinstance(self.steps, bool) or self.steps < 1:
            raise BadParameter("`steps`, the number of noisy gradients, must be 1 or larger.")
        rows, y = self._checked_rows(X, y, reset=True)
        codes, domain = self._codes(y), self._domain()
        design = domain.in_steps(rows, constant=True)
        two = len(self.classes_) == 2
        targets = codes[:, None].astype(np.float64) if two else np.eye(len(self.classes_))[codes]
        sums, norm = self._charge(), domain.squared_norm + 1
        moments, count, noise = noisy_moments(design, norm=norm, share=_MOMENTS, sums=sums)
        scaling = clip_to_spread(moments[-1, :-1], np.diag(moments)[:-1], domain.numbers, noise)
        design = scaling.steps(design)
        weights = _fit(design, targets, scaling.moments(moments), count, norm=norm, steps=self.steps, sums=sums)
        self.center_, self.scale_ = scaling.center[:-1], scaling.scale[:-1]
        self.coef_, self.intercept_ = weights[:-1].T, weights[-1]
        return self

    def decision_function(self, X: object) -> Floats:  # noqa: N803
        """The linear score of every row: of the second class, or of each of three and more."""
        rows = self._fitted_rows(X)
        features = np.clip((self._domain().scaled(rows) - self.center_) / self.scale_, -1, 1)
        scores = features @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)


def _fit(
    design: Floats, targets: Floats, moments: Floats, rows: float, *, norm: int, steps: int, sums: NoisySums
) -> Floats:
    """Coefficients per feature and output. ``design`` is in grid steps; ``norm`` is its largest squared norm."""
    values, directions = np.linalg.eigh(moments)
    outputs = targets.shape[1]
    # Residuals of one row: at most 1 for one output, and two of at most 1 for several.
    distance = norm * FEATURE_STEPS**2 * WEIGHT_STEPS**2 * min(outputs, 2)
    share, scale = (1 - _MOMENTS) / steps, FEATURE_STEPS * WEIGHT_STEPS * rows
    noise = sums.deviation(distance=distance, share=share) / scale
    curvature = _CURVATURE * np.maximum(values, 0) + _DAMPING * noise
    weights = np.zeros((design.shape[1], outputs))
    total, kept = np.zeros_like(weights), 0
    for step in range(steps):
        scores = design @ (weights / FEATURE_STEPS)
        chances = expit(scores) if outputs == 1 else softmax(scores, axis=1)
        gradient = sums.measure(exact_product(design, residuals(chances - targets)), distance=distance, share=share)
        weights = weights - directions @ ((directions.T @ (gradient / scale)) / curvature[:, None])
        if step >= steps // 4:
            total, kept = total + weights, kept + 1
    return total / kept
