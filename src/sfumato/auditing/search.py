"""Search for the possible values of each atom: examples, then a linear program, then integer search.

A pair of atom and value is possible if an integer solution with it was found and checked exactly. It is impossible if
the linear relaxation or a finished search says so. Pairs that are undecided when the effort runs out stay open, and an
auditor treats open pairs as impossible.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.auditing.atoms import Flags
from sfumato.auditing.exchange_moves import rectangle_moves
from sfumato.auditing.linear_system import CountSystem, closed, upper_bounds
from sfumato.auditing.possibilities import Possibilities
from sfumato.auditing.set_exchanges import set_exchanges
from sfumato.auditing.solvers import SolverStatus, direction, integer_search

__all__ = ["Possibilities", "search"]


def search(
    system: CountSystem,
    *,
    need: int | None,
    effort: float,
    impossible: Flags | None = None,
    examples: Iterable[Ints] = (),
) -> Possibilities:
    """Decide pairs until every atom provably has ``need`` possible values or one cannot have them (None: all pairs).

    ``impossible`` are pairs refuted earlier, which stay impossible. ``examples`` are solutions found earlier.
    ``effort`` is in the solver's deterministic seconds, so the same query gets the same decision on every machine.
    """
    possible = Possibilities(yes=system.known > 0, no=upper_bounds(system) == 0)
    if impossible is not None:
        possible.no |= impossible & ~possible.yes
    if possible.decided(need):
        return possible
    for x in examples:
        if system.fits(x) and possible.learn(x) and possible.decided(need):
            return possible
    exact = closed(system)
    if exact is not None:
        possible.yes, possible.no, possible.how = exact, ~exact, "flow"
        return possible
    rectangle_moves(system, possible, _targets(possible, need), need)
    if possible.decided(need):
        return possible
    set_exchanges(system, possible, _targets(possible, need), need)
    if possible.decided(need):
        return possible
    possible.how = "relaxation"
    _relax(system, possible, need)
    if possible.decided(need):
        return possible
    _near(system, possible, need)
    if possible.decided(need):
        return possible
    possible.how = "search"
    _program(system, possible, need, effort)
    if not possible.decided(need):
        possible.how = "time ran out"
    return possible


def _targets(possible: Possibilities, need: int | None) -> Flags:
    """Open pairs that can still change the decision."""
    if need is None:
        return possible.open
    short: Flags = (possible.yes.sum(axis=1) < need)[:, None]
    return possible.open & short


def _relax(system: CountSystem, possible: Possibilities, need: int | None) -> None:
    """Linear relaxation: a pair that no direction from the known solution increases is impossible.

    All coefficients are 0 or 1 and all right-hand sides 0, whatever the counts are.
    """
    targets = _targets(possible, need)
    solved = direction(system, possible.no, targets, box=None)
    if solved is None:
        return
    move, raised = solved
    refuted = targets.copy()
    refuted[targets] = ~raised
    possible.no |= refuted
    _take(system, possible, move)


def _take(system: CountSystem, possible: Possibilities, move: npt.NDArray[np.float64]) -> bool:
    """Record the solution of a direction that is integral after scaling by a small factor."""
    for scale in (1, 2, 3, 4, 6, 12):
        whole = np.rint(move * scale)
        if np.abs(whole - move * scale).max(initial=0.0) < 1e-6 and np.abs(whole).max(initial=0.0) < 2**31:
            x = system.known + whole.astype(np.int64)
            return system.fits(x) and possible.learn(x)
    return False


def _near(system: CountSystem, possible: Possibilities, need: int | None) -> None:
    """Find solutions near the known one: small linear moves, then integer search where they are not integral."""
    for box in (1, 3):
        while not possible.decided(need):
            solved = direction(system, possible.no, _targets(possible, need), box=box)
            if solved is None or not solved[1].any():
                break
            if _take(system, possible, solved[0]):
                continue
            used = np.abs(solved[0]) > 1e-7
            if (
                integer_search(system, possible, _targets(possible, need), effort=1.0, box=box + 1, cells=used)
                is not SolverStatus.SOLVED
            ):
                break


def _program(system: CountSystem, possible: Possibilities, need: int | None, effort: float) -> None:
    """Integer search: near the known solution, then without bounds, then pair by pair with the remaining effort."""
    left = effort
    box: int | None = 4
    while left > 0 and not possible.decided(need):
        targets = _targets(possible, need)
        spend = min(left, max(effort / 10, 1.0))
        ended = integer_search(system, possible, targets, effort=spend, box=box)
        left -= possible.spent
        if ended is SolverStatus.SOLVED:
            continue
        if ended is SolverStatus.INFEASIBLE and box is None:
            possible.no |= targets
        elif box is not None:
            box = None
        else:
            break
    pairs = np.argwhere(_targets(possible, need))
    for number, (a, s) in enumerate(pairs):
        if left <= 0 or possible.yes[a, s] or possible.decided(need):
            continue
        one = np.zeros_like(possible.yes)
        one[a, s] = True
        ended = integer_search(system, possible, one, effort=left / (len(pairs) - number), box=None)
        left -= possible.spent
        if ended is SolverStatus.INFEASIBLE:
            possible.no |= one
