"""Exact answers, refused as soon as they would fix somebody's value."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.query.auditing.k_assign import AssignAuditor
from sfumato.query.auditing.sums import SumAuditor
from sfumato.query.policies.exact import ExactResponder
from sfumato.query.policy import Policy, Responder
from sfumato.query.policy.subsets import Bits, unpack
from sfumato.rng import Rng

__all__ = ["Audit"]


class Audit(Policy):
    """The true answer, unless it and the earlier ones together would leave somebody with a single possible value.

    Numbers are audited by exact linear algebra, which never looks at the answers: its refusals tell nothing. A column
    of 0 and 1 is audited by exact search over whole numbers as well, which does look, so its refusals can tell
    something. Certain values are prevented, likely ones are not: with many questions answered, ``reconstruction``
    guesses most bits.
    """

    examples = ({}, {"effort": 5})
    reference = "Chin, Ozsoyoglu (1982), doi:10.1109/TSE.1982.236161; Kleinberg, Papadimitriou, Raghavan (2003), doi:10.1016/S0022-0000(03)00036-3"  # noqa: E501

    effort: Annotated[float, Field(gt=0)] = 10.0
    """Bound on the search of one decision, in the solver's deterministic seconds; running out is a no."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Desk(np.asarray(values), self.effort)


class _Desk(ExactResponder):
    def __init__(self, values: npt.NDArray[np.float64], effort: float) -> None:
        super().__init__(values)
        self._sums = SumAuditor(len(values))
        bits = np.isin(values, (0, 1)).all()
        self._bits = AssignAuditor(values.astype(np.int64), values=2, k=2, effort=effort) if bits else None

    def ask(self, query: Bits) -> float | None:
        people = np.flatnonzero(unpack(query[None, :], self.people)[0])
        safe, _, state = self._sums.judge(people)
        if not safe:
            return None
        if self._bits is not None:
            assessment = self._bits.judge(people)
            if not assessment.safe:
                return None
            self._bits.accept(assessment)
        self._sums.accept(state)
        return float(self.values[people].sum())

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        answers = [self.ask(query) for query in queries]
        return np.array([np.nan if answer is None else answer for answer in answers], np.float64)
