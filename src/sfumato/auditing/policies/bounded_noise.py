"""Answers that are wrong by at most a bound."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.smallest_set import SmallestSetPolicy
from sfumato.query.policy.base import ExactResponder, Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng


class BoundedNoise(SmallestSetPolicy):
    """The true answer plus uniform noise of at most ``bound`` people, drawn anew for every query.

    A person counts in a sum of a column with the largest number declared for it, so that the noise of a sum is at most
    ``bound`` times that number. People are selected by columns that are not sensitive. Noise below the order of the
    square root of the number of people is undone by enough queries (``reconstruction``), and any such noise by asking
    the same thing often (``averaging``).
    """

    main = "bound"
    fresh_noise = True
    in_people = True
    examples = ({"bound": 2, "smallest": 5},)
    promise = (
        "Answers are wrong by what at most {bound:g} people contribute, with new noise for each query. Queries about "
        "too few people and conditions on sensitive columns are refused."
    )
    broken_by = ("averaging", "reconstruction")
    reference = "Dinur, Nissim (2003), doi:10.1145/773153.773173"

    bound: Annotated[float, Field(ge=0)]
    """The largest error of a count; of a sum, in units of what one person can contribute to it."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self, rng.child("bounded-noise").generator)


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], policy: BoundedNoise, generator: np.random.Generator) -> None:
        super().__init__(values)
        self._policy, self._generator = policy, generator

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        bound = self._policy.bound
        noisy = super().ask_all(queries) + self._generator.uniform(-bound, bound, len(queries))
        return np.where(self._policy.large_enough(queries), noisy, np.nan)
