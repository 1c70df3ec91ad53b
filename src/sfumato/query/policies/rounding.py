"""Answers rounded to a base."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.query.policies.exact import ExactResponder
from sfumato.query.policy.base import Policy, Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng

__all__ = ["Rounding"]


class Rounding(Policy):
    """The true answer rounded to the nearest multiple of ``base``.

    The same query always gets the same answer, but padding a query with different people moves it over the
    rounding edges, and the average over many paddings tells the difference of one person (``averaging``).
    """

    main = "base"
    examples = ({"base": 5},)
    promise = "Answers are rounded to the nearest multiple of {base:g}."
    broken_by = ("averaging",)

    base: Annotated[float, Field(gt=0)]
    """Answers are multiples of this."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self.base)


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], base: float) -> None:
        super().__init__(values)
        self._base = base

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        return np.floor(super().ask_all(queries) / self._base + 0.5) * self._base
