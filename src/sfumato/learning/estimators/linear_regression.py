"""Linear regression with differential privacy: ridge regression on noisy second moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from sfumato.errors import BadParameter
from sfumato.learning.base import PrivateEstimator
from sfumato.learning.domain import FeatureDomain
from sfumato.learning.moments import noisy_moments

__all__ = ["LinearRegression"]

Floats = npt.NDArray[np.float64]


class LinearRegression(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Linear regression with differential privacy, from noisy sufficient statistics.

    Features and target are scaled to -1 .. 1 by their public bounds. All second moments are measured at once with noise
    (AnalyzeGauss), and the normal equations are solved with a ridge penalty as large as the noise of their matrix.

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
    """

    supervised = True

    def __init__(
        self, *, epsilon: Any = None, delta: Any = None, bounds: Any = None, categories: Any = None,
        target_bounds: Any = None, max_rows: int = 1, ledger: Any = None, dataset: str | None = None,
    ) -> None:  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.target_bounds = target_bounds
        self.max_rows = max_rows
        self.ledger = ledger
        self.dataset = dataset

    def _target_options(self) -> dict[str, Any]:
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
        values = target.in_steps(np.asarray(y, dtype=np.float64)[:, None], constant=True)
        design = np.hstack([domain.in_steps(rows, constant=False), values])
        norm = domain.squared_norm + target.squared_norm + 1
        moments, _, noise = noisy_moments(design, norm=norm, share=1, sums=self._charge())
        inputs = [*range(domain.width), domain.width + 1]
        matrix, right = moments[np.ix_(inputs, inputs)], moments[inputs, domain.width]
        # The noise of the matrix has eigenvalues up to about 2·noise·sqrt(width).
        values, directions = np.linalg.eigh(matrix)
        damped = np.maximum(values, 0) + noise * len(inputs) ** 0.5
        weights = directions @ ((directions.T @ right) / damped)
        [column] = target.columns
        half = (column.high - column.low) / 2  # type: ignore[union-attr]
        self.coef_ = weights[:-1] * half
        self.intercept_ = float(weights[-1] * half + column.low + half)  # type: ignore[union-attr]
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The predicted target of every row, within the bounds of the target."""
        rows = self._fitted_rows(X)
        low, high = self.target_bounds
        return np.asarray(np.clip(self._domain().scaled(rows) @ self.coef_ + self.intercept_, low, high))
