"""Answers that are wrong by at most a bound."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.query.policies.exact import ExactResponder
from sfumato.query.policy.base import Policy, Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng

__all__ = ["BoundedNoise"]


class BoundedNoise(Policy):
    """The true answer plus uniform noise of at most ``bound``, drawn anew for every query.

    Promises nothing: noise below the order of the square root of the number of people is undone by enough queries
    (``reconstruction``), and any such noise by asking the same thing often (``averaging``).
    """

    main = "bound"
    fresh_noise = True
    examples = ({"bound": 2},)
    promise = "Answers are wrong by at most {bound:g}, with new noise for each query."
    broken_by = ("averaging", "reconstruction")
    reference = "Dinur, Nissim (2003), doi:10.1145/773153.773173"

    bound: Annotated[float, Field(ge=0)]
    """The largest error E of an answer."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self.bound, rng.child("bounded-noise").generator)


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], bound: float, generator: np.random.Generator) -> None:
        super().__init__(values)
        self._bound, self._generator = bound, generator

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        return super().ask_all(queries) + self._generator.uniform(-self._bound, self._bound, len(queries))
