"""Hide item sets and association rules by removing as few items from rows as possible.

Rows with the same items are exchangeable, so the exact program has one integer per combination of a row pattern and a
set of removed items: how many of these rows lose these items. CP-SAT minimizes the number of removed items (cells) and
the number of other frequent item sets that are lost, one after the other. Beyond its size, a border-based heuristic
removes the items that endanger the fewest other frequent item sets.

References: Verykios, Elmagarmid, Bertino, Saygin, Dasseni (2004), doi:10.1109/TKDE.2004.1269668; Sun, Yu (2005),
doi:10.1109/ICDM.2005.2; Gkoulalas-Divanis, Verykios (2009), doi:10.1109/TKDE.2008.199.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from math import ceil
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Mask
from sfumato.extras import missing_extra

Items = frozenset[int]
_MOST_VARIABLES = 20_000
_MOST_SUBSETS = 64
_EFFORT = (10.0, 0.5)
"""Deterministic time of CP-SAT for the first and the second goal, about a second per unit."""


@dataclass(frozen=True, kw_only=True)
class HiddenSet:
    """Items that must not be frequent together; or, with an antecedent, a rule that must not come out."""

    items: Items
    antecedent: Items | None = None
    """If given, it also suffices that too few of the rows with the antecedent have all items."""


@dataclass(frozen=True, kw_only=True)
class RemovedItems:
    """The table without the removed items."""

    kept: Mask
    """(row, item): the items that are left."""
    optimal: bool
    """Whether it is proved that no fewer changes suffice."""
    lost: int
    """Other frequent item sets that are no longer frequent, among those that were watched."""


@dataclass(frozen=True, kw_only=True)
class ItemProgram:
    """What must be hidden, what should stay, and the thresholds of the algorithm."""

    matrix: Mask
    """(row, item): which rows contain which items."""
    hidden: tuple[HiddenSet, ...]
    least: int
    """Number of rows from which an item set is frequent."""
    confidence: Fraction | None
    watched: tuple[Items, ...]
    """Other frequent item sets, which should stay frequent."""
    first: Literal["cells", "results"] = "cells"
    """Whether the number of changed cells or the number of lost item sets is minimized first."""

    @cached_property
    def removable(self) -> Items:
        """Items that may be removed."""
        return frozenset(chain.from_iterable(one.items for one in self.hidden))

    def support(self, matrix: Mask, items: Items) -> int:
        return int(matrix[:, sorted(items)].all(axis=1).sum())

    def needed(self, matrix: Mask, one: HiddenSet) -> int:
        """How many rows with the items must lose one of them (one of the consequent, for a rule)."""
        count, allowed = self.support(matrix, one.items), self.least - 1
        if one.antecedent is not None and self.confidence is not None:
            base = self.support(matrix, one.antecedent)
            allowed = max(allowed, ceil(self.confidence * base) - 1)
        return max(0, count - allowed)

    def lost(self, matrix: Mask) -> int:
        return sum(self.support(matrix, items) < self.least for items in self.watched)


def exact_removal(program: ItemProgram, random: np.random.Generator) -> RemovedItems | None:
    """The fewest removals, by CP-SAT; None if the program is too large or the solver found nothing in time."""
    patterns, of_row, counts = np.unique(program.matrix, axis=0, return_inverse=True, return_counts=True)
    of_row = of_row.ravel()
    choices: list[tuple[int, Items]] = []
    for number, pattern in enumerate(patterns):
        own = frozenset(np.flatnonzero(pattern).tolist())
        useful = frozenset(chain.from_iterable(one.items for one in program.hidden if one.items <= own))
        subsets = [frozenset(c) for size in range(1, len(useful) + 1) for c in combinations(sorted(useful), size)]
        if len(subsets) > _MOST_SUBSETS or len(choices) + len(subsets) > _MOST_VARIABLES:
            return None
        choices.extend((number, subset) for subset in subsets)
    solved = _solve(program, patterns, counts, choices)
    if solved is None:
        return None
    numbers, optimal = solved
    kept = program.matrix.copy()
    order = random.permutation(len(kept))
    rows = {number: order[of_row[order] == number] for number in {pattern for pattern, _ in choices}}
    used: dict[int, int] = {}
    for (pattern, removed), number in zip(choices, numbers, strict=True):
        start = used.get(pattern, 0)
        kept[np.ix_(rows[pattern][start : start + number], sorted(removed))] = False
        used[pattern] = start + number
    return RemovedItems(kept=kept, optimal=optimal, lost=program.lost(kept))


def _solve(
    program: ItemProgram, patterns: Mask, counts: Any, choices: Sequence[tuple[int, Items]]
) -> tuple[list[int], bool] | None:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing_extra("audit", "ortools", needed_by="Exact hiding of item sets") from None
    model = cp_model.CpModel()
    number = [model.new_int_var(0, int(counts[pattern]), "") for pattern, _ in choices]
    by_pattern: dict[int, list[Any]] = {}
    for (pattern, _), variable in zip(choices, number, strict=True):
        by_pattern.setdefault(pattern, []).append(variable)
    for pattern, variables in by_pattern.items():
        model.add(cp_model.LinearExpr.sum(variables) <= int(counts[pattern]))

    def support(items: Items) -> Any:
        inside: Mask = np.all(patterns[:, sorted(items)], axis=1)
        gone = [v for (pattern, removed), v in zip(choices, number, strict=True) if inside[pattern] and removed & items]
        return int(counts[inside].sum()) - cp_model.LinearExpr.sum(gone)

    for one in program.hidden:
        rare = support(one.items) <= program.least - 1
        if one.antecedent is None or program.confidence is None:
            model.add(rare)
            continue
        by_support, share = model.new_bool_var(""), program.confidence
        model.add(rare).only_enforce_if(by_support)
        weak = share.denominator * support(one.items) <= share.numerator * support(one.antecedent) - 1
        model.add(weak).only_enforce_if(by_support.negated())
    lost = []
    for items in program.watched:
        if items & program.removable:
            lost.append(model.new_bool_var(""))
            model.add(support(items) >= program.least).only_enforce_if(lost[-1].negated())
    cells = cp_model.LinearExpr.weighted_sum(number, [len(removed) for _, removed in choices])
    goals = [cells, cp_model.LinearExpr.sum(lost)]
    found: list[int] = []
    optimal = False
    # One goal after the other: a weighted sum of both takes the solver far longer to prove.
    for goal, effort in zip(goals if program.first == "cells" else goals[::-1], _EFFORT, strict=True):
        model.minimize(goal)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.max_deterministic_time = effort
        state = solver.solve(model)
        if state not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return (found, optimal) if found else None
        # The second goal chooses among the best solutions for the first one, as far as time allows.
        optimal = optimal if found else state == cp_model.OPTIMAL
        found = [solver.value(variable) for variable in number]
        model.add(goal <= round(solver.objective_value))
        model.clear_hints()  # type: ignore[no-untyped-call]
        for variable, value in zip(number, found, strict=True):
            model.add_hint(variable, value)
    return found, optimal


def border_removal(program: ItemProgram, random: np.random.Generator) -> RemovedItems:
    """Few removals, found greedily: the rows and items that endanger the other frequent item sets least go first.

    Each removal takes an item from a row, so the search ends; removals for a rule take items of its consequent.
    """
    kept = program.matrix.copy()
    border = _border(program.watched)
    before = {items: program.support(kept, items) for items in border}
    while todo := [one for one in program.hidden if program.needed(kept, one)]:
        one = max(todo, key=lambda one: program.needed(kept, one))
        need = program.needed(kept, one)
        rows = random.permutation(np.flatnonzero(kept[:, sorted(one.items)].all(axis=1)))
        step = min(need, max(1, need // 10))
        costs = {
            item: _costs(program, kept, border, before, rows, item) for item in one.items - (one.antecedent or set())
        }
        cheapest = {item: np.argsort(cost, kind="stable")[:step] for item, cost in costs.items()}
        item = min(costs, key=lambda item: (float(costs[item][cheapest[item]].sum()), item))
        kept[rows[cheapest[item]], item] = False
    return RemovedItems(kept=kept, optimal=False, lost=program.lost(kept))


def _border(watched: Sequence[Items]) -> tuple[Items, ...]:
    """The positive border: the largest of the item sets. If they stay frequent, so do all their parts."""
    return tuple(one for one in watched if not any(one < other for other in watched))


def _costs(
    program: ItemProgram,
    kept: Mask,
    border: Sequence[Items],
    before: Mapping[Items, int],
    rows: npt.NDArray[np.int64],
    item: int,
) -> npt.NDArray[np.float64]:
    """For each row, what the removal of an item does to the border: more for item sets that are nearly lost."""
    cost = np.zeros(len(rows))
    for items in border:
        if item in items:
            left = program.support(kept, items) - program.least
            weight = 1.0 if left < 0 else (before[items] - program.least - left + 1) / (left + 1)
            cost += weight * kept[rows][:, sorted(items)].all(axis=1)
    return cost
