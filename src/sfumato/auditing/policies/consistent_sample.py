"""Random-sample queries: a sample that is the same whenever the same people are asked about."""

from __future__ import annotations

import hashlib
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.smallest_set import SmallestSetPolicy
from sfumato.query.policy.base import ExactResponder, Responder
from sfumato.query.policy.subsets import Bits, unpack
from sfumato.rng import Rng


class ConsistentSample(SmallestSetPolicy):
    """Each set of people has one random sample, chosen by a secret key and the set itself, so asking again is useless.

    However the query is phrased, the same people give the same answer. Queries that differ in a few people get
    independent samples, though, and their average still tells (``averaging`` with changing company).
    """

    main = "share"
    examples = ({"share": 0.9, "smallest": 5},)
    keeps_randomness = True
    promise = (
        "Each set of people has one secret random sample ({share:g} of the people); the same people "
        "give the same answer however the query is written. Queries about too few people are refused."
    )
    broken_by = ("averaging",)
    reference = "Denning (1980), Secure statistical databases with random sample queries, doi:10.1145/320613.320616"

    share: Annotated[float, Field(gt=0, le=1)]
    """Chance of each person to be in the sample."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self, rng.child("consistent-sample").generator.bytes(32))


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], policy: ConsistentSample, key: bytes) -> None:
        super().__init__(values)
        self._policy, self._share, self._key = policy, policy.share, key

    def ask(self, query: Bits) -> float | None:
        if not self._policy.large_enough(query):
            return None
        digest = hashlib.blake2b(query.tobytes(), key=self._key, digest_size=16).digest()
        drawn = np.random.default_rng(list(digest)).random(self.people, np.float32) < self._share
        return float((unpack(query[None, :], self.people)[0] & drawn) @ self.values / self._share)

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        answers = [self.ask(query) for query in queries]
        return np.array([np.nan if answer is None else answer for answer in answers], np.float64)
