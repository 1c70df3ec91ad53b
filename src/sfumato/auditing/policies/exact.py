"""Exact answers to everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.query.policy.base import Policy, Responder, SubsetResponder, Values
from sfumato.query.policy.subsets import Bits, subset_sums
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.auditing.table import PolicyTable, TableResponder

__all__ = ["Exact", "ExactResponder"]


class Exact(Policy):
    """The true answer to every query: no protection, the yardstick for all others."""

    promise = "Every query gets its true answer; nothing is protected."
    broken_by = ("differencing", "leave-one-out", "reconstruction")

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return ExactResponder(np.asarray(values))

    def open_table(self, table: PolicyTable) -> TableResponder:
        from sfumato.auditing.statistics import StatisticsTableResponder

        return StatisticsTableResponder(self, table)


class ExactResponder(SubsetResponder):
    """Gives the true sums; other policies build on it."""

    def __init__(self, values: Values) -> None:
        super().__init__(len(values))
        self.values = values

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        return subset_sums(queries, self.values)
