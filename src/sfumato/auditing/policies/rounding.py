"""Answers rounded to a base."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.smallest_set import SmallestSetPolicy
from sfumato.query.policy.base import ExactResponder, Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng


class Rounding(SmallestSetPolicy):
    """The true answer rounded to the nearest multiple of ``base`` people.

    A person counts in a sum of a column with the largest number declared for it: sums are rounded to multiples of
    ``base`` times that number. People are selected by columns that are not sensitive. The same query always gets the
    same answer, but padding a query with different people moves it over the rounding edges, and the average over many
    paddings tells the difference of one person (``averaging``).
    """

    main = "base"
    in_people = True
    examples = ({"base": 5, "smallest": 5},)
    promise = (
        "Answers are rounded to the nearest multiple of what {base:g} people contribute at most. Queries about too few "
        "people and conditions on sensitive columns are refused."
    )
    broken_by = ("averaging",)

    base: Annotated[float, Field(gt=0)]
    """Counts are multiples of this; sums, in units of what one person can contribute to them."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self)


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], policy: Rounding) -> None:
        super().__init__(values)
        self._policy = policy

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        base = self._policy.base
        rounded = np.floor(super().ask_all(queries) / base + 0.5) * base
        return np.where(self._policy.large_enough(queries), rounded, np.nan)
