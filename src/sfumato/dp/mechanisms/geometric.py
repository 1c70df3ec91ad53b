"""The range-restricted geometric mechanism for counts."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from pydantic import model_validator

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

__all__ = ["Geometric"]


class Geometric(Mechanism):
    """Two-sided geometric noise on a count, cut to the range of possible counts.

    Chance of noise y is proportional to ratio**abs(y) with ratio = exp(-1 / scale). Cutting to ``low`` .. ``high`` is
    post-processing: it costs nothing, but near an end it makes the answer biased, so ``bias`` is 0 only without a
    range. For a count asked once, and any prior and loss function of a user, no other mechanism of the same epsilon
    serves better. ``error`` bounds abs(noise) before the cut, and so after it.
    """

    main = "scale"
    examples = ({"scale": 2}, {"scale": "1/2", "low": 0, "high": 1000})
    reference = "Ghosh, Roughgarden, Sundararajan (2012), doi:10.1137/09076828X"
    proof = "Ghosh, Roughgarden, Sundararajan 2012, Definition 2.1 and Section 2; range by post-processing"
    specimen: ClassVar[Any] = np.array([3, 5, 8])

    scale: Positive
    """1 / ln(1/ratio): loss is sensitivity / scale."""
    low: int | None = None
    """Smallest count that makes sense, usually 0; no cut when left out."""
    high: int | None = None
    """Largest count that makes sense; a public number, never the number of rows found."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("low must not be above high")
        return self

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: Number = 1) -> Self:
        """The noise that makes ``sensitivity`` cost exactly ``epsilon``."""
        return cls(scale=sensitivity_of(sensitivity) / rational(epsilon))

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return pure(sensitivity_of(sensitivity) / self.scale)

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        return float(self.scale * ln_up(1 / tail(confidence, outputs)))

    @property
    def bias(self) -> float | None:
        """0 without a range; None (it depends on the count) with one."""
        return 0.0 if self.low is None and self.high is None else None

    @property
    def variance(self) -> float:
        """Before the cut; the cut never makes it larger."""
        ratio = 1 / float(self.scale)
        return float(2 * np.exp(-ratio) / np.expm1(-ratio) ** 2)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        opened = as_integers(self._open(value, receipt, self.loss(sensitivity)))
        noisy = opened + discrete_laplace(self.scale, opened.size).reshape(opened.shape)
        return np.clip(noisy, self.low, self.high) if self.low is not None or self.high is not None else noisy
