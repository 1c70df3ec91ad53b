"""Published totals, and nothing else."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.query.policies.exact import ExactResponder
from sfumato.query.policy.base import Flags, Policy, Responder
from sfumato.query.policy.subsets import Bits, pack
from sfumato.rng import Rng

__all__ = ["SummaryOnly"]


class SummaryOnly(Policy):
    """Only the total over everybody is told; every query about fewer people is refused.

    One number about all tells next to nothing of one person, unless the analyst knows all the others.
    """

    promise = "Only totals over everybody are answered; queries about fewer people are refused."

    def query_set(self, selected: Flags, present: Flags) -> Flags:
        return selected

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values))


class _Responder(ExactResponder):
    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        everybody = pack(np.ones((1, self.people), np.bool_))[0]
        return np.where((queries == everybody).all(axis=1), float(np.sum(self.values)), np.nan)
