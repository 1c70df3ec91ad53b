"""Exact answers, refused as soon as they would determine somebody's value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.auditing.k_assign import AssignAuditor
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.set_policy import SetPolicy
from sfumato.auditing.sums import SumAuditor
from sfumato.errors import BadParameter
from sfumato.query.policy.base import ExactResponder, Responder, TableResponder
from sfumato.query.policy.subsets import Bits, unpack
from sfumato.rng import Rng

if TYPE_CHECKING:
    import polars as pl

    from sfumato.auditing.table import PolicyTable


class Audit(AuditRules, SetPolicy):
    """The true answer, unless it and the earlier ones together would leave somebody with fewer than ``k`` values.

    Decisions are made on exactly the declared possible values of a column; sums, maxima and minima of a column without
    a declared domain are refused. The search looks at the answers, so its refusals can reveal something (``refusals``);
    with ``simulatable`` they reveal nothing. Certain values are prevented, likely ones are not: with many queries
    answered, ``reconstruction`` guesses most bits.
    """

    examples = ({"k": 2}, {"k": 2, "effort": 5})
    reference = "Chin, Ozsoyoglu (1982), doi:10.1109/TSE.1982.236161; Kleinberg, Papadimitriou, Raghavan (2003), doi:10.1016/S0022-0000(03)00036-3"  # noqa: E501
    promise = "Answers are exact or refused: everyone keeps at least {k} possible values."
    broken_by = ("reconstruction", "refusals")

    def promise_text(self) -> str:
        text = super().promise_text()
        if self.known:
            text = text.replace("everyone", "everyone whose value is not declared as known")
        if self.probable is not None:
            text = f"{text.rstrip('.')}, none of them more probable than {self.probable:g} for the declared shares."
        return text

    @property
    def needs_sensitive(self) -> bool:
        return True

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _AuditResponder(np.asarray(values), self)

    def recorded(self, frame: pl.DataFrame, sensitive: tuple[str, ...]) -> dict[str, object]:
        from sfumato.auditing.audit_log import recorded_rules

        return recorded_rules(self, frame, sensitive)

    def answer_table(self, table: PolicyTable) -> TableResponder:
        from sfumato.auditing.sql_frontend import AuditTableResponder

        return AuditTableResponder(table, rules=self)


class _AuditResponder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], rules: AuditRules) -> None:
        if not np.isin(values, (0, 1)).all():
            raise BadParameter("an audit of numbers needs their declared domain: here every value is 0 or 1.")
        super().__init__(values)
        self._sums = SumAuditor(len(values))
        self._bits = AssignAuditor(values.astype(np.int64), values=2, k=2, effort=rules.effort)
        self._impossible = rules.k > 2  # a bit has two values

    def ask(self, query: Bits) -> float | None:
        people = np.flatnonzero(unpack(query[None, :], self.people)[0])
        safe, _, state = self._sums.judge(people)
        if not safe or self._impossible:
            return None
        assessment = self._bits.judge(people)
        if not assessment.safe:
            return None
        self._bits.accept(assessment)
        self._sums.accept(state)
        return float(self.values[people].sum())

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        answers = [self.ask(query) for query in queries]
        return np.array([np.nan if answer is None else answer for answer in answers], np.float64)
