"""Duchi's mechanism: one of two reports, so that the mean is unbiased."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.collecting.number_protocol import STEPS, NumberProtocol
from sfumato.collecting.random_source import ONE, RandomSource, chance_below, exp_share


class Duchi(NumberProtocol):
    """Report 1 with a probability that grows linearly with the number, else 0.

    The best protocol for a mean at small epsilon (below about 1.3); a report is one bit.
    """

    examples = ({"epsilon": 1, "low": 0, "high": 100}, {"epsilon": "1/2", "low": -1, "high": 1})
    reference = "Duchi, Jordan, Wainwright (2018), doi:10.1080/01621459.2017.1389735"

    @property
    def _most(self) -> int:
        return exp_share(self.epsilon, Fraction(1))

    def ratio(self) -> Fraction:
        most = Fraction(self._most, ONE)
        return most / (1 - most)

    def valid(self, reports: Ints) -> npt.NDArray[np.bool_]:
        return np.asarray((reports == 0) | (reports == 1))

    def client_parameters(self) -> dict[str, int]:
        return {"steps": STEPS, "most": self._most}

    def _randomize(self, positions: Ints, source: RandomSource) -> Ints:
        # Whole numbers throughout: ONE times STEPS is 2**52, far below the limit of 64 bits.
        least, most = ONE - self._most, self._most
        chance = least + (most - least) * positions // STEPS
        return chance_below(chance, source).astype(np.int64)

    def positions(self, reports: Ints) -> Floats:
        least, most = 1 - self._most / ONE, self._most / ONE
        return np.asarray((reports - least) / (most - least) * STEPS)

    def variance_at(self, position: int) -> float:
        gain = 2 * self._most / ONE - 1
        chance = 0.5 + gain * (position / STEPS - 0.5)
        return chance * (1 - chance) / gain**2 * STEPS**2

    def extreme_reports(self) -> Ints:
        return np.array([0, 1])

    def near(self, reports: Ints, position: int) -> npt.NDArray[np.bool_]:
        return np.asarray(reports == (1 if position else 0))

    def near_chance(self) -> float:
        return self._most / ONE
