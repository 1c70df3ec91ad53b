"""The sparse vector technique: many questions, pay only for the few whose answer is yes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace
from sfumato.rationals import Number
from sfumato.secret import SecretValue

__all__ = ["SparseVector"]


class SparseVector(Mechanism):
    """Say for each count in turn whether it reaches the threshold, and stop after ``stop`` times yes.

    The number of counts asked does not enter the cost: sensitivity / threshold_scale + 2·stop·sensitivity /
    query_scale (half of the second term for monotone counts). No noisy count is given: published variants that give
    one for the same price, or that do not stop, are not private. ``error`` bounds how far from the threshold an answer
    can be wrong, for ``questions`` asked.
    """

    examples = (
        {"threshold": 5, "stop": 1, "threshold_scale": 2, "query_scale": 4},
        {"threshold": 5, "stop": 2, "threshold_scale": 2, "query_scale": 4, "monotone": True},
    )
    reference = "Lyu, Su, Li (2017), doi:10.14778/3055330.3055331"
    proof = "Lyu, Su, Li 2017, Theorem 2 (general) and Theorem 5 (monotone), for Algorithm 1 without numeric output"
    specimen: ClassVar[Any] = np.array([3, 5, 8])

    threshold: int
    """The count to reach; public."""
    stop: Annotated[int, Field(ge=1)]
    """How many times yes may be said."""
    threshold_scale: Positive
    """Size of the noise on the threshold, drawn once."""
    query_scale: Positive
    """Size of the noise on each count."""
    monotone: bool = False
    """Whether one more unit in the data never lowers any count."""

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        width = sensitivity_of(sensitivity)
        per_yes = (1 if self.monotone else 2) * width / self.query_scale
        return pure(width / self.threshold_scale + self.stop * per_yes)

    def error(self, *, confidence: Number, outputs: int = 1, questions: int = 1) -> float:
        """(threshold_scale + query_scale)·ln(2·questions / beta)."""
        spread = self.threshold_scale + self.query_scale
        return float(spread * ln_up(2 / tail(confidence, outputs * questions)))

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> list[bool]:
        """True or False per count, up to and including the ``stop``-th True."""
        counts = as_integers(self._open(value, receipt, self.loss(sensitivity)))
        bar = self.threshold + int(discrete_laplace(self.threshold_scale, 1)[0])
        reached = counts + discrete_laplace(self.query_scale, counts.size) >= bar
        stops = np.flatnonzero(np.cumsum(reached) == self.stop)
        end = int(stops[0]) + 1 if len(stops) else counts.size
        return [bool(flag) for flag in reached[:end]]
