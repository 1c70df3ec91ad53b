"""Count mean sketch (CMS): hashed unary encoding for domains too large for one bit per value."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.collecting.biased_bits import biased_rows, column_sums
from sfumato.collecting.frequency_protocol import Flags, Reports
from sfumato.collecting.random_source import ONE, RandomSource, below, chosen, exp_share
from sfumato.collecting.sketches import SketchProtocol


class CountMeanSketch(SketchProtocol):
    """Draw one of several public hash functions, and send the hashed value as a bit vector with every bit flipped.

    Apple's protocol for words and emoji. Two values that collide under some functions are told apart by the others; the
    collisions add variance, which the intervals contain.
    """

    examples = ({"epsilon": 2, "values": 50, "size": 64, "hashes": 16, "salt": "poll"},)
    reference = "Apple Differential Privacy Team (2017), Learning with Privacy at Scale, algorithms 1-3"

    size: Annotated[int, Field(ge=2, le=1 << 20)]
    """Length of the bit vector."""

    @property
    def width(self) -> int:
        return 4 + -(-self.size // 8)

    @property
    def _keep(self) -> int:
        return exp_share(self.epsilon / 2, Fraction(1))

    def probabilities(self) -> tuple[Fraction, Fraction]:
        keep = Fraction(self._keep, ONE)
        return keep, keep / self.size + (1 - keep) * (1 - Fraction(1, self.size))

    def ratio(self) -> Fraction:
        # Two values differ in two bits at most.
        keep = Fraction(self._keep, ONE)
        return (keep / (1 - keep)) ** 2

    def _randomize(self, codes: Ints, source: RandomSource) -> Reports:
        function = below(self.hashes, len(codes), source)
        bucket = self.buckets(function, codes)
        packed = biased_rows(ONE - self._keep, len(codes), self.size, source)
        rows, byte, mask = np.arange(len(codes)), bucket // 8, np.left_shift(np.uint8(1), (bucket % 8).astype(np.uint8))
        own = np.where(chosen(self._keep, len(codes), source), mask, np.uint8(0))
        packed[rows, byte] = (packed[rows, byte] & ~mask) | own
        return np.hstack([function.astype("<u4").view(np.uint8).reshape(-1, 4), packed])

    def supported(self, reports: Reports) -> Flags:
        bits = np.unpackbits(reports[:, 4:], axis=1, count=self.size, bitorder="little").view(np.bool_)
        return np.take_along_axis(bits, self.all_buckets(reports), axis=1)

    def collision_gain(self) -> float:
        keep = self._keep / ONE
        return 2 * keep - 1

    def _count(self, reports: Reports) -> Ints:
        function = self.functions_of(reports)
        counts = np.zeros(self.values, dtype=np.int64)
        for index in np.unique(function).tolist():
            sums = column_sums(reports[function == index, 4:], self.size)
            counts += sums[self.buckets(np.full(self.values, index), np.arange(self.values))]
        return counts
