"""A fixed set of summaries of each column: totals, marginal totals, variances, regressions on public columns.

The totals, the marginal totals and the coefficients of regressions on public numbers are linear in the protected
column. What all of them together tell about one person is the person's leverage: the squared length of the projection
of the person's unit vector on their span. It is 1 iff the value is determined; a total over m people has 1/m.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array
from sfumato.auditing.policy_query import PolicyQuery
from sfumato.auditing.statistics import Flags, Numbers, StatisticsTableResponder
from sfumato.auditing.table import PolicyTable
from sfumato.errors import AnswerDenied, BadParameter
from sfumato.query.policy.base import ExactResponder
from sfumato.query.policy.subsets import pack
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.auditing.policies.summary_only import SummaryOnly

_TOLERANCE = 1e-10
_LEAST = 1e-6
"""Least share of the squares that the linear summaries must leave unexplained for a variance to be answered."""


def span_basis(facts: Numbers) -> Numbers:
    """An orthonormal basis, in columns, of the span of the columns. The leverages are its squared row lengths."""
    left, sizes, _ = np.linalg.svd(facts, full_matrices=False)
    kept: Numbers = left[:, sizes > _TOLERANCE * sizes.max(initial=0.0)]
    return kept


class SummaryTableResponder(StatisticsTableResponder):
    """Answers the declared summaries; whether it does depends on public columns and on who has a value."""

    def __init__(self, policy: SummaryOnly, table: PolicyTable) -> None:
        super().__init__(policy, table)
        self._rules = policy
        schema = table.table.schema.columns
        for name in (*policy.groupings, *policy.predictors):
            if name not in schema or name in table.sensitive:
                raise BadParameter(f"summary-only: `{name}` is not a column that is not sensitive.")
        for name in policy.predictors:
            if not table.frame.schema[name].is_numeric() or table.frame.get_column(name).null_count():
                raise BadParameter(f"summary-only: predictor `{name}` is not a column of numbers without gaps.")
        public = {*policy.groupings, *policy.predictors}
        numbers = [name for name in schema if name not in public and table.frame.schema[name].is_numeric()]
        self._protected = [name for name in numbers if name in table.sensitive or not table.sensitive]
        for name in self._protected if policy.variance else ():
            self._require_spread(name)

    @cached_property
    def _cells(self) -> Numbers:
        """Everybody and each group of a grouping, as columns of 0 and 1."""
        masks = [np.ones(self._table.frame.height)]
        for name in self._rules.groupings:
            column = self._table.frame.get_column(name)
            masks += [column.eq_missing(value).to_numpy().astype(np.float64) for value in column.unique()]
        return np.stack(masks, axis=1)

    def parse(self, sql: str) -> PolicyQuery:
        query = super().parse(sql)
        hidden = query.about(self._table.sensitive)
        if hidden:
            raise query.refuse(hidden[0].node, "Policy `summary-only` answers no conditions on a sensitive column.")
        if query.kind in ("count", "sum", "avg"):
            return query
        if query.column not in self._protected:
            told = ", ".join(self._protected) or "none"
            raise query.refuse(query.node, "The statistic is not about a protected column.", f"Protected: {told}.")
        if query.second is not None and query.second not in self._rules.predictors:
            raise query.refuse(query.node, f"`{query.second}` is not among the declared `predictors`.")
        if query.kind not in ("regr_slope", "regr_intercept") and not self._rules.variance:
            raise query.refuse(query.node, "Variances and correlations are not declared: `variance` is false.")
        return query

    def check(self, query: PolicyQuery, selected: Flags) -> None:
        assert query.column is not None
        present = ~np.isnan(self._numeric(query.column))
        if not np.array_equal(selected, present):
            raise self._denied("statistics are over everybody")
        self._require_leverage(present)

    def _people(self, query: PolicyQuery) -> tuple[Array, Array, Array]:
        values, present, selected = super()._people(query)
        if not (self._cells.astype(np.bool_) == selected[:, None]).all(axis=0).any():
            raise self._denied("the people are neither everybody nor a group of a declared grouping")
        there = np.ones(len(selected), np.bool_)
        if query.kind in ("sum", "avg") and query.column is not None:
            there = self._table.frame.get_column(query.column).is_not_null().to_numpy()
        self._require_leverage(there)
        return values, present, selected

    def _sum(self, values: Array, selected: Array, rng: Rng, unit: float = 1.0) -> Any:
        return ExactResponder(values).ask(pack(selected)[0])

    def _require_leverage(self, present: npt.NDArray[np.bool_]) -> None:
        basis = self._basis(present)
        if not len(basis) or float((basis**2).sum(axis=1).max()) > self._rules.leverage + 1e-9:
            raise self._denied("all summaries together would tell too much about one person")

    def _basis(self, present: npt.NDArray[np.bool_]) -> Numbers:
        """The span of all linear summaries of a column, over the people who have a value."""
        numbers = [self._numeric(name)[present] for name in self._rules.predictors]
        scaled = [(x - x.mean()) / (x.std() or 1.0) for x in numbers if len(x)]
        return span_basis(np.column_stack([self._cells[present], *scaled]))

    def _require_spread(self, name: str) -> None:
        """Raise an error, for the owner, if a variance would complete what the linear summaries tell."""
        values = self._numeric(name)
        present = ~np.isnan(values)
        held, basis = values[present], self._basis(present)
        away = held - held.mean() if len(held) else held
        rest = away - basis @ (basis.T @ away)
        if basis.shape[0] - basis.shape[1] < 2 or float(rest @ rest) <= _LEAST * float(away @ away):
            raise BadParameter(
                f"summary-only: the variance of `{name}` and its other summaries would together fix its values.",
                fix="Leave out `variance`, or declare fewer groupings and predictors.",
            )

    def _denied(self, reason: str) -> AnswerDenied:
        return AnswerDenied(f"Policy `summary-only` refuses: {reason}.", fix=self._rules.promise_text())
