"""Auditing of MAX and MIN: exact decisions, with equal values allowed.

After the answer "the maximum is m", everyone in the query has at most m and somebody has exactly m. A person's value is
determined iff it is the same in every assignment that agrees with all answers. Assignments differ in who attains each
answer, which is decided by search; with both kinds of query this is NP-complete. With one kind only, a query exposes a
person iff nobody else can attain its answer.

Reference: Chin (1986), Security problems on inference control for SUM, MAX, and MIN queries, doi:10.1145/5925.5928;
Kenthapadi, Mishra, Nissim (2005), Simulatable auditing, doi:10.1145/1065167.1065183
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter
from sfumato.extras import missing_extra
from sfumato.query.auditing.atoms import Ints

__all__ = ["ExtremeAnswer", "ExtremeAuditor"]


@dataclass(frozen=True, kw_only=True)
class ExtremeAnswer:
    """One answer: the largest or smallest value among people."""

    kind: Literal["max", "min"]
    people: tuple[int, ...]
    value: float


class ExtremeAuditor:
    """Refuses a MAX or MIN that would determine somebody's value; all values lie within the known bounds."""

    def __init__(
        self, people: int, *, low: float = -np.inf, high: float = np.inf, effort: float = 30.0,
        known: Mapping[int, float] | None = None,
    ) -> None:  # fmt: skip
        self.people, self.low, self.high, self.effort = people, low, high, effort
        self.known = dict(known or {})
        """Values that the adversary knows, by row."""
        self.answers: list[ExtremeAnswer] = []

    def exposed(self, *more: ExtremeAnswer) -> Ints | None:
        """Rows of the people whose value these and the earlier answers determine; None if the answers contradict.

        If the effort runs out, people who could not be shown to keep two values are among them.
        """
        answers = [*self.answers, *more]
        low, high = np.full(self.people, self.low), np.full(self.people, self.high)
        facts = list(self.known)
        low[facts] = high[facts] = list(self.known.values())
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
            fixed: Ints | None = np.unique(np.concatenate([pinned, *[rows for rows in attain if len(rows) == 1]]))
        else:
            fixed = _pinned_both(answers, attain, low, high, self.effort)
        return None if fixed is None else np.setdiff1d(fixed.astype(np.int64), facts)

    def safe(self, answer: ExtremeAnswer) -> bool:
        """Whether the answer exposes nobody. The decision depends on the answer, so a refusal reveals something."""
        exposed = self.exposed(answer)
        return exposed is not None and len(exposed) == 0

    def simulatable(self, kind: Literal["max", "min"], people: tuple[int, ...]) -> bool:
        """Whether no answer that agrees with the earlier ones would expose anybody, decided without the true answer.

        Only the position among the earlier answers matters, so one candidate per gap is enough.
        """
        values = sorted({answer.value for answer in self.answers} | set(self.known.values()))
        if not values:
            candidates = [0.0]
        else:
            between = [(a + b) / 2 for a, b in pairwise(values)]
            candidates = [values[0] - 1, *values, *between, values[-1] + 1]
        for value in candidates:
            exposed = self.exposed(ExtremeAnswer(kind=kind, people=people, value=value))
            if exposed is not None and len(exposed):
                return False
        return True

    def accept(self, answer: ExtremeAnswer) -> None:
        """Record an answer that was given."""
        self.answers.append(answer)


def _attainers(answer: ExtremeAnswer, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> Ints:
    rows = np.asarray(answer.people, np.int64)
    bound = high if answer.kind == "max" else low
    attained: Ints = rows[bound[rows] == answer.value]
    return attained


def _pinned_both(
    answers: list[ExtremeAnswer],
    attain: list[Ints],
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
    effort: float,
) -> Ints | None:
    """Exposed rows with both MAX and MIN. Each person is at the upper bound, at the lower bound or in between.

    A person is determined iff always at the upper or always at the lower bound. Each search shows as many people as
    possible away from a bound at which all earlier ones had them.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing_extra("audit", "OR-tools", needed_by="Auditing of MIN and MAX together") from None
    model = cp_model.CpModel()
    open_ = low < high
    needed = np.unique(np.concatenate(attain))
    sides: list[dict[int, Any]] = [{int(i): model.new_bool_var("") for i in needed} for _ in range(2)]
    for i in needed.tolist():
        if open_[i]:
            model.add_at_most_one(sides[0][i], sides[1][i])
        else:  # one value only, which is both
            model.add(sides[0][i] == 1)
            model.add(sides[1][i] == 1)
    for answer, rows in zip(answers, attain, strict=True):
        model.add_bool_or([sides[answer.kind == "min"][int(i)] for i in rows])
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    waiting = {(side, int(i)) for side in range(2) for i in needed if open_[i]}
    left = effort
    first = True
    while waiting or first:
        if not first:
            objective = sum(sides[side][i] for side, i in sorted(waiting))
            model.minimize(objective)
        solver.parameters.max_deterministic_time = max(left, 1e-3)
        state = solver.solve(model)
        left -= max(float(solver.response_proto.deterministic_time), 1e-3)
        if state == cp_model.INFEASIBLE:
            return None
        if state not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        shown = {(side, i) for side, i in waiting if not solver.value(sides[side][i])}
        waiting -= shown
        if not first and not shown:
            break  # in an optimal solution nobody else can be moved away
        first = False
        if left <= 0:
            break
    fixed = {i for _, i in waiting} | {int(i) for i in needed if not open_[i]}
    return np.array(sorted(fixed), np.int64)
