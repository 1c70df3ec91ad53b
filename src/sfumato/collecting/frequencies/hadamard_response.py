"""Hadamard response: report one randomized entry of the value's row of a Hadamard matrix."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.arrays import Ints
from sfumato.collecting.frequency_protocol import Flags, FrequencyProtocol, Reports
from sfumato.collecting.hashing import hadamard_sign, walsh_hadamard
from sfumato.collecting.random_source import ONE, RandomSource, below, chosen, exp_share


class HadamardResponse(FrequencyProtocol):
    """Draw a column of a Hadamard matrix at random and send its entry in the value's row, flipped at random.

    It is flipped with probability 1 / (e**epsilon + 1). Reports have four bytes and the collector is fast: one
    transform for all reports. The variance is
    ((e**epsilon + 1) / (e**epsilon - 1))**2 per person: near the best for epsilon of at most 1.
    """

    examples = ({"epsilon": 1, "values": 8}, {"epsilon": "1/2", "values": 300})
    reference = "Acharya, Sun, Zhang (2019), https://proceedings.mlr.press/v89/acharya19a.html; Bassily, Smith (2015)"

    @property
    def width(self) -> int:
        return 4

    @property
    def size(self) -> int:
        """Order of the Hadamard matrix: the least power of two above the number of values."""
        return 1 << self.values.bit_length()

    @property
    def _keep(self) -> int:
        return exp_share(self.epsilon, Fraction(1))

    def probabilities(self) -> tuple[Fraction, Fraction]:
        return Fraction(self._keep, ONE), Fraction(1, 2)

    def ratio(self) -> Fraction:
        keep = Fraction(self._keep, ONE)
        return keep / (1 - keep)

    def client_parameters(self) -> dict[str, int]:
        return {"values": self.values, "size": self.size, "keep": self._keep}

    def _randomize(self, codes: Ints, source: RandomSource) -> Reports:
        columns = below(self.size, len(codes), source)
        flipped = ~chosen(self._keep, len(codes), source)
        sign = hadamard_sign(codes + 1, columns) ^ flipped
        return ((columns << 1) | sign).astype("<u4").view(np.uint8).reshape(-1, 4)

    @staticmethod
    def _fields(reports: Reports) -> tuple[Ints, Ints]:
        word = np.ascontiguousarray(reports).view("<u4").ravel().astype(np.int64)
        return word >> 1, word & 1

    def supported(self, reports: Reports) -> Flags:
        columns, sign = self._fields(reports)
        flags: Flags = hadamard_sign(np.arange(1, self.values + 1)[None, :], columns[:, None]) == sign[:, None]
        return flags

    def _count(self, reports: Reports) -> Ints:
        columns, sign = self._fields(reports)
        known = columns < self.size
        balance = np.bincount(columns[known], weights=1.0 - 2.0 * sign[known], minlength=self.size).astype(np.float64)
        walsh_hadamard(balance)
        agreeing: Ints = ((len(reports) + balance[1 : self.values + 1]) / 2).astype(np.int64)
        return agreeing
