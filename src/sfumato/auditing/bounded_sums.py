"""Auditing of sums of whole numbers within bounds: how many values each person can still have.

People in the same queries are exchangeable, so the unknowns are the totals of the atoms, whole numbers between
size · low and size · high that add up to the answers. A person of an atom with m people and total t can have every
value v for which t - v is a total of the other m - 1. CP-SAT searches for totals that agree with all answers and give
people new values, until everybody has k of them or there are no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Ints
from sfumato.auditing.atoms import AtomSplit, Flags
from sfumato.auditing.linear_system import connected
from sfumato.extras import missing_extra


@dataclass(frozen=True, kw_only=True)
class SumsAssessment:
    """Which atoms keep too few values after all sums."""

    safe: bool
    certain: bool
    """False if the effort ran out; the query is then not safe."""
    few: Ints
    """Atoms whose people keep fewer than k values, or could not be shown to keep k."""
    kept: Ints
    """How many values the people of each of these atoms were shown to keep."""


@dataclass(frozen=True, kw_only=True)
class BoundedSums:
    """Whole numbers between ``low`` and ``high``; everybody must keep ``k`` of them."""

    low: int
    high: int
    k: int
    effort: float

    def judge(self, split: AtomSplit, totals: Sequence[int], truth: Ints) -> SumsAssessment:
        """Assess the sums of all queries of the split. ``truth`` is the true total of each atom."""
        last = np.zeros(len(split.member), np.bool_)
        last[-1] = True
        near, chosen = connected(split.member, last)
        atoms = np.flatnonzero(chosen)
        sizes = split.truth.sum(axis=1)[atoms]
        member = split.member[near][:, atoms]
        sums = np.asarray(totals, np.int64)[near]
        kept = [_values(int(t), int(m), self.low, self.high) for t, m in zip(truth[atoms], sizes, strict=True)]
        known = [{int(t)} for t in truth[atoms]]
        left, certain = self.effort, True
        while True:
            short = np.array([_length(values) < self.k for values in kept])
            if not short.any() or left <= 0:
                break
            found, spent, ended = self._another(member, sums, sizes, known, short, left)
            left -= spent
            if found is None:
                certain = ended
                break
            for place, total in enumerate(found):
                known[place].add(total)
                kept[place] = _union(kept[place], _values(total, int(sizes[place]), self.low, self.high))
        certain = certain and left > 0
        few = atoms[short] if len(atoms) else atoms
        lengths = np.array([_length(values) for values in kept], np.int64)
        return SumsAssessment(
            safe=not len(few), certain=certain or not len(few), few=few, kept=lengths[short] if len(atoms) else lengths
        )

    def _another(
        self, member: Flags, sums: Ints, sizes: Ints, known: Sequence[set[int]], short: Flags, effort: float
    ) -> tuple[list[int] | None, float, bool]:
        """Totals that agree with the answers and give as many short atoms as possible a new total."""
        try:
            from ortools.sat.python import cp_model
        except ImportError:
            raise missing_extra("audit", "OR-tools", needed_by="Auditing of sums within bounds") from None
        model = cp_model.CpModel()
        cells: list[Any] = [model.new_int_var(int(m) * self.low, int(m) * self.high, "") for m in sizes]
        for inside, total in zip(member, sums.tolist(), strict=True):
            model.add(cp_model.LinearExpr.sum([cells[a] for a in np.flatnonzero(inside)]) == int(total))
        marks = []
        for place in np.flatnonzero(short).tolist():
            mark = model.new_bool_var("")
            for total in known[place]:
                model.add(cells[place] != total).only_enforce_if(mark)
            marks.append(mark)
        model.add_bool_or(marks)
        model.maximize(cp_model.LinearExpr.sum(marks))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.max_deterministic_time = effort
        state = solver.solve(model)
        spent = max(float(solver.response_proto.deterministic_time), 1e-3)
        if state in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return [int(solver.value(cell)) for cell in cells], spent, True
        return None, spent, state == cp_model.INFEASIBLE


Span = tuple[tuple[int, int], ...]
"""Disjoint ranges of whole numbers, sorted."""


def _values(total: int, people: int, low: int, high: int) -> Span:
    """The values that one of ``people`` people with this total can have: always one range."""
    others = people - 1
    return ((max(low, total - others * high), min(high, total - others * low)),)


def _length(span: Span) -> int:
    return sum(high - low + 1 for low, high in span)


def _union(one: Span, other: Span) -> Span:
    merged: list[tuple[int, int]] = []
    for low, high in sorted((*one, *other)):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)
