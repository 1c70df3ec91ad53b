"""Solvers of exact decisions: a linear program (SciPy's HiGHS) and an integer search (OR-tools CP-SAT).

The variables are moves from the known solution, so they stay small for any number of people.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.auditing.atoms import Flags, Sense
from sfumato.auditing.linear_system import CountSystem, upper_bounds
from sfumato.auditing.possibilities import Possibilities
from sfumato.extras import missing_extra


class SolverStatus(Enum):
    """How an integer search ended."""

    SOLVED = auto()
    """A solution was found that proves something new."""
    INFEASIBLE = auto()
    """There is no solution with any of the target pairs (inside the box, if one was set)."""
    GAVE_UP = auto()


def direction(
    system: CountSystem, no: Flags, targets: Flags, *, box: int | None
) -> tuple[Floats, npt.NDArray[np.bool_]] | None:
    """The real-valued move from the known solution that increases as many target pairs as possible.

    Without a box the move may have any length, and a pair it does not increase is impossible. With a box the move is
    bounded and short moves are preferred, so that it is usually integral and itself a solution.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack, vstack

    free = ~no
    place = np.full(free.shape, -1, np.int64)
    place[free] = np.arange(free.sum())
    count, goals = int(free.sum()), int(targets.sum())
    fixed, limited, room = _sums(system, place, count, box)
    goal = np.arange(goals)
    up = coo_array((np.ones(goals), (goal, place[targets])), shape=(goals, count)).tocsr()
    mark = coo_array((np.ones(goals), (goal, goal)), shape=(goals, goals)).tocsr()
    known = system.known[free].astype(float)
    # A move is the difference of two non-negative parts, so that its length is linear.
    takes = np.full(count, np.inf) if box is None else np.minimum(known, box)
    takes[known == 0] = 0.0
    adds = np.full(count, np.inf if box is None else float(box))

    def wide(rows: Any) -> object:
        return hstack([rows, -rows, coo_array((rows.shape[0], goals))], format="csr")

    upper = hstack([-up, up, mark], format="csr")
    limits = np.zeros(goals)
    if limited is not None:
        upper, limits = vstack([upper, wide(limited)], format="csr"), np.concatenate([limits, room])
    cost = np.concatenate([np.full(2 * count, 0.0 if box is None else 1e-3), -np.ones(goals)])
    high = np.concatenate([adds, takes, np.ones(goals)])
    solved = linprog(
        cost, A_eq=wide(fixed), b_eq=np.zeros(fixed.shape[0]), A_ub=upper, b_ub=limits,
        bounds=np.stack([np.zeros_like(high), high], axis=1), method="highs",
    )  # fmt: skip
    if solved.status != 0:
        return None
    move = np.zeros(free.shape)
    move[free] = solved.x[:count] - solved.x[count : 2 * count]
    return move, solved.x[2 * count :] > 0.5


def _sums(system: CountSystem, place: Ints, width: int, box: int | None) -> tuple[Any, object, Floats]:
    """Sums that a move keeps, sums it may increase up to a bound (facts that are no equality), and the bounds."""
    from scipy.sparse import coo_array

    rows: tuple[list[Ints], list[Ints]] = ([], [])
    columns: tuple[list[Ints], list[Ints]] = ([], [])
    entries: tuple[list[Ints], list[Ints]] = ([], [])
    rows_added, room = [0, 0], []

    def add(kind: int, cells: Ints, factors: Ints) -> None:
        rows[kind].append(np.full(len(cells), rows_added[kind]))
        columns[kind].append(cells)
        entries[kind].append(factors)
        rows_added[kind] += 1

    for row in place:
        cells = row[row >= 0]
        add(0, cells, np.ones(len(cells), np.int64))
    for inside, answer in zip(system.member, system.answers, strict=True):
        block, now = place[inside], system.known[inside].sum(axis=0)
        for weights, total, sense in answer.facts:
            cells, factors = _weighted(block, weights)
            spare = abs(total - int(weights @ now))
            if len(cells) and sense is Sense.EQUAL:
                add(0, cells, factors)
            elif len(cells) and (spare == 0 or box is not None):
                add(1, cells, factors if sense is Sense.AT_MOST else -factors)
                room.append(float(spare))

    def matrix(kind: int) -> object:
        where = (np.concatenate(rows[kind]), np.concatenate(columns[kind]))
        factors = np.concatenate(entries[kind]).astype(np.float64)
        return coo_array((factors, where), shape=(rows_added[kind], width)).tocsr()

    return matrix(0), matrix(1) if rows_added[1] else None, np.asarray(room)


def _weighted(block: Ints, weights: Ints) -> tuple[Ints, Ints]:
    """Places of the movable numbers of a query that a fact is about, with their weights."""
    used = np.flatnonzero(weights)
    cells = block[:, used]
    factors = np.broadcast_to(weights[used], cells.shape)
    return cells[cells >= 0], factors[cells >= 0]


def integer_search(
    system: CountSystem,
    possible: Possibilities,
    targets: Flags,
    *,
    effort: float,
    box: int | None,
    cells: Flags | None = None,
) -> SolverStatus:
    """Search for a solution with as many target pairs as possible and record it in ``possible``.

    ``box`` bounds the change of each number from the known solution; ``cells`` restricts which numbers may change.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing_extra("audit", "OR-tools", needed_by="Auditing of overlapping questions") from None

    movable = ~possible.no if cells is None else cells & ~possible.no
    targets = targets & movable
    if not targets.any():
        return SolverStatus.GAVE_UP
    bounds, known = upper_bounds(system), system.known
    model = cp_model.CpModel()
    place = np.full(known.shape, -1, np.int64)
    moves: list[Any] = []
    for a, s in zip(*np.nonzero(movable), strict=True):
        low, high = -int(known[a, s]), int(bounds[a, s] - known[a, s])
        if box is not None:
            low, high = max(low, -box), min(high, box)
        place[a, s] = len(moves)
        moves.append(model.new_int_var(low, high, ""))
        model.add_hint(moves[-1], 0)

    def total(where: Ints) -> object:
        return cp_model.LinearExpr.sum([moves[i] for i in where.ravel() if i >= 0])

    for row in place:
        if (row >= 0).any():
            model.add(total(row) == 0)
    for inside, answer in zip(system.member, system.answers, strict=True):
        block, now = place[inside], known[inside].sum(axis=0)
        for weights, stated, sense in answer.facts:
            where, factors = _weighted(block, weights)
            if not len(where):
                continue
            change = cp_model.LinearExpr.weighted_sum([moves[i] for i in where], factors.tolist())
            room = stated - int(weights @ now)
            if sense is Sense.EQUAL:
                model.add(change == 0)
            else:
                model.add(change <= room if sense is Sense.AT_MOST else change >= room)
    marks = []
    for i in place[targets]:
        mark = model.new_bool_var("")
        model.add(moves[i] >= mark)
        marks.append(mark)
    model.add_bool_or(marks)
    if len(marks) > 1:
        model.maximize(cp_model.LinearExpr.sum(marks))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = effort
    state = solver.solve(model)
    possible.spent = max(float(solver.response_proto.deterministic_time), 1e-3)
    if state == cp_model.INFEASIBLE:
        return SolverStatus.INFEASIBLE
    if state not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return SolverStatus.GAVE_UP
    x = known.copy()
    x[movable] += np.array([solver.value(move) for move in moves], np.int64)
    return SolverStatus.SOLVED if system.fits(x) and possible.learn(x) else SolverStatus.GAVE_UP
