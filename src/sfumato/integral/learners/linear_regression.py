"""Linear regression by least squares with rounded coefficients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.integral.encoding import Codes, Encoding
from sfumato.integral.learners._rounded import RoundedLearner, scaled
from sfumato.integral.records import Records


class LinearRegressionLearner(RoundedLearner):
    """Ridge regression with an intercept; coefficients are rounded to multiples of a step.

    Sums of squares and products are exact, so the model depends on the records only, not on their order.
    """

    main = "step"
    examples = ({"step": 0.05}, {"step": 0.1, "ridge": 1.0})

    ridge: float = Field(default=0.001, gt=0)
    """Penalty on the squares of the coefficients, the intercept excepted."""

    def fit(self, records: Records, counts: Codes) -> bytes:
        return self.fit_many(records, counts[None, :])[0]

    def fit_many(self, records: Records, counts: Codes) -> Sequence[bytes]:
        features, labels = scaled(records)
        records.labels  # noqa: B018 - refuses records without a label
        design = np.hstack([np.ones((len(features), 1)), features, labels])
        width = design.shape[1]
        products = (design[:, :, None] * design[:, None, :]).reshape(len(design), width * width)
        sums = (counts.astype(np.float64) @ products).reshape(-1, width, width)
        gram, moments = sums[:, :-1, :-1], sums[:, :-1, -1]
        penalty = np.diag([1e-9, *[self.ridge] * (width - 2)])
        return [self.rounded(row) for row in np.linalg.solve(gram + penalty, moments[..., None])[..., 0]]

    def predict(self, model: bytes, features: Floats) -> Floats:
        intercept, *coefficients = self.parameters(model)
        return np.asarray(intercept + features @ np.asarray(coefficients))

    def score(self, model: bytes, records: Records) -> float:
        """The share of the label's variance that the model explains (R²)."""
        features, labels = scaled(records)
        counts, truth = records.counts, labels[:, 0]
        residual = (counts * (truth - self.predict(model, features)) ** 2).sum()
        total = (counts * (truth - np.average(truth, weights=counts)) ** 2).sum()
        return float(1 - residual / total) if total > 0 else 0.0

    def describe(self, model: bytes, encoding: Encoding) -> list[str]:
        names = ["intercept", *(column.name for column in encoding.features)]
        return [f"{name}: {value:g}" for name, value in zip(names, self.to_json(model), strict=True)]
