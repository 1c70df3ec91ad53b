"""Which keys may be named at all, when the keys themselves are private."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.dp.loss import PrivacyLoss, approximate
from sfumato.dp.mechanism import Mechanism, Positive, as_integers, sensitivity_of, tail
from sfumato.dp.os_random import below
from sfumato.dp.rational_bounds import exp_bracket
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.rationals import Number
from sfumato.secret import SecretValue

__all__ = ["PartitionSelection"]

_ONE = 1 << 62


class PartitionSelection(Mechanism):
    """Name a key with a chance that grows, as fast as (epsilon, delta) allows, with the number of units that have it.

    No selection rule of the same epsilon and delta that looks at each key's number of units alone keeps more keys. The
    input is the number of *units* (not rows) per key; ``sensitivity`` is how many keys one unit may have, and the cost
    is that many times (epsilon, delta). A key that a single unit has is named with chance delta at most. ``error`` is
    the number of units from which on a key is named with at least the stated confidence.

    >>> PartitionSelection(epsilon=1, delta="1e-6").error(confidence="0.5")
    14.0
    """

    examples = ({"epsilon": 1, "delta": 1e-6}, {"epsilon": "1/10", "delta": 1e-9})
    reference = "Desfontaines, Voss, Gipson, Mandayam (2022), doi:10.2478/popets-2022-0032"
    proof = "Desfontaines et al. 2022, Theorem 1 (recurrence, rounded down on a grid of 2**-62)"
    specimen: ClassVar[Any] = np.array([0, 1, 40])

    epsilon: Positive
    """Epsilon for one key."""
    delta: Annotated[Positive, Field(le=1)]
    """Delta for one key: the chance to name a key that one unit alone has."""

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        keys = sensitivity_of(sensitivity)
        return approximate(keys * self.epsilon, min(keys * self.delta, Fraction(1)))

    def chances(self) -> npt.NDArray[np.int64]:
        """Chance of being named for 0, 1, 2, ... units, in steps of 2**-62; the last is 1."""
        return _chances(self.epsilon, self.delta)

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        wanted = (1 - tail(confidence, outputs)) * _ONE
        return float(next(units for units, chance in enumerate(self.chances().tolist()) if chance >= wanted))

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> npt.NDArray[np.bool_]:
        """True for each key that may be named."""
        units = as_integers(self._open(value, receipt, self.loss(sensitivity)))
        if units.size and units.min() < 0:
            raise BadParameter("a number of units is not negative.")
        table = self.chances()
        chance = table[np.minimum(units, len(table) - 1).astype(np.int64)]
        kept: npt.NDArray[np.bool_] = below(_ONE, units.size).reshape(units.shape) < chance
        return kept


@lru_cache(maxsize=64)
def _chances(epsilon: Fraction, delta: Fraction) -> npt.NDArray[np.int64]:
    """pi(n+1) = min(e^eps·pi(n) + delta, 1 - e^-eps·(1 - pi(n) - delta), 1), each step rounded down.

    With a rational below e^eps in its place and rounding down, both inequalities that define (epsilon, delta) hold for
    the numbers actually used.
    """
    low = exp_bracket(epsilon, 30)[0]
    grown = Fraction(int(low * (1 << 70)), 1 << 70)
    step = int(delta * _ONE)
    if step == 0:
        raise BadParameter("delta is below 2**-62, so no key would ever be named.", fix="Use a larger delta.")
    top, bottom = grown.numerator, grown.denominator
    found, last = [0], 0
    while last < _ONE:
        rising = last * top // bottom + step
        levelling = _ONE - -(-(_ONE - last - step) * bottom // top) if last + step < _ONE else _ONE
        last = max(last, min(rising, levelling, _ONE))
        found.append(last)
        if len(found) > 5_000_000:
            raise BadParameter("epsilon is too small for partition selection.", fix="Use a larger epsilon.")
    return np.array(found, dtype=np.int64)
