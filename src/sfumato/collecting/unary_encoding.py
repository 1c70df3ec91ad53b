"""Base of unary encodings: one bit per value, each randomized by itself."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

import numpy as np

from sfumato.arrays import Ints
from sfumato.collecting.biased_bits import biased_rows, column_sums
from sfumato.collecting.frequency_protocol import Flags, FrequencyProtocol, Reports
from sfumato.collecting.random_source import ONE, RandomSource, chosen


class UnaryEncoding(FrequencyProtocol):
    """A bit vector with one 1, in which every bit is randomized independently."""

    @abstractmethod
    def chances(self) -> tuple[int, int]:
        """Chances, in units of 2**-32, that the true value's bit and another value's bit are sent as 1."""

    @property
    def width(self) -> int:
        return -(-self.values // 8)

    def probabilities(self) -> tuple[Fraction, Fraction]:
        one, zero = self.chances()
        return Fraction(one, ONE), Fraction(zero, ONE)

    def ratio(self) -> Fraction:
        # Two values differ in two bits; the other bits have the same distribution for both.
        p, q = self.probabilities()
        return p * (1 - q) / ((1 - p) * q)

    def client_parameters(self) -> dict[str, int]:
        one, zero = self.chances()
        return {"values": self.values, "one": one, "zero": zero}

    def _randomize(self, codes: Ints, source: RandomSource) -> Reports:
        one, zero = self.chances()
        packed = biased_rows(zero, len(codes), self.values, source)
        rows, byte, bit = np.arange(len(codes)), codes // 8, (codes % 8).astype(np.uint8)
        mask = np.left_shift(np.uint8(1), bit)
        own = np.where(chosen(one, len(codes), source), mask, np.uint8(0))
        packed[rows, byte] = (packed[rows, byte] & ~mask) | own
        return packed

    def supported(self, reports: Reports) -> Flags:
        bits = np.unpackbits(reports, axis=1, count=self.values, bitorder="little")
        return bits.view(np.bool_)

    def _count(self, reports: Reports) -> Ints:
        return column_sums(reports, self.values)
