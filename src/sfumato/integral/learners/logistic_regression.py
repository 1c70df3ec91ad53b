"""Logistic regression with rounded coefficients."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.errors import BadParameter
from sfumato.integral.encoding import Codes, Encoding
from sfumato.integral.learners._rounded import RoundedLearner, scaled
from sfumato.integral.records import Records


class LogisticRegressionLearner(RoundedLearner):
    """Penalized logistic regression for a label of two classes, by a fixed number of Newton steps.

    Coefficients are rounded to multiples of a step. The optimum is unique because of the penalty.
    """

    main = "step"
    examples = ({"step": 0.1},)

    ridge: float = Field(default=1.0, gt=0)
    """Penalty on half the squares of the coefficients; a hundredth of it on the intercept."""
    iterations: int = Field(default=12, ge=1, le=100)
    """Newton steps."""

    def fit(self, records: Records, counts: Codes) -> bytes:
        features, _ = scaled(records)
        truth = records.labels.astype(np.float64)
        assert records.encoding.label is not None
        if records.encoding.label.size != 2:
            raise BadParameter("Logistic regression needs a label with two classes.", fix="Give a threshold.")
        design = np.hstack([np.ones((len(features), 1)), features])
        penalty = np.array([0.01 * self.ridge, *[self.ridge] * features.shape[1]])
        weights, beta = counts.astype(np.float64), np.zeros(design.shape[1])
        for _ in range(self.iterations):
            chance = _logistic(design @ beta)
            gradient = design.T @ (weights * (chance - truth)) + penalty * beta
            curvature = (design.T * (weights * chance * (1 - chance))) @ design + np.diag(penalty)
            beta = beta - np.linalg.solve(curvature, gradient)
        return self.rounded(beta)

    def score(self, model: bytes, records: Records) -> float:
        """The share of records whose class is predicted."""
        intercept, *coefficients = self.parameters(model)
        predicted = intercept + scaled(records)[0] @ np.asarray(coefficients) > 0
        return float(records.counts[predicted == records.labels].sum() / records.counts.sum())

    def describe(self, model: bytes, encoding: Encoding) -> list[str]:
        names = ["intercept", *(column.name for column in encoding.features)]
        return [f"{name}: {value:g}" for name, value in zip(names, self.to_json(model), strict=True)]


def _logistic(values: Floats) -> Floats:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))
