"""Report noisy max: which of several counts is the largest."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace
from sfumato.rationals import Number
from sfumato.secret import SecretValue

__all__ = ["ReportNoisyMax"]


class ReportNoisyMax(Mechanism):
    """Add discrete Laplace noise to every count and say which came out largest, and only that.

    Cost without the winning count: sensitivity / scale for counts that one unit moves in the same direction
    (``monotone``), twice that in general, however many counts there are. The noisy value of the winner is *not* free:
    with ``count_scale`` a fresh noisy count of the winner is given, at sensitivity / count_scale more. Ties go to the
    lowest index. ``error`` bounds how far the winner's true count lies below the best, among ``candidates``.
    """

    examples = ({"scale": 2}, {"scale": 2, "monotone": True, "count_scale": 4})
    reference = "Dwork, Roth (2014), doi:10.1561/0400000042, section 3.3"
    proof = "Dwork, Roth 2014, Claim 3.9, on the integers with a fixed order of ties; winner's count by composition"
    specimen: ClassVar[Any] = np.array([3, 5, 8])

    scale: Positive
    """Size of the noise on each count."""
    monotone: bool = False
    """Whether one more unit in the data never lowers any count."""
    count_scale: Positive | None = None
    """Size of the fresh noise on the winner's count; None keeps the count secret."""

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        width = sensitivity_of(sensitivity)
        choice = pure((1 if self.monotone else 2) * width / self.scale)
        return choice if self.count_scale is None else choice + pure(width / self.count_scale)

    def error(self, *, confidence: Number, outputs: int = 1, candidates: int = 2) -> float:
        """2·scale·ln(candidates / beta)."""
        return float(2 * self.scale * (ln_up(1 / tail(confidence, outputs * candidates))))

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> tuple[int, int | None]:
        """Index of the winner, and its noisy count where one was paid for."""
        counts = as_integers(self._open(value, receipt, self.loss(sensitivity)))
        winner = int(np.argmax(counts + discrete_laplace(self.scale, counts.size)))
        if self.count_scale is None:
            return winner, None
        return winner, int(counts[winner]) + int(discrete_laplace(self.count_scale, 1)[0])
