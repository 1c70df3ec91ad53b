"""Top-k selection: the keys with the largest or smallest counts or sums, public or private."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from sfumato.dp.loss import PrivacyLoss, approximate, bounded_range, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.rational_bounds import exp_bracket, ln_up, short_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import exponential_race
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue


class TopKeys(Mechanism):
    """Select ``count`` keys one after the other, each by the exponential mechanism over the keys that are left.

    The input is one whole number per key; adding a unit raises each by 0 to ``sensitivity``, or lowers each by that
    much. The output is the indices of the selected keys, the largest number first, or the smallest with ``smallest``.
    The loss does not grow with the number of keys of a unit. The log-probabilities of one selection move within a range
    of rate·s, so that it costs (rate·s)²/8 in rho (Cesar, Rogers 2021, Theorem 2).

    Private keys need a ``limit``: a further candidate of that count, at whose selection the output ends. *Theorem*: one
    selection is (rate·s, d·exp(rate·(s - limit)))-differentially private if a unit has at most d = ``most`` keys that
    nobody else has, each of a count of at most s. *Proof*: let Z be the sum of the weights exp(rate·count) and of the
    limit's weight. The unit's own keys are selected with probability at most their weight over that of the limit,
    delta = d·exp(rate·(s - limit)). Of all other outcomes a weight grows by a factor of 1 to exp(rate·s) with the unit,
    and Z does not fall, so that no probability grows by more than exp(rate·s). Z grows by at most
    exp(rate·s) + delta, so that probabilities without the unit are at most that factor larger: delta is added for any
    set of outcomes. Public keys have no delta, and Z grows by at most exp(rate·s). The selections compose.

    ``error`` bounds the difference between the best and each selected count among ``candidates``.

    >>> from sfumato.dp import SecretValue, pure
    >>> from sfumato.ledger import Charge, Ledger
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(100), dataset="survey")
    >>> top = TopKeys.for_budget(50, count=2)
    >>> charge = Charge(loss=top.loss(), unit="row", what="two largest towns")
    >>> receipt = ledger.charge(charge, dataset="survey", analyst="ana")
    >>> top.release(SecretValue([3, 80, 8, 40]), receipt=receipt)
    (1, 3)
    """

    examples = ({"rate": "1/2", "count": 2}, {"rate": 1, "count": 1, "limit": 40, "most": 5},
                {"rate": 1, "count": 1, "smallest": True})  # fmt: skip
    reference = "McSherry, Talwar (2007), doi:10.1109/FOCS.2007.66; Cesar, Rogers (2021), arXiv:2004.07223"
    proof = "McSherry, Talwar 2007, Theorem 6, for monotone utilities; private keys: in the class docstring"
    specimen = np.array([3, 5, 8, 90])

    rate: Positive
    """Increase of the log-probability per row of a count."""
    count: Annotated[int, Field(ge=1)]
    """Number of keys that are selected."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Count of the candidate that ends the output; None where the keys are public."""
    most: Annotated[int, Field(ge=1)] = 1
    """Number of keys of one unit, where keys are private."""
    smallest: bool = False
    """Select the smallest numbers; only where the keys are public."""

    @model_validator(mode="after")
    def _private_keys_are_large(self) -> Self:
        if self.smallest and self.limit is not None:
            raise ValueError("private keys with small counts are not selected: few people have them")
        return self

    @classmethod
    def for_budget(
        cls, epsilon: Number, delta: Number = 0, *, count: int, sensitivity: Number = 1, most: int | None = None,
        smallest: bool = False,
    ) -> Self:  # fmt: skip
        """The largest rate and smallest limit within (epsilon, delta); ``most`` is None where the keys are public."""
        width = sensitivity_of(sensitivity)
        rate = Fraction(pure(epsilon).size / (width * count))
        if most is None:
            return cls(rate=rate, count=count, smallest=smallest)
        limit = width + ln_up(Fraction(most * count) / rational(delta)) / rate
        return cls(rate=rate, count=count, limit=limit.__ceil__() + 1, most=most)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        width = sensitivity_of(sensitivity)
        if self.limit is None or width == 0:
            return bounded_range(self.rate * width).times(self.count)
        return approximate(self.count * self.rate * width, self.count * self._own_keys(width))

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # Weights of a unit's keys, as exponents of e: each grows by ``raised``; a key of its own has ``raised`` - limit
        # beside the candidate that ends the output.
        raised = self.rate * bounds.change
        rounds = self.count * bounds.groups
        if self.limit is None:
            return bounded_range(raised).times(rounds)
        return approximate(rounds * raised, rounds * self._own_keys(bounds.change))

    def _own_keys(self, width: Fraction) -> Fraction:
        """An upper bound of the probability that one selection is a key that nobody else has."""
        assert self.limit is not None
        if width >= self.limit:
            raise BadParameter("the limit is not above what one unit adds to a count.", fix="Use a larger limit.")
        return short_up(min(Fraction(1), self.most / exp_bracket(self.rate * (self.limit - width))[0]))

    def error(self, *, confidence: Number, outputs: int = 1, candidates: int = 2) -> float:
        """ln(candidates / beta) / rate, with beta divided among all selections (Dwork, Roth 2014, Theorem 3.11)."""
        beta = tail(confidence, outputs * self.count)
        return (log(candidates) + float(ln_up(1 / beta))) / float(self.rate)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> tuple[int, ...]:
        """Indices of the selected keys, at most ``count`` of them, in the order of selection."""
        counts = as_integers(self._open(value, receipt, sensitivity)) * (-1 if self.smallest else 1)
        ends = counts.size  # the place of the candidate that ends the output
        if self.limit is not None:
            counts = np.append(counts, self.limit)
        left = np.ones(counts.size, dtype=np.int64)
        chosen: list[int] = []
        while len(chosen) < self.count and left.any():
            place = exponential_race(counts.max() - counts, self.rate, left)
            if place == ends:
                break
            chosen.append(place)
            left[place] = 0
        return tuple(chosen)
