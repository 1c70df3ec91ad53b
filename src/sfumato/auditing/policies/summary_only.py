"""Published summaries, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.auditing.set_policy import Flags, SetPolicy
from sfumato.query.policy.base import ExactResponder, Responder, TableResponder
from sfumato.query.policy.subsets import Bits, pack
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.auditing.table import PolicyTable


class SummaryOnly(SetPolicy):
    """Only declared summaries over everybody are told; every query about other sets of people is refused.

    These are totals and means over everybody and over each group of the ``groupings``, regressions of a sensitive
    column on a public one of the ``predictors``, and variances. All of them are published at any time, in any order,
    so what one person's value contributes to all of them together is bounded: by ``leverage``. They tell next to
    nothing of one person, unless the analyst knows nearly all the others.
    """

    examples = ({}, {"groupings": ["zip"], "predictors": ["age"], "variance": True})
    promise = "Only summaries over everybody and over declared groups are answered; other queries are refused."
    reference = "Hoaglin, Welsch (1978), The hat matrix in regression and ANOVA, doi:10.1080/00031305.1978.10479237"

    groupings: tuple[str, ...] = ()
    """Columns, not sensitive, by whose values totals are answered: ``WHERE column = value``, one column at a time."""
    predictors: tuple[str, ...] = ()
    """Columns of numbers, not sensitive, on which REGR_SLOPE and REGR_INTERCEPT of a sensitive column are answered."""
    variance: bool = False
    """Whether variances, standard deviations and, with predictors, CORR over everybody are answered."""
    leverage: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Largest leverage of one person in all totals and regressions together. A total over m people has 1 / m."""

    def query_set(self, selected: Flags, present: Flags) -> Flags:
        return selected

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values))

    def answer_table(self, table: PolicyTable) -> TableResponder:
        from sfumato.auditing.policies._summaries import SummaryTableResponder

        return SummaryTableResponder(self, table)


class _Responder(ExactResponder):
    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        everybody = pack(np.ones((1, self.people), np.bool_))[0]
        return np.where((queries == everybody).all(axis=1), float(np.sum(self.values)), np.nan)
