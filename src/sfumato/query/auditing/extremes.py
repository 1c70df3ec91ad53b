"""Classical auditing of largest and smallest values, exactly, with equal values allowed.

After "the largest of these is m" everyone asked about has at most m and somebody has exactly m. A person's value is
known iff it is the same in every world that agrees with all answers. Worlds differ in who attains each answer, so
that is decided by search over these choices (it is NP-complete with both kinds of query); with only one kind a
query tells on the single person who can attain it.

Reference: Chin (1986), Security problems on inference control for SUM, MAX, and MIN queries, doi:10.1145/5925.5928;
Kenthapadi, Mishra, Nissim (2005), Simulatable auditing, doi:10.1145/1065167.1065183
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter, missing_extra
from sfumato.query.auditing.atoms import Ints

__all__ = ["ExtremeAnswer", "ExtremeAuditor"]


@dataclass(frozen=True, kw_only=True)
class ExtremeAnswer:
    """One answer: the largest or smallest value among people."""

    kind: Literal["max", "min"]
    people: tuple[int, ...]
    value: float


class ExtremeAuditor:
    """Refuses a largest or smallest value that would fix somebody's value, among values within the known bounds."""

    def __init__(self, people: int, *, low: float = -np.inf, high: float = np.inf) -> None:
        self.people, self.low, self.high = people, low, high
        self.answers: list[ExtremeAnswer] = []

    def exposed(self, *more: ExtremeAnswer) -> Ints | None:
        """Rows of the people whose value is fixed by the answers so far and these; None if no world agrees with
        them."""
        answers = [*self.answers, *more]
        low, high = np.full(self.people, self.low), np.full(self.people, self.high)
        for answer in answers:
            rows = np.asarray(answer.people, np.int64)
            if not len(rows) or rows.min() < 0 or rows.max() >= self.people:
                raise BadParameter(f"a query is about at least one person, rows 0 to {self.people - 1}.")
            if answer.kind == "max":
                high[rows] = np.minimum(high[rows], answer.value)
            else:
                low[rows] = np.maximum(low[rows], answer.value)
        if (low > high).any():
            return None
        kinds = {answer.kind for answer in answers}
        attain = [_attainers(answer, low, high) for answer in answers]
        if any(not len(rows) for rows in attain):
            return None
        pinned = np.flatnonzero(low == high)
        if len(kinds) <= 1:
            return np.unique(np.concatenate([pinned, *[rows for rows in attain if len(rows) == 1]])).astype(np.int64)
        return _pinned_both(answers, attain, low, high)

    def safe(self, answer: ExtremeAnswer) -> bool:
        """Whether telling this fixes nobody. It looks at the answer: a refusal tells something."""
        found = self.exposed(answer)
        return found is not None and len(found) == 0

    def simulatable(self, kind: Literal["max", "min"], people: tuple[int, ...]) -> bool:
        """Whether no answer that agrees with the earlier ones would fix anybody, decided without the true answer.

        Only where the answer lies among the earlier ones matters, so one candidate of each gap is enough.
        """
        told = sorted({answer.value for answer in self.answers})
        if not told:
            candidates = [0.0]
        else:
            between = [(a + b) / 2 for a, b in pairwise(told)]
            candidates = [told[0] - 1, *told, *between, told[-1] + 1]
        for value in candidates:
            found = self.exposed(ExtremeAnswer(kind=kind, people=people, value=value))
            if found is not None and len(found):
                return False
        return True

    def accept(self, answer: ExtremeAnswer) -> None:
        """Take the answer as told."""
        self.answers.append(answer)


def _attainers(answer: ExtremeAnswer, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> Ints:
    rows = np.asarray(answer.people, np.int64)
    bound = high if answer.kind == "max" else low
    attained: Ints = rows[bound[rows] == answer.value]
    return attained


def _pinned_both(
    answers: list[ExtremeAnswer], attain: list[Ints], low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
) -> Ints | None:
    """Each person sits at the top, at the bottom or in between; every answer needs somebody who attains it."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing_extra("audit", "OR-tools", needed_by="Auditing of MIN and MAX together") from None
    model = cp_model.CpModel()
    people = range(len(low))
    top = [model.new_bool_var("") for _ in people]
    bottom = [model.new_bool_var("") for _ in people]
    for i in people:
        if low[i] < high[i]:
            model.add_at_most_one(top[i], bottom[i])
        else:  # one value only, which is both
            model.add(top[i] == 1)
            model.add(bottom[i] == 1)
    for answer, rows in zip(answers, attain, strict=True):
        model.add_bool_or([(top if answer.kind == "max" else bottom)[i] for i in rows])
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    fixed = []
    for i in sorted({int(row) for rows in attain for row in rows}):
        if low[i] == high[i]:
            fixed.append(i)
            continue
        # Known iff always at the top or always at the bottom: not being there must be impossible.
        for variable in (top[i], bottom[i]):
            other = model.clone()
            other.add(other.get_bool_var_from_proto_index(variable.index) == 0)
            if solver.solve(other) == cp_model.INFEASIBLE:
                fixed.append(i)
                break
    return np.array(fixed, np.int64)
