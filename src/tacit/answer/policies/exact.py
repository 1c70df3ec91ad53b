"""Exact answers to everything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.answer.policy import Desk, OpenDesk, Policy, Values
from tacit.answer.subsets import Bits, subset_sums
from tacit.rng import Rng

__all__ = ["Exact", "ExactDesk"]


class Exact(Policy):
    """The true answer to every question: no protection, the yardstick for all others."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Desk:
        return ExactDesk(np.asarray(values))


class ExactDesk(OpenDesk):
    """Gives the true sums; other policies build on it."""

    def __init__(self, values: Values) -> None:
        super().__init__(len(values))
        self.values = values

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        return subset_sums(queries, self.values)
