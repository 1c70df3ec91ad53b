"""Exponential mechanism: select one of several candidates, with higher probability for higher utility."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any

import numpy as np

from sfumato.dp.loss import PrivacyLoss, bounded_range, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import exponential_race
from sfumato.rationals import Number
from sfumato.secret import SecretValue


class Exponential(Mechanism):
    """Select candidate i with probability proportional to exp(rate·utility).

    The input is one whole number per candidate, its utility; the output is the index of the selected candidate. The
    loss is 2·rate·sensitivity, or half of that for ``monotone`` utilities: a common form, exp(ε·utility/sensitivity),
    costs 2ε, because one unit changes the weight of a candidate and the sum of all weights. Sampling is exact and takes
    the same work for all utilities. ``error`` bounds the difference between the best and the selected utility among
    ``candidates``.

    >>> from sfumato.dp import SecretValue, pure
    >>> from sfumato.ledger import Charge, Ledger
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(100), dataset="survey")
    >>> mode = Exponential.for_epsilon(50, monotone=True)
    >>> charge = Charge(loss=mode.loss(), unit="row", what="mode of colour")
    >>> receipt = ledger.charge(charge, dataset="survey", analyst="ana")
    >>> ["red", "green", "blue"][mode.release(SecretValue([3, 80, 8]), receipt=receipt)]
    'green'
    """

    examples = ({"rate": "1/2"}, {"rate": 1, "monotone": True})
    reference = "McSherry, Talwar (2007), doi:10.1109/FOCS.2007.66"
    proof = "McSherry, Talwar 2007, Theorem 6; monotone utilities: Dwork, Roth 2014, remark after Theorem 3.10"
    specimen = np.array([3, 5, 8])

    rate: Positive
    """Increase of the log-probability per unit of utility."""
    monotone: bool = False
    """Whether adding a unit to the data never lowers any utility, as for counts."""

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: Number = 1, monotone: bool = False) -> Exponential:
        """The largest rate whose loss is ``epsilon``."""
        width = sensitivity_of(sensitivity) * (1 if monotone else 2)
        return cls(rate=Fraction(pure(epsilon).size / width), monotone=monotone)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return bounded_range((1 if self.monotone else 2) * self.rate * sensitivity_of(sensitivity))

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # A unit multiplies each candidate's weight by a factor in [1, f], or in [1/f, f] where it may lower utilities.
        # The probability of a candidate is its weight over the sum: the widest ratio of two such factors.
        log_factor = self.rate * bounds.change
        lowest = 0 if self.monotone else -log_factor
        return bounded_range(log_factor - lowest).times(bounds.groups)

    def error(self, *, confidence: Number, outputs: int = 1, candidates: int = 2) -> float:
        """ln(candidates / beta) / rate (Dwork, Roth 2014, Theorem 3.11)."""
        return (log(candidates) + float(ln_up(1 / tail(confidence, outputs)))) / float(self.rate)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> int:
        """The index of the selected candidate."""
        utilities = as_integers(self._open(value, receipt, sensitivity))
        return exponential_race(utilities.max() - utilities, self.rate)
