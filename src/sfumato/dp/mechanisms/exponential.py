"""The exponential mechanism: choose one of several candidates, better ones more often."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any, ClassVar

import numpy as np

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import exponential_race
from sfumato.rationals import Number
from sfumato.secret import SecretValue

__all__ = ["Exponential"]


class Exponential(Mechanism):
    """Choose candidate i with chance proportional to exp(rate·utility).

    The loss is 2·rate·sensitivity; when adding a unit can only raise (or only lower) every utility, half of that.
    Utilities are whole numbers. The choice is drawn exactly, by a race whose length does not depend on the utilities.
    ``error`` bounds how far the chosen utility lies below the best, for ``candidates`` to choose from.
    """

    examples = ({"rate": "1/2"}, {"rate": 1, "monotone": True})
    reference = "McSherry, Talwar (2007), doi:10.1109/FOCS.2007.66"
    proof = "McSherry, Talwar 2007, Theorem 6; monotone utilities: Dwork, Roth 2014, remark after Theorem 3.10"
    specimen: ClassVar[Any] = np.array([3, 5, 8])

    rate: Positive
    """How strongly a unit of utility is preferred."""
    monotone: bool = False
    """Whether one more unit in the data never lowers any utility (as for counts)."""

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, sensitivity: Number = 1, monotone: bool = False) -> Exponential:
        """The strongest preference that costs ``epsilon``."""
        width = sensitivity_of(sensitivity) * (1 if monotone else 2)
        return cls(rate=Fraction(pure(epsilon).size / width), monotone=monotone)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return pure((1 if self.monotone else 2) * self.rate * sensitivity_of(sensitivity))

    def error(self, *, confidence: Number, outputs: int = 1, candidates: int = 2) -> float:
        """ln(candidates / beta) / rate (Dwork, Roth 2014, Theorem 3.11)."""
        return (log(candidates) + float(ln_up(1 / tail(confidence, outputs)))) / float(self.rate)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> int:
        """The index of the chosen candidate."""
        utilities = as_integers(self._open(value, receipt, self.loss(sensitivity)))
        return exponential_race(utilities.max() - utilities, self.rate)
