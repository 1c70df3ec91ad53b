"""Noise with memory: the same noise whenever the same people are asked about."""

from __future__ import annotations

import hashlib
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.query.policies.exact import ExactResponder
from sfumato.query.policy.base import Policy, Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng

__all__ = ["ConsistentNoise"]


class ConsistentNoise(Policy):
    """The true answer plus uniform noise of at most ``bound``, the same whenever the same set of people is asked about.

    The noise follows from a secret key, the set and the column, so that asking again, or asking in other words, is
    useless. Different sets have independent noise: changing the company averages it out (``averaging``), and noise
    below the order of the square root of the number of people is undone by enough sets (``reconstruction``).
    """

    main = "bound"
    examples = ({"bound": 2},)
    keeps_randomness = True
    promise = "Answers are wrong by at most {bound:g}; the same people give the same answer however a query is written."
    broken_by = ("averaging", "reconstruction")
    reference = "Denning (1980), doi:10.1145/320613.320616; Dinur, Nissim (2003), doi:10.1145/773153.773173"

    bound: Annotated[float, Field(ge=0)]
    """The largest error of an answer."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self.bound, rng.child("consistent-noise").generator.bytes(32))


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], bound: float, key: bytes) -> None:
        super().__init__(values)
        # Two columns with the same noise would tell the exact sum of their difference.
        self._bound, self._key = bound, hashlib.blake2b(np.ascontiguousarray(values).tobytes(), key=key).digest()

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        digests = [hashlib.blake2b(query.tobytes(), key=self._key, digest_size=8).digest() for query in queries]
        shares = np.array([int.from_bytes(digest) for digest in digests], np.float64) / 2**64
        return super().ask_all(queries) + self._bound * (2 * shares - 1)
