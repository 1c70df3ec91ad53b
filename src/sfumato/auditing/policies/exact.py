"""Exact answers to everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.auditing.set_policy import SetPolicy
from sfumato.query.policy.base import ExactResponder, Responder, TableResponder
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.auditing.table import PolicyTable


class Exact(SetPolicy):
    """The true answer to every query: no protection, the yardstick for all others."""

    promise = "Every query gets its true answer; nothing is protected."
    broken_by = ("differencing", "leave-one-out", "reconstruction")

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return ExactResponder(np.asarray(values))

    def answer_table(self, table: PolicyTable) -> TableResponder:
        from sfumato.auditing.statistics import StatisticsTableResponder

        return StatisticsTableResponder(self, table)
