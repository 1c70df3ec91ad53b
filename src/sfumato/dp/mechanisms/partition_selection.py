"""Partition selection: which private keys may be reported."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.dp.loss import PrivacyLoss, approximate
from sfumato.dp.mechanism import ContributionBounds, Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.os_random import below
from sfumato.dp.rational_bounds import exp_bracket
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.rationals import Number
from sfumato.secret import SecretValue

_ONE = 1 << 62


class PartitionSelection(Mechanism):
    """Report each key with the largest probability that (epsilon, delta) allows for its number of units.

    Among all rules that look at each key's number of units alone, this one reports the most keys. The input is the
    number of *units* (not rows) per key; ``sensitivity`` is the number of keys of one unit, and the loss is that many
    times (epsilon, delta). A key of a single unit is reported with probability delta at most. ``error`` is the number
    of units from which a key is reported with at least the stated confidence.

    >>> PartitionSelection(epsilon=1, delta="1e-6").error(confidence="0.5")
    14.0
    """

    examples = ({"epsilon": 1, "delta": 1e-6}, {"epsilon": "1/10", "delta": 1e-9})
    reference = "Desfontaines, Voss, Gipson, Mandayam (2022), doi:10.2478/popets-2022-0032"
    proof = "Desfontaines et al. 2022, Theorem 1 (recurrence, rounded down on a grid of 2**-62)"
    specimen = np.array([0, 1, 40])

    epsilon: Positive
    """Epsilon for one key."""
    delta: Annotated[Positive, Field(le=1)]
    """Delta for one key: the probability that a key of a single unit is reported."""

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        return approximate(self.epsilon, self.delta).times(sensitivity_of(sensitivity).__ceil__())

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        if bounds.change > 1:
            raise BadParameter("partition selection counts each unit once per key.")
        if not _is_private(self.epsilon, self.delta):
            raise BadParameter("the selection probabilities exceed the stated epsilon and delta.")
        return approximate(self.epsilon, self.delta).times(bounds.groups)

    def key_threshold(self, confidence: Number) -> float:
        return self.error(confidence=confidence)

    def chances(self) -> npt.NDArray[np.int64]:
        """Probability of being reported for 0, 1, 2, ... units, in multiples of 2**-62; the last is 1."""
        return _chances(self.epsilon, self.delta)

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        least = (1 - tail(confidence, outputs)) * _ONE
        return float(next(units for units, chance in enumerate(self.chances().tolist()) if chance >= least))

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> npt.NDArray[np.bool_]:
        """True for each key that may be reported."""
        units = as_integers(self._open(value, receipt, sensitivity))
        if units.size and units.min() < 0:
            raise BadParameter("a number of units cannot be negative.")
        table = self.chances()
        chance = table[np.minimum(units, len(table) - 1).astype(np.int64)]
        kept: npt.NDArray[np.bool_] = below(_ONE, units.size).reshape(units.shape) < chance
        return kept


@lru_cache(maxsize=64)
def _chances(epsilon: Fraction, delta: Fraction) -> npt.NDArray[np.int64]:
    """pi(n+1) = min(e^eps·pi(n) + delta, 1 - e^-eps·(1 - pi(n) - delta), 1), each step rounded down.

    A rational below e^eps and rounding down preserve both inequalities that define (epsilon, delta).
    """
    low = exp_bracket(epsilon, 30)[0]
    grown = Fraction(int(low * (1 << 70)), 1 << 70)
    step = int(delta * _ONE)
    if step == 0:
        raise BadParameter("delta is below 2**-62, so no key would ever be reported.", fix="Use a larger delta.")
    top, bottom = grown.numerator, grown.denominator
    chances, last = [0], 0
    while last < _ONE:
        rising = last * top // bottom + step
        levelling = _ONE - -(-(_ONE - last - step) * bottom // top) if last + step < _ONE else _ONE
        last = max(last, min(rising, levelling, _ONE))
        chances.append(last)
        if len(chances) > 5_000_000:
            raise BadParameter("epsilon is too small for partition selection.", fix="Use a larger epsilon.")
    return np.array(chances, dtype=np.int64)


@lru_cache(maxsize=64)
def _is_private(epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the decisions for n and n + 1 units satisfy (epsilon, delta) for all n, up to float rounding."""
    whole = _chances(epsilon, delta)
    # Complements are taken in whole numbers: near 1 a float has too few digits to be multiplied by a large growth.
    kept, left_out = whole / _ONE, (_ONE - whole) / _ONE
    growth, allowed = np.exp(min(float(epsilon), 700.0)), float(delta) + 1e-12
    pairs = [(side[1:], side[:-1]) for side in (kept, left_out)] + [(side[:-1], side[1:]) for side in (kept, left_out)]
    return all(bool((here <= growth * there + allowed).all()) for here, there in pairs)
