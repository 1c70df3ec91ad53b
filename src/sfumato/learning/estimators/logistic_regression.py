"""Logistic regression with differential privacy: noisy full-batch Newton steps with a fixed, noisy curvature."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin

from sfumato.errors import BadParameter
from sfumato.learning.base import PrivateClassifier
from sfumato.learning.moments import noisy_moments
from sfumato.learning.noisy_sums import FEATURE_STEPS, WEIGHT_STEPS, NoisySums, exact_product

__all__ = ["LogisticRegression"]

Floats = npt.NDArray[np.float64]
_MOMENTS = Fraction(1, 10)
"""Share of the budget for the second moments of the features."""
_CURVATURE = 0.12
"""Typical p·(1 - p), at most 1/4: the Hessian is taken as this times the second moments."""
_DAMPING = 2.5
"""Smallest curvature of a direction, in standard deviations of the noise of a gradient."""


class LogisticRegression(ClassifierMixin, PrivateClassifier):  # type: ignore[misc]
    """Logistic regression with differential privacy, for two or more classes.

    Features are scaled to -1 .. 1 by their public bounds, categories become indicators. The second moments of the
    features are measured once with noise (one tenth of the budget) and serve as a fixed curvature, so that ``steps``
    noisy gradients over all rows suffice. The model is the average of the later iterates. Nothing is clipped by a
    threshold that has to be tuned: a row's gradient is bounded by its number of features.

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
        The budget ledger (a path, a URL or a :class:`~sfumato.dp.Ledger`) and the data set that is charged.

    Attributes
    ----------
    coef_, intercept_
        Coefficients of the scaled features, in the order of features and their categories.
    privacy_
        The :class:`~sfumato.learning.PrivacyStatement`.
    """

    def __init__(
        self, *, epsilon: Any = None, delta: Any = None, bounds: Any = None, categories: Any = None,
        classes: Any = None, steps: int = 16, max_rows: int = 1, ledger: Any = None, dataset: str | None = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.steps = steps
        self.max_rows = max_rows
        self.ledger = ledger
        self.dataset = dataset

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
        weights = _fit(design, targets, norm=domain.squared_norm + 1, steps=self.steps, sums=self._charge())
        self.coef_, self.intercept_ = weights[:-1].T, weights[-1]
        return self

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """The linear score of every row: of the second class, or of each of three and more."""
        rows = self._fitted_rows(X)
        scores = self._domain().scaled(rows) @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The probability of every class, in the order of ``classes_``."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))


def _fit(design: Floats, targets: Floats, *, norm: int, steps: int, sums: NoisySums) -> Floats:
    """Coefficients per feature and output. ``design`` is in grid steps; ``norm`` is its largest squared norm."""
    moments, rows, _ = noisy_moments(design, norm=norm, share=_MOMENTS, sums=sums)
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
        gradient = sums.measure(exact_product(design, _residuals(chances - targets)), distance=distance, share=share)
        weights = weights - directions @ ((directions.T @ (gradient / scale)) / curvature[:, None])
        if step >= steps // 4:
            total, kept = total + weights, kept + 1
    return total / kept


def _residuals(errors: Floats) -> Floats:
    """Residuals in grid steps, rounded towards zero; a row beyond the bound, by the rounding of floats, counts zero."""
    steps = np.trunc(np.clip(np.nan_to_num(errors), -1, 1) * WEIGHT_STEPS)
    steps[(steps * steps).sum(axis=1) > min(errors.shape[1], 2) * float(WEIGHT_STEPS) ** 2] = 0
    return steps
