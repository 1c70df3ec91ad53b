"""Base of sketches: public hash functions that all people share, for domains with very many values."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.collecting.frequency_protocol import FrequencyProtocol, Reports
from sfumato.collecting.hashing import Words, buckets_of, salted_functions
from sfumato.errors import BadParameter


class SketchProtocol(FrequencyProtocol):
    """Each person draws one of ``hashes`` public functions and reports about the hashed value."""

    shared_hashes: ClassVar[bool] = True

    hashes: Annotated[int, Field(ge=1, le=1 << 16)]
    """Number of public hash functions."""
    salt: str
    """Public text that the hash functions are derived from; the same on all devices."""

    size: int

    @abstractmethod
    def collision_gain(self) -> float:
        """By how much a collision raises the probability that a report supports the colliding value."""

    @cached_property
    def _functions(self) -> tuple[Words, Words]:
        return salted_functions(self.salt, self.hashes)

    def buckets(self, function: Ints, codes: Ints) -> Ints:
        """Bucket of each code under the function of that number."""
        multipliers, offsets = self._functions
        found: Ints = buckets_of(multipliers[function], offsets[function], codes.astype(np.uint64), self.size)
        return found

    def functions_of(self, reports: Reports) -> Ints:
        """Number of the hash function of each report."""
        function = np.ascontiguousarray(reports[:, :4]).view("<u4").ravel().astype(np.int64)
        if len(function) and function.max() >= self.hashes:
            raise BadParameter("A report names a hash function that this protocol does not have.")
        return function

    def all_buckets(self, reports: Reports) -> Ints:
        """Bucket of every value under the function of each report."""
        function = self.functions_of(reports)
        tables = np.stack([self.buckets(np.full(self.values, i), np.arange(self.values)) for i in range(self.hashes)])
        return np.asarray(tables[function])

    def collision_variance(self, counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | float:
        # Under one function another value collides with chance 1 / size, for all its people who use that function.
        squares = np.maximum(np.sum(np.maximum(counts, 0.0) ** 2) - np.maximum(counts, 0.0) ** 2, 0.0)
        spread = (1 / self.size) * (1 - 1 / self.size) / self.hashes
        return np.asarray(squares * spread * self.collision_gain() ** 2)
