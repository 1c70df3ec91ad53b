"""Which values are possible for whom: proofs by example first, refutation by one linear program, search for the rest.

A "yes" is always a solution in whole numbers that was checked exactly. A "no" comes from the linear relaxation or
from a finished search. What neither settles within the effort stays open, and an auditor takes open for no.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from sfumato.query.auditing.atoms import Flags, Ints
from sfumato.query.auditing.exchange_moves import rectangle_moves
from sfumato.query.auditing.linear_system import CountSystem, closed, upper_bounds
from sfumato.query.auditing.possibilities import Possibilities
from sfumato.query.auditing.solvers import SolverStatus, direction, integer_search

__all__ = ["Possibilities", "search"]


def search(
    system: CountSystem,
    *,
    need: int | None,
    effort: float,
    impossible: Flags | None = None,
    examples: Iterable[Ints] = (),
) -> Possibilities:
    """Settle pairs until every atom surely has ``need`` possible values or one surely has not (None: all pairs).

    ``impossible`` are pairs refuted earlier (answers only ever take away), ``examples`` are solutions found earlier.
    ``effort`` is in the solver's deterministic seconds, so that the same query meets the same decision everywhere.
    """
    found = Possibilities(yes=system.known > 0, no=upper_bounds(system) == 0)
    if impossible is not None:
        found.no |= impossible & ~found.yes
    if found.decided(need):
        return found
    for x in examples:
        if system.fits(x) and found.learn(x) and found.decided(need):
            return found
    exact = closed(system)
    if exact is not None:
        found.yes, found.no, found.how = exact, ~exact, "flow"
        return found
    rectangle_moves(system, found, _wanted(found, need), need)
    if found.decided(need):
        return found
    found.how = "relaxation"
    _relax(system, found, need)
    if found.decided(need):
        return found
    _near(system, found, need)
    if found.decided(need):
        return found
    found.how = "search"
    _program(system, found, need, effort)
    if not found.decided(need):
        found.how = "time ran out"
    return found


def _wanted(found: Possibilities, need: int | None) -> Flags:
    """Open pairs whose answer still matters."""
    if need is None:
        return found.open
    short: Flags = (found.yes.sum(axis=1) < need)[:, None]
    return found.open & short


def _relax(system: CountSystem, found: Possibilities, need: int | None) -> None:
    """Directions in which the known solution can move, in real numbers: a pair no direction raises is impossible.

    All coefficients are 0 or 1 and all right-hand sides 0, whatever the counts are.
    """
    wanted = _wanted(found, need)
    solved = direction(system, found.no, wanted, box=None)
    if solved is None:
        return
    move, raised = solved
    refuted = wanted.copy()
    refuted[wanted] = ~raised
    found.no |= refuted
    _take(system, found, move)


def _take(system: CountSystem, found: Possibilities, move: npt.NDArray[np.float64]) -> bool:
    """Learn from a direction that is whole, or becomes so when doubled, trebled and so on."""
    for scale in (1, 2, 3, 4, 6, 12):
        whole = np.rint(move * scale)
        if np.abs(whole - move * scale).max(initial=0.0) < 1e-6 and np.abs(whole).max(initial=0.0) < 2**31:
            x = system.known + whole.astype(np.int64)
            return system.fits(x) and found.learn(x)
    return False


def _near(system: CountSystem, found: Possibilities, need: int | None) -> None:
    """Solutions one step away from the known one: small moves, whole or nearly so, then a search where they are not."""
    for box in (1, 3):
        while not found.decided(need):
            solved = direction(system, found.no, _wanted(found, need), box=box)
            if solved is None or not solved[1].any():
                break
            if _take(system, found, solved[0]):
                continue
            used = np.abs(solved[0]) > 1e-7
            if (
                integer_search(system, found, _wanted(found, need), effort=1.0, box=box + 1, cells=used)
                is not SolverStatus.SOLVED
            ):
                break


def _program(system: CountSystem, found: Possibilities, need: int | None, effort: float) -> None:
    """Integer search: first near the known solution, then everywhere, then pair by pair with what effort is left."""
    left = effort
    box: int | None = 4
    while left > 0 and not found.decided(need):
        wanted = _wanted(found, need)
        spend = min(left, max(effort / 10, 1.0))
        ended = integer_search(system, found, wanted, effort=spend, box=box)
        left -= found.spent
        if ended is SolverStatus.SOLVED:
            continue
        if ended is SolverStatus.INFEASIBLE and box is None:
            found.no |= wanted
        elif box is not None:
            box = None
        else:
            break
    pairs = np.argwhere(_wanted(found, need))
    for number, (a, s) in enumerate(pairs):
        if left <= 0 or found.yes[a, s] or found.decided(need):
            continue
        one = np.zeros_like(found.yes)
        one[a, s] = True
        ended = integer_search(system, found, one, effort=left / (len(pairs) - number), box=None)
        left -= found.spent
        if ended is SolverStatus.INFEASIBLE:
            found.no |= one
