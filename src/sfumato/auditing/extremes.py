"""Auditing of MAX and MIN over the declared numbers: how many of them each person can still have.

After the answer "the maximum is m", everyone in the query has at most m and somebody has exactly m. The numbers between
a person's smallest and largest possible one attain nothing, so a person is in one of three states: at the upper end, at
the lower end, or at one of the numbers in between. A state is possible iff the others can still attain every answer,
which is decided by search; with both kinds of query this is NP-complete. With one kind only, a person keeps all numbers
up to the end unless nobody else can attain an answer.

Reference: Chin (1986), Security problems on inference control for SUM, MAX, and MIN queries, doi:10.1145/5925.5928;
Kenthapadi, Mishra, Nissim (2005), Simulatable auditing, doi:10.1145/1065167.1065183
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.arrays import Ints
from sfumato.auditing.atoms import Flags
from sfumato.errors import BadParameter
from sfumato.extras import missing_extra


@dataclass(frozen=True, kw_only=True)
class ExtremeAnswer:
    """One answer: the largest or smallest value among people, by its position among the possible numbers."""

    kind: Literal["max", "min"]
    people: tuple[int, ...]
    value: int


class ExtremeAuditor:
    """Refuses a MAX or MIN after which somebody would keep fewer than ``k`` of the ``values`` possible numbers."""

    def __init__(
        self, people: int, *, values: int, k: int, effort: float = 30.0, known: Mapping[int, int] | None = None
    ) -> None:
        self.people, self.values, self.k, self.effort = people, values, k, effort
        self.known = dict(known or {})
        """Values that the adversary knows, by row."""
        self.answers: list[ExtremeAnswer] = []

    def exposed(self, *more: ExtremeAnswer) -> Ints | None:
        """Rows of the people who keep fewer than k values after these and the earlier answers; None if they contradict.

        If the effort runs out, people who could not be shown to keep k values are among them.
        """
        answers = [*self.answers, *more]
        low, high = np.zeros(self.people, np.int64), np.full(self.people, self.values - 1)
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
        attain = [_attainers(answer, low, high) for answer in answers]
        if any(not len(rows) for rows in attain):
            return None
        kept: Ints | None = high - low + 1
        assert kept is not None
        if len({answer.kind for answer in answers}) <= 1:
            kept[[int(rows[0]) for rows in attain if len(rows) == 1]] = 1
        else:
            kept = _kept_of_both(answers, attain, low, high, k=self.k, effort=self.effort)
        return None if kept is None else np.setdiff1d(np.flatnonzero(kept < self.k), facts)

    def safe(self, answer: ExtremeAnswer) -> bool:
        """Whether the answer exposes nobody. The decision depends on the answer, so a refusal reveals something."""
        exposed = self.exposed(answer)
        return exposed is not None and len(exposed) == 0

    def accept(self, answer: ExtremeAnswer) -> None:
        """Record an answer that was given."""
        self.answers.append(answer)


def _attainers(answer: ExtremeAnswer, low: Ints, high: Ints) -> Ints:
    rows = np.asarray(answer.people, np.int64)
    bound = high if answer.kind == "max" else low
    attained: Ints = rows[bound[rows] == answer.value]
    return attained


def _kept_of_both(
    answers: list[ExtremeAnswer], attain: list[Ints], low: Ints, high: Ints, *, k: int, effort: float
) -> Ints | None:
    """How many values each person provably keeps with both MAX and MIN, at least up to k; None if nothing fits.

    Each search puts as many people as possible into states in which no earlier one had them.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing_extra("audit", "OR-tools", needed_by="Auditing of MIN and MAX together") from None
    model = cp_model.CpModel()
    states: dict[tuple[int, str], Any] = {}
    worth: dict[tuple[int, str], int] = {}
    ends: dict[str, Flags] = {side: np.zeros(len(low), np.bool_) for side in ("max", "min")}
    for answer, rows in zip(answers, attain, strict=True):
        ends[answer.kind][rows] = True
    for i in np.flatnonzero(ends["max"] | ends["min"]).tolist():
        sides = [side for side in ("max", "min") if ends[side][i]]
        if low[i] == high[i]:  # one value only, which is both ends
            states |= {(i, side): model.new_constant(1) for side in sides}
            continue
        between = int(high[i] - low[i]) + 1 - len(sides)
        own = {(i, side): model.new_bool_var("") for side in (*sides, *(["between"] if between else []))}
        model.add_exactly_one(own.values())
        states |= own
        worth |= {key: between if key[1] == "between" else 1 for key in own}
    for answer, rows in zip(answers, attain, strict=True):
        model.add_bool_or([states[int(i), answer.kind] for i in rows])
    kept: Ints = np.where((ends["max"] | ends["min"]) & (low < high), 0, high - low + 1)
    waiting, left = set(worth), effort
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    while True:
        model.maximize(sum(states[key] for key in sorted(waiting)))
        solver.parameters.max_deterministic_time = max(left, 1e-3)
        state = solver.solve(model)
        left -= max(float(solver.response_proto.deterministic_time), 1e-3)
        if state == cp_model.INFEASIBLE:
            return None
        if state not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return kept
        shown = {key for key in waiting if solver.value(states[key])}
        for key in shown:
            kept[key[0]] += worth[key]
        waiting = {key for key in waiting - shown if kept[key[0]] < k}
        # In an optimal solution that shows nothing new nobody can be moved into another state.
        if not shown or not waiting or left <= 0:
            return kept
