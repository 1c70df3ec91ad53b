"""Subset selection: report a random set of values that more likely holds the true one."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np

from sfumato.arrays import Ints
from sfumato.collecting.biased_bits import column_sums
from sfumato.collecting.frequency_protocol import Flags, FrequencyProtocol, Reports
from sfumato.collecting.random_source import ONE, RandomSource, chosen, exp_share


class SubsetSelection(FrequencyProtocol):
    """Report a set of k = d / (e**epsilon + 1) values; the true one is in it with probability about 1/2.

    Optimal among all protocols for large domains up to lower-order terms. A report has one bit per value.
    """

    examples = ({"epsilon": 1, "values": 8}, {"epsilon": 3, "values": 60})
    reference = "Ye, Barg (2018), doi:10.1109/TIT.2018.2809790; Wang et al. (2016), arXiv:1607.08025"

    @property
    def width(self) -> int:
        return -(-self.values // 8)

    @property
    def size(self) -> int:
        """Number of values in a report."""
        return max(1, min(self.values - 1, round(self.values / (exp(float(self.epsilon)) + 1))))

    @property
    def _inside(self) -> int:
        return exp_share(self.epsilon, Fraction(self.values - self.size, self.size))

    def probabilities(self) -> tuple[Fraction, Fraction]:
        inside, k, d = Fraction(self._inside, ONE), self.size, self.values
        return inside, (inside * (k - 1) + (1 - inside) * k) / (d - 1)

    def ratio(self) -> Fraction:
        # A set with the true value has chance inside / C(d-1, k-1), one without it (1 - inside) / C(d-1, k).
        inside = Fraction(self._inside, ONE)
        ratio = inside / (1 - inside) * Fraction(self.values - self.size, self.size)
        return max(ratio, 1 / ratio)

    def client_parameters(self) -> dict[str, int]:
        return {"values": self.values, "size": self.size, "inside": self._inside}

    def _randomize(self, codes: Ints, source: RandomSource) -> Reports:
        rows = len(codes)
        inside = chosen(self._inside, rows, source)
        # A uniform random order of the other values; the true one comes first or last. Ties are between other values.
        order = np.frombuffer(source.take(8 * rows * self.values), dtype="<u8").reshape(rows, self.values)
        order = (order >> np.uint64(1)) + np.uint64(1)
        order[np.arange(rows), codes] = np.where(inside, np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF))
        picked = np.argpartition(order, self.size - 1, axis=1)[:, : self.size]
        flags = np.zeros((rows, self.values), dtype=np.uint8)
        np.put_along_axis(flags, picked, 1, axis=1)
        return np.packbits(flags, axis=1, bitorder="little")

    def supported(self, reports: Reports) -> Flags:
        bits = np.unpackbits(reports, axis=1, count=self.values, bitorder="little")
        return bits.view(np.bool_)

    def _count(self, reports: Reports) -> Ints:
        return column_sums(reports, self.values)
