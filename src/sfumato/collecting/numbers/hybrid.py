"""Hybrid mechanism: each person uses the piecewise or Duchi's mechanism at random."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.collecting.number_protocol import NumberProtocol
from sfumato.collecting.numbers.duchi import Duchi
from sfumato.collecting.numbers.piecewise import Piecewise
from sfumato.collecting.random_source import ONE, RandomSource, chosen

_DUCHI = (-2, -1)
"""Reports of Duchi's mechanism: 0 and 1 less two; all others are piecewise."""
_SWITCH = 0.61


class Hybrid(NumberProtocol):
    """Use the piecewise mechanism with probability 1 - e**(-epsilon/2), Duchi's otherwise (always below 0.61).

    Its worst-case variance is at most that of either. Which one was used is part of the report.
    """

    examples = ({"epsilon": 1, "low": 0, "high": 100}, {"epsilon": 3, "low": -1, "high": 1})
    reference = "Wang et al. (2019), doi:10.1109/ICDE.2019.00063, section 3.3"

    @property
    def _parts(self) -> tuple[Piecewise, Duchi]:
        shared = {"epsilon": self.epsilon, "low": self.low, "high": self.high}
        return Piecewise(**shared), Duchi(**shared)

    @property
    def _piecewise(self) -> int:
        epsilon = float(self.epsilon)
        return round((1 - exp(-epsilon / 2)) * ONE) if epsilon > _SWITCH else 0

    def ratio(self) -> Fraction:
        return max(part.ratio() for part in self._parts)

    def valid(self, reports: Ints) -> npt.NDArray[np.bool_]:
        return np.asarray(self._parts[0].valid(reports) | np.isin(reports, _DUCHI))

    def client_parameters(self) -> dict[str, int]:
        piecewise, duchi = self._parts
        return {**piecewise.client_parameters(), **duchi.client_parameters(), "piecewise": self._piecewise}

    def _randomize(self, positions: Ints, source: RandomSource) -> Ints:
        piecewise, duchi = self._parts
        use = chosen(self._piecewise, len(positions), source)
        return np.where(use, piecewise._randomize(positions, source), duchi._randomize(positions, source) - 2)

    def positions(self, reports: Ints) -> Floats:
        piecewise, duchi = self._parts
        return np.where(reports >= 0, piecewise.positions(reports), duchi.positions(reports + 2))

    def variance_at(self, position: int) -> float:
        share = self._piecewise / ONE
        piecewise, duchi = self._parts
        return share * piecewise.variance_at(position) + (1 - share) * duchi.variance_at(position)

    def extreme_reports(self) -> Ints:
        piecewise, duchi = self._parts
        candidates = np.concatenate([piecewise.extreme_reports(), duchi.extreme_reports() - 2])
        ordered = candidates[np.argsort(self.positions(candidates))]
        return ordered[[0, -1]]

    def near(self, reports: Ints, position: int) -> npt.NDArray[np.bool_]:
        piecewise, duchi = self._parts
        return np.where(reports >= 0, piecewise.near(reports, position), duchi.near(reports + 2, position))

    def near_chance(self) -> float:
        piecewise, duchi = self._parts
        share = self._piecewise / ONE
        return share * piecewise.near_chance() + (1 - share) * duchi.near_chance()
