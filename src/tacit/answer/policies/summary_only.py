"""Published totals, and nothing else."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.answer.policies.exact import ExactDesk
from tacit.answer.policy import Desk, Policy
from tacit.answer.subsets import Bits, pack
from tacit.rng import Rng

__all__ = ["SummaryOnly"]


class SummaryOnly(Policy):
    """Only the total over everybody is told; every question about fewer people is refused.

    One number about all tells next to nothing of one person, unless the asker knows all the others.
    """

    def open(self, values: npt.ArrayLike, rng: Rng) -> Desk:
        return _Desk(np.asarray(values))


class _Desk(ExactDesk):
    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        everybody = pack(np.ones((1, self.people), np.bool_))[0]
        return np.where((queries == everybody).all(axis=1), float(np.sum(self.values)), np.nan)
