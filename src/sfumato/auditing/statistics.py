"""Variances, correlations and regressions of one column on another over the people that a query selects."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array
from sfumato.auditing.policy_query import PolicyQuery, parse_policy_query
from sfumato.auditing.table import SubsetTableResponder
from sfumato.query.policy.base import TableAnswer

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
_SUMS = ("count", "sum", "avg")


def statistic(kind: str, first: Numbers, second: Numbers | None) -> float | None:
    """A statistic with the meaning it has in SQL; None where it is not defined.

    >>> statistic("var_samp", np.array([1.0, 2.0, 3.0]), None)
    1.0
    >>> statistic("regr_slope", np.array([2.0, 4.0]), np.array([1.0, 2.0]))
    2.0
    """
    if len(first) < (2 if kind.endswith("_samp") else 1):
        return None
    away = first - first.mean()
    if second is None:
        spread = float(away @ away) / (len(first) - kind.endswith("_samp"))
        return math.sqrt(spread) if kind.startswith("stddev") else spread
    beside = second - second.mean()
    square, both = float(beside @ beside), float(away @ beside)
    if kind == "corr":
        return both / math.sqrt(square * float(away @ away)) if square and away.any() else None
    if not square:
        return None
    slope = both / square
    return slope if kind == "regr_slope" else float(first.mean() - slope * second.mean())


class StatisticsTableResponder(SubsetTableResponder):
    """COUNT, SUM and AVG by the policy, and exact statistics over the same people."""

    def parse(self, sql: str) -> PolicyQuery:
        query = parse_policy_query(sql, self._table.catalog, statistics=True)
        if query.kind in _SUMS:
            return super().parse(sql)
        if query.kind in ("max", "min", "values"):
            answered = "COUNT, SUM and AVG, variances, CORR, REGR_SLOPE and REGR_INTERCEPT"
            raise query.refuse(query.node, f"Policy `{self._policy.part_name()}` answers {answered}.")
        two = query.kind in ("regr_slope", "regr_intercept", "corr")
        if query.column is None or (two and query.second is None):
            raise query.refuse(
                query.node,
                f"Policy `{self._policy.part_name()}` answers about columns of the table, not about expressions.",
            )
        return query

    def ask(self, sql: str) -> TableAnswer:
        query = self.parse(sql)
        if query.kind in _SUMS:
            return super().ask(sql)
        selected = np.isin(np.arange(self._table.frame.height), self._numbers(query.people(query.conditions)))
        columns = [self._numeric(name) for name in (query.column, query.second) if name is not None]
        selected &= ~np.isnan(columns).any(axis=0)
        self.check(query, selected)
        value = statistic(query.kind, columns[0][selected], columns[1][selected] if len(columns) > 1 else None)
        return TableAnswer(title=query.title, values=(value,))

    def check(self, query: PolicyQuery, selected: Flags) -> None:
        """Refuse a statistic over these people, if the policy does."""

    def _numeric(self, column: str) -> Numbers:
        numbers: Array = self._table.frame.get_column(column).cast(float).to_numpy()
        return numbers.astype(np.float64)
