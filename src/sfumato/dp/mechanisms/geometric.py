"""Geometric mechanism for counts, with an optional range."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np
from pydantic import model_validator

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism, NoiseModel, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.noise_sums import laplace_mean_square, laplace_radius
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue


class Geometric(Mechanism):
    """Add two-sided geometric noise to a count and clamp the result to the range of possible counts.

    The probability of noise y is proportional to exp(-abs(y) / scale). Clamping to ``low`` .. ``high`` is
    post-processing: it adds no loss, but the answer is biased near the ends of the range. For a single count this
    mechanism is optimal among all mechanisms of the same epsilon, for every prior and loss function of a user.
    ``error`` bounds abs(noise).
    """

    main = "scale"
    examples = ({"scale": 2}, {"scale": "1/2", "low": 0, "high": 1000})
    reference = "Ghosh, Roughgarden, Sundararajan (2012), doi:10.1137/09076828X"
    proof = "Ghosh, Roughgarden, Sundararajan 2012, Definition 2.1 and Section 2; range by post-processing"
    specimen = np.array([3, 5, 8])

    scale: Positive
    """Scale of the noise; the loss is sensitivity / scale."""
    low: int | None = None
    """Smallest possible count, usually 0; no clamping if omitted."""
    high: int | None = None
    """Largest possible count: a public number, not the number of rows in the data."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("low must not be above high")
        return self

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: Number = 1) -> Self:
        """The noise whose loss at ``sensitivity`` is ``epsilon``."""
        return cls(scale=sensitivity_of(sensitivity) / rational(epsilon))

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return pure(sensitivity_of(sensitivity) / self.scale)

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # A shift by one multiplies a probability by at most exp(1 / scale).
        per_step = 1 / self.scale
        return pure(per_step * bounds.change * bounds.groups)

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        return laplace_radius(self.scale, Fraction(1), tail(confidence, outputs))

    @property
    def noise(self) -> NoiseModel | None:
        """None with a range: the error of a clamped count is not symmetric."""
        return NoiseModel(scale=self.scale) if self.low is None and self.high is None else None

    @property
    def mean_square(self) -> float | None:
        if self.noise is None:
            return None
        return laplace_mean_square(self.scale)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        opened = as_integers(self._open(value, receipt, sensitivity))
        noisy = opened + discrete_laplace(self.scale, opened.size).reshape(opened.shape)
        return np.clip(noisy, self.low, self.high) if self.low is not None or self.high is not None else noisy
