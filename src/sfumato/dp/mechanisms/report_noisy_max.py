"""Report noisy max: the index of the largest of several counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace
from sfumato.rationals import Number
from sfumato.secret import SecretValue


class ReportNoisyMax(Mechanism):
    """Add discrete Laplace noise to every count and report the index of the largest noisy count.

    The loss does not depend on the number of counts: sensitivity / scale for ``monotone`` counts, twice that otherwise.
    The noisy count of the winner is not part of the answer. With ``count_scale``, a second noisy count of the winner is
    reported for an additional loss of sensitivity / count_scale. Ties go to the lowest index. ``error`` bounds the
    difference between the best and the winner's true count among ``candidates``.

    >>> from sfumato.dp import SecretValue, pure
    >>> from sfumato.ledger import Charge, Ledger
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(100), dataset="votes")
    >>> largest = ReportNoisyMax.for_epsilon(50, monotone=True)
    >>> charge = Charge(loss=largest.loss(), unit="row", what="largest party")
    >>> receipt = ledger.charge(charge, dataset="votes", analyst="ana")
    >>> largest.release(SecretValue([300, 812, 5]), receipt=receipt)
    (1, None)
    """

    examples = ({"scale": 2}, {"scale": 2, "monotone": True, "count_scale": 4})
    reference = "Dwork, Roth (2014), doi:10.1561/0400000042, section 3.3"
    proof = "Dwork, Roth 2014, Claim 3.9, on the integers with a fixed order of ties; winner's count by composition"
    specimen = np.array([3, 5, 8])

    scale: Positive
    """Scale of the Laplace noise on each count."""
    monotone: bool = False
    """Whether adding a unit to the data never lowers any count."""
    count_scale: Positive | None = None
    """Scale of the noise on the winner's reported count; None reports no count."""

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: Number = 1, monotone: bool = False) -> Self:
        """The least noise whose loss is ``epsilon``, without a count of the winner."""
        width = sensitivity_of(sensitivity) * (1 if monotone else 2)
        return cls(scale=Fraction(width / pure(epsilon).size), monotone=monotone)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        width = sensitivity_of(sensitivity)
        choice = pure((1 if self.monotone else 2) * width / self.scale)
        return choice if self.count_scale is None else choice + pure(width / self.count_scale)

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # Given the noise of the others, the winner needs noise above a gap; a unit moves the gap by at most ``gap``.
        raised, lowered = bounds.change, 0 if self.monotone else bounds.change
        gap = raised + lowered
        count = bounds.change / self.count_scale if self.count_scale is not None else 0
        return pure(bounds.groups * (gap / self.scale + count))

    def error(self, *, confidence: Number, outputs: int = 1, candidates: int = 2) -> float:
        """2·scale·ln(candidates / beta)."""
        return float(2 * self.scale * (ln_up(1 / tail(confidence, outputs * candidates))))

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> tuple[int, int | None]:
        """The index of the winner, and its noisy count if ``count_scale`` is set."""
        counts = as_integers(self._open(value, receipt, sensitivity))
        winner = int(np.argmax(counts + discrete_laplace(self.scale, counts.size)))
        if self.count_scale is None:
            return winner, None
        return winner, int(counts[winner]) + int(discrete_laplace(self.count_scale, 1)[0])
