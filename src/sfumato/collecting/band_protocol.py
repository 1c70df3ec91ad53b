"""Base of protocols that report a uniform point of a band around the number, or of the rest of the range."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.collecting.number_protocol import STEPS, NumberProtocol
from sfumato.collecting.random_source import ONE, RandomSource, below, chosen, exp_share


class BandProtocol(NumberProtocol):
    """Reports 0 .. STEPS + band; the band of position s is s .. s + band - 1 and e**epsilon times as likely."""

    @property
    @abstractmethod
    def band(self) -> int:
        """Number of reports in the band."""

    @property
    def _inside(self) -> int:
        return exp_share(self.epsilon, Fraction(STEPS + 1, self.band))

    def ratio(self) -> Fraction:
        inside = Fraction(self._inside, ONE)
        return inside / self.band / ((1 - inside) / (STEPS + 1))

    def valid(self, reports: Ints) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= 0) & (reports <= STEPS + self.band))

    def client_parameters(self) -> dict[str, int]:
        return {"steps": STEPS, "band": self.band, "inside": self._inside}

    def _randomize(self, positions: Ints, source: RandomSource) -> Ints:
        inside = chosen(self._inside, len(positions), source)
        within = positions + below(self.band, len(positions), source)
        outside = below(STEPS + 1, len(positions), source)
        return np.where(inside, within, outside + self.band * (outside >= positions))

    def positions(self, reports: Ints) -> Floats:
        # The expected report is affine in the position s: inside s + (band - 1) / 2, outside the mean of the rest.
        inside, w, n = self._inside / ONE, self.band, STEPS + 1
        total = (n + w) * (n + w - 1) / 2
        slope = inside - (1 - inside) * w / n
        constant = inside * (w - 1) / 2 + (1 - inside) * (total - w * (w - 1) / 2) / n
        return np.asarray((reports - constant) / slope)

    def variance_at(self, position: int) -> float:
        inside, w, n = self._inside / ONE, self.band, STEPS + 1
        slope = inside - (1 - inside) * w / n
        # Moments of reports measured from the middle of their range, where they lose no digits.
        m = n + w
        centre = position + (w - 1) / 2 - (m - 1) / 2
        square_all, square_band = m * (m**2 - 1) / 12, w * centre**2 + w * (w**2 - 1) / 12
        mean = inside * centre - (1 - inside) * w * centre / n
        second = inside * square_band / w + (1 - inside) * (square_all - square_band) / n
        return (second - mean**2) / slope**2

    def extreme_reports(self) -> Ints:
        return np.array([0, STEPS + self.band])

    def near(self, reports: Ints, position: int) -> npt.NDArray[np.bool_]:
        return np.asarray((reports >= position) & (reports < position + self.band))

    def near_chance(self) -> float:
        return self._inside / ONE
