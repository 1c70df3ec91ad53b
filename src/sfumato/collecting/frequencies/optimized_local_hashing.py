"""Optimized local hashing (OLH): randomized response on a hashed value."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np

from sfumato.arrays import Ints
from sfumato.collecting.frequency_protocol import Flags, FrequencyProtocol, Reports
from sfumato.collecting.hashing import Words, buckets_of, count_matches
from sfumato.collecting.random_source import ONE, RandomSource, below, chosen, exp_share


class OptimizedLocalHashing(FrequencyProtocol):
    """Hash the value into about e**epsilon + 1 buckets by a function of one's own, and report a randomized bucket.

    As precise as optimized unary encoding with reports of 20 bytes. The collector pays for it: every report is hashed
    for every value.
    """

    examples = ({"epsilon": 1, "values": 8}, {"epsilon": 2, "values": 300})
    reference = "Wang, Blocki, Li, Jha (2017), USENIX Security, section 4.3"

    @property
    def width(self) -> int:
        return 20

    @property
    def buckets(self) -> int:
        return round(exp(min(float(self.epsilon), 20.0))) + 1

    @property
    def _keep(self) -> int:
        return exp_share(self.epsilon, Fraction(self.buckets - 1))

    def probabilities(self) -> tuple[Fraction, Fraction]:
        return Fraction(self._keep, ONE), Fraction(1, self.buckets)

    def ratio(self) -> Fraction:
        keep = Fraction(self._keep, ONE)
        other = (1 - keep) / (self.buckets - 1)
        return max(keep / other, other / keep)

    def client_parameters(self) -> dict[str, int]:
        return {"values": self.values, "buckets": self.buckets, "keep": self._keep}

    def _randomize(self, codes: Ints, source: RandomSource) -> Reports:
        return self.randomize_keys(codes.astype(np.uint64), source)

    def randomize_keys(self, keys: Words, source: RandomSource) -> Reports:
        """Reports of any 32-bit keys; ``values`` plays no part."""
        functions = np.frombuffer(source.take(16 * len(keys)), dtype="<u8").astype(np.uint64).reshape(-1, 2)
        own = buckets_of(functions[:, 0].copy(), functions[:, 1].copy(), keys, self.buckets)
        kept = chosen(self._keep, len(keys), source)
        others = below(self.buckets - 1, len(keys), source)
        bucket = np.where(kept, own, others + (others >= own)).astype("<u4")
        return np.hstack([functions.astype("<u8").view(np.uint8), bucket.view(np.uint8).reshape(-1, 4)])

    @staticmethod
    def _fields(reports: Reports) -> tuple[Words, Words, Ints]:
        functions = np.ascontiguousarray(reports[:, :16]).view("<u8").astype(np.uint64)
        bucket = np.ascontiguousarray(reports[:, 16:]).view("<u4").ravel().astype(np.int64)
        return functions[:, 0].copy(), functions[:, 1].copy(), bucket

    def supported(self, reports: Reports) -> Flags:
        multipliers, offsets, bucket = self._fields(reports)
        flags = np.empty((len(reports), self.values), dtype=np.bool_)
        for value in range(self.values):
            keys = np.full(len(reports), value, dtype=np.uint64)
            flags[:, value] = buckets_of(multipliers, offsets, keys, self.buckets) == bucket
        return flags

    def _count(self, reports: Reports) -> Ints:
        return self.count_keys(reports, np.arange(self.values, dtype=np.uint64))

    def count_keys(self, reports: Reports, keys: Words) -> Ints:
        """How many reports support each of the keys."""
        counts: Ints = count_matches(*self._fields(reports), keys, self.buckets)
        return counts
