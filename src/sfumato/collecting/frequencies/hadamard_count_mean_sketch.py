"""Hadamard count mean sketch (HCMS): a count mean sketch of which each person sends a single bit."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from sfumato.arrays import Ints
from sfumato.collecting.frequency_protocol import Flags, Reports
from sfumato.collecting.hashing import hadamard_sign, walsh_hadamard
from sfumato.collecting.random_source import ONE, RandomSource, below, chosen, exp_share
from sfumato.collecting.sketches import SketchProtocol


class HadamardCountMeanSketch(SketchProtocol):
    """Hash the value by one of several public functions and send one randomized Hadamard coefficient of the bucket.

    Apple's protocol for web domains: one bit per report beside the public choices of function and column.
    """

    examples = ({"epsilon": 2, "values": 50, "size": 64, "hashes": 16, "salt": "poll"},)
    reference = "Apple Differential Privacy Team (2017), Learning with Privacy at Scale, algorithms 4-6"

    size: Annotated[int, Field(ge=2, le=1 << 20)]
    """Length of the hashed vector, a power of two."""

    @field_validator("size")
    @classmethod
    def _power_of_two(cls, size: int) -> int:
        if size & (size - 1):
            raise ValueError("must be a power of two")
        return size

    @property
    def width(self) -> int:
        return 8

    @property
    def _keep(self) -> int:
        return exp_share(self.epsilon, Fraction(1))

    def probabilities(self) -> tuple[Fraction, Fraction]:
        keep = Fraction(self._keep, ONE)
        return keep, keep / self.size + Fraction(1, 2) * (1 - Fraction(1, self.size))

    def ratio(self) -> Fraction:
        keep = Fraction(self._keep, ONE)
        return keep / (1 - keep)

    def _randomize(self, codes: Ints, source: RandomSource) -> Reports:
        function = below(self.hashes, len(codes), source)
        column = below(self.size, len(codes), source)
        flipped = ~chosen(self._keep, len(codes), source)
        sign = hadamard_sign(self.buckets(function, codes), column) ^ flipped
        return np.hstack(
            [
                function.astype("<u4").view(np.uint8).reshape(-1, 4),
                ((column << 1) | sign).astype("<u4").view(np.uint8).reshape(-1, 4),
            ]
        )

    @staticmethod
    def _entry(reports: Reports) -> tuple[Ints, Ints]:
        word = np.ascontiguousarray(reports[:, 4:]).view("<u4").ravel().astype(np.int64)
        return word >> 1, word & 1

    def supported(self, reports: Reports) -> Flags:
        column, sign = self._entry(reports)
        flags: Flags = hadamard_sign(self.all_buckets(reports), column[:, None]) == sign[:, None]
        return flags

    def collision_gain(self) -> float:
        return self._keep / ONE - 0.5

    def _count(self, reports: Reports) -> Ints:
        function, (column, sign) = self.functions_of(reports), self._entry(reports)
        known = column < self.size
        cell = function[known] * self.size + column[known]
        balance = np.bincount(cell, weights=1.0 - 2.0 * sign[known], minlength=self.hashes * self.size)
        counts = np.zeros(self.values, dtype=np.int64)
        for index, row in enumerate(balance.reshape(self.hashes, self.size)):
            transformed = row.astype(np.float64)
            walsh_hadamard(transformed)
            reported = int((function == index).sum())
            bucket = self.buckets(np.full(self.values, index), np.arange(self.values))
            counts += ((reported + transformed[bucket]) / 2).astype(np.int64)
        return counts
