"""Noise with memory: the same noise whenever the same people are asked about."""

from __future__ import annotations

import hashlib
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.smallest_set import SmallestSetPolicy
from sfumato.query.policy.base import ExactResponder, Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng


class ConsistentNoise(SmallestSetPolicy):
    """The true answer plus uniform noise of at most ``bound`` people, the same whenever the same set is asked about.

    A person counts in a sum of a column with the largest number declared for it, so that the noise of a sum is at most
    ``bound`` times that number. The noise follows from a secret key, the set and the column, so that asking again, or
    asking in other words, is useless. It depends on no sensitive value: people are selected by columns that are not
    sensitive, or two equal answers would tell that two conditions select the same people. Different sets have
    independent noise: changing the company averages it out (``averaging``), and noise below the order of the square
    root of the number of people is undone by enough sets (``reconstruction``).
    """

    main = "bound"
    examples = ({"bound": 2, "smallest": 5},)
    keeps_randomness = True
    in_people = True
    promise = (
        "Answers are wrong by what at most {bound:g} people contribute; the same people give the same answer however a "
        "query is written. Queries about too few people and conditions on sensitive columns are refused."
    )
    broken_by = ("averaging", "reconstruction")
    reference = "Denning (1980), doi:10.1145/320613.320616; Dinur, Nissim (2003), doi:10.1145/773153.773173"

    bound: Annotated[float, Field(ge=0)]
    """The largest error of a count; of a sum, in units of what one person can contribute to it."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self, rng.child("consistent-noise").generator.bytes(32))


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], policy: ConsistentNoise, key: bytes) -> None:
        super().__init__(values)
        self._policy, self._key = policy, key

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        digests = [hashlib.blake2b(query.tobytes(), key=self._key, digest_size=8).digest() for query in queries]
        shares = np.array([int.from_bytes(digest) for digest in digests], np.float64) / 2**64
        noisy = super().ask_all(queries) + self._policy.bound * (2 * shares - 1)
        return np.where(self._policy.large_enough(queries), noisy, np.nan)
