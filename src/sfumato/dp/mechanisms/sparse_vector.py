"""Sparse vector technique: test many counts against a threshold; only answers above it cost budget."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import discrete_laplace
from sfumato.rationals import Number
from sfumato.secret import SecretValue


class SparseVector(Mechanism):
    """Report for each count in turn whether it reaches the threshold, until ``stop`` counts did.

    The loss does not depend on the number of counts: sensitivity / threshold_scale + 2·stop·sensitivity / query_scale
    (half of the second term for ``monotone`` counts). Noisy counts are not reported: variants of this algorithm that
    report them at the same loss, or that do not stop, are not private. ``error`` bounds the distance from the threshold
    within which an answer can be wrong, for ``questions`` counts.

    >>> from sfumato.dp import SecretValue, pure
    >>> from sfumato.ledger import Charge, Ledger
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(100), dataset="wards")
    >>> alarm = SparseVector(threshold=50, stop=1, threshold_scale="1/10", query_scale="1/10", monotone=True)
    >>> charge = Charge(loss=alarm.loss(), unit="row", what="cases by week")
    >>> receipt = ledger.charge(charge, dataset="wards", analyst="ana")
    >>> alarm.release(SecretValue([3, 12, 90, 4]), receipt=receipt)
    [False, False, True]
    """

    examples = (
        {"threshold": 5, "stop": 1, "threshold_scale": 2, "query_scale": 4},
        {"threshold": 5, "stop": 2, "threshold_scale": 2, "query_scale": 4, "monotone": True},
    )
    reference = "Lyu, Su, Li (2017), doi:10.14778/3055330.3055331"
    proof = "Lyu, Su, Li 2017, Theorem 2 (general) and Theorem 5 (monotone), for Algorithm 1 without numeric output"
    specimen = np.array([3, 5, 8])

    threshold: int
    """The threshold; public."""
    stop: Annotated[int, Field(ge=1)]
    """Number of counts above the threshold after which the mechanism stops."""
    threshold_scale: Positive
    """Scale of the noise on the threshold, drawn once."""
    query_scale: Positive
    """Scale of the noise on each count."""
    monotone: bool = False
    """Whether adding a unit to the data never lowers any count."""

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        width = sensitivity_of(sensitivity)
        per_yes = (1 if self.monotone else 2) * width / self.query_scale
        return pure(width / self.threshold_scale + self.stop * per_yes)

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # Shift the threshold's noise by what a unit adds; each True then needs its count's noise to bridge the gap
        # between the shifted threshold and the count, which a unit moves the same way if counts are monotone.
        gap = bounds.change + (0 if self.monotone else bounds.change)
        per_group = bounds.change / self.threshold_scale + sum(gap / self.query_scale for _ in range(self.stop))
        return pure(bounds.groups * per_group)

    def error(self, *, confidence: Number, outputs: int = 1, questions: int = 1) -> float:
        """(threshold_scale + query_scale)·ln(2·questions / beta)."""
        spread = self.threshold_scale + self.query_scale
        return float(spread * ln_up(2 / tail(confidence, outputs * questions)))

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> list[bool]:
        """True or False per count, up to and including the ``stop``-th True."""
        counts = as_integers(self._open(value, receipt, sensitivity))
        bar = self.threshold + int(discrete_laplace(self.threshold_scale, 1)[0])
        reached = counts + discrete_laplace(self.query_scale, counts.size) >= bar
        stops = np.flatnonzero(np.cumsum(reached) == self.stop)
        end = int(stops[0]) + 1 if len(stops) else counts.size
        return [bool(flag) for flag in reached[:end]]
