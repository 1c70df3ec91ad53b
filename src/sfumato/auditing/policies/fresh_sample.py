"""Answers from a new random sample each time."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.smallest_set import SmallestSetPolicy
from sfumato.query.policy.base import ExactResponder, Responder
from sfumato.query.policy.subsets import Bits, unpack
from sfumato.rng import Rng


class FreshSample(SmallestSetPolicy):
    """Each query is answered from its own random sample of the people asked about, scaled up.

    Nobody can be sure that a person was in the sample, but asking again draws again, and the average of many answers is
    the true one (``averaging``).
    """

    main = "share"
    fresh_noise = True
    examples = ({"share": 0.9, "smallest": 5},)
    promise = (
        "Each query is answered from a new random sample of the people it is about ({share:g} of them), scaled up. "
        "Queries about too few people are refused."
    )
    broken_by = ("averaging",)

    share: Annotated[float, Field(gt=0, le=1)]
    """Chance of each person to be in the sample."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self, rng.child("fresh-sample").generator)


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], policy: FreshSample, generator: np.random.Generator) -> None:
        super().__init__(values)
        self._policy, self._share, self._generator = policy, policy.share, generator

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        out = np.empty(len(queries))
        for first in range(0, len(queries), 256):
            masks = unpack(queries[first : first + 256], self.people)
            masks &= self._generator.random(masks.shape, np.float32) < self._share
            out[first : first + 256] = masks @ self.values / self._share
        return np.where(self._policy.large_enough(queries), out, np.nan)
