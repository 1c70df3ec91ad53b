"""Secondary cell suppression, proved by linear programming, for any table of sums (hierarchical and linked ones too).

Sensitive cells follow from the others if the others are published, so further cells are suppressed until the attacker's
interval of every sensitive cell is wide enough. The heuristic moves every sensitive cell by its protection level at the
smallest cost (Kelly, Golden, Assad 1992, doi:10.1002/net.3230220407). The exact method is Benders' decomposition:
a mixed-integer master problem and one cut per attack that succeeds (Fischetti, Salazar 2001,
doi:10.1287/mnsc.47.7.1008.9805). The attackers are readers, and every contributor with all own contributions. Empty
cells are always published. The result is checked by :func:`sfumato.tables.interval_audit.missed_goals`; where counts in
three and more dimensions need whole numbers to be considered, its findings are repaired by integer programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats, Mask
from sfumato.errors import NotApplicable
from sfumato.release import State, Verdict
from sfumato.tables.cells import TableCells
from sfumato.tables.interval_audit import CellInterval, MissedGoal, PublishedTable, interval_attack, missed_goals
from sfumato.tables.sensitivity import ProtectionLevels

_TOLERANCE = 1e-6
_CLEANING = 2000
"""Linear programs that may be solved to publish cells again that the heuristic suppressed in vain."""
_ATTACKS = 200
"""Linear programs per round of effort that the exact search may solve, on average."""


@dataclass(frozen=True, kw_only=True)
class SuppressedTable:
    """A table with suppressed cells, and the proof that they are protected."""

    cells: TableCells
    levels: ProtectionLevels
    suppressed: Mask
    cost: float
    """Sum of the costs of all suppressed cells."""
    bound: float
    """No protected table costs less than this, as far as that was computed."""

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no cheaper set of cells protects the sensitive ones."""
        return self.cost <= self.bound + _TOLERANCE * max(1.0, self.bound)

    @property
    def published(self) -> PublishedTable:
        """What readers see: NaN stands for a suppressed cell."""
        values = np.where(self.suppressed, np.nan, self.cells.values)
        counts = not self.cells.magnitude
        return PublishedTable(
            keys=self.cells.keys, values=values, sums=self.cells.sums, integers=counts, least=float(counts)
        )

    @cached_property
    def intervals(self) -> tuple[CellInterval, ...]:
        """The interval of every suppressed cell for readers."""
        return interval_attack(self.published)

    @cached_property
    def missed(self) -> list[MissedGoal]:
        """The sensitive cells that readers or contributors calculate too closely."""
        goals = [goal for goal in self.levels.goals(self.cells) if self.suppressed[goal.cell]]
        return missed_goals(self.published, goals, self.levels.contributors)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the interval of every sensitive cell reaches as far as its protection level asks.

        Attackers are readers, and every contributor, who knows the own contributions to all cells.
        """
        shown = int((self.levels.sensitive & ~self.suppressed).sum())
        # Readers take it that zeros are published, so a suppressed empty cell would make the audit wrong.
        empty = int((self.suppressed & self.cells.empty).sum())
        failing = shown + empty + (0 if empty else len({one.cell for one in self.missed}))
        return Verdict(
            model="cell-suppression",
            state=State.FAILS if failing else State.HOLDS,
            worst=failing,
            wanted=0,
            reason=f"{failing} sensitive cells can be calculated too closely" if failing else "",
        )

    @property
    def statuses(self) -> tuple[str, ...]:
        """For the owner: whether a suppressed cell is sensitive (``primary``) or protects another (``secondary``)."""
        pairs = zip(self.suppressed, self.levels.sensitive, strict=True)
        return tuple(("primary" if sensitive else "secondary") if hidden else "" for hidden, sensitive in pairs)

    def frame(self) -> pl.DataFrame:
        """One line per cell as published; ``value`` is null where it is suppressed."""
        shown = [None if hidden else value for hidden, value in zip(self.suppressed, self.cells.values, strict=True)]
        values = pl.Series(shown, dtype=pl.Float64)
        return self.cells.frame(value=values if self.cells.magnitude else values.cast(pl.Int64))


def suppress(
    cells: TableCells,
    levels: ProtectionLevels,
    *,
    costs: Floats | None = None,
    method: Literal["auto", "exact", "heuristic"] = "auto",
    effort: int = 50,
) -> SuppressedTable:
    """Suppress the sensitive cells and, at a small cost, others that protect them.

    ``costs`` are those of suppressing each cell; by default its value, so that little of the total is lost. ``exact``
    looks for the cheapest set in at most ``effort`` rounds of ten times as many branches, and keeps the heuristic's if
    that is not enough; ``auto`` does so for up to 2,000 cells. The heuristic's set is protected too. The result does
    not depend on the speed of the machine.

    >>> from sfumato.tables.cells import tabulate
    >>> from sfumato.tables.sensitivity import SensitivityRules
    >>> ill = ["yes"] * 2 + ["no"] * 5 + ["yes"] * 4 + ["no"] * 5
    >>> people = pl.DataFrame({"town": ["a"] * 7 + ["b"] * 9, "ill": ill})
    >>> cells = tabulate(people, [["town", "ill"]])
    >>> done = suppress(cells, SensitivityRules(threshold=3).apply(cells))
    >>> int(done.suppressed.sum()), done.verdict.state.value, done.optimal
    (4, 'holds', True)
    """
    weights = np.maximum(cells.values, 1.0) if costs is None else np.asarray(costs, dtype=np.float64)
    program = _Movements(cells, levels, weights)
    chosen = program.cleaned(program.heuristic())
    bound = float(weights[levels.sensitive].sum())
    if method == "exact" or (method == "auto" and len(cells.keys) <= 2000):
        better, bound = program.exact(effort, bound)
        chosen = better if better is not None else chosen
    while True:
        cost = float(weights[chosen].sum())
        done = SuppressedTable(cells=cells, levels=levels, suppressed=chosen, cost=cost, bound=min(bound, cost))
        more = chosen.copy()
        for goal in done.missed:
            more |= program.cheapest_movement(more, goal.cell, goal.wanted - cells.values[goal.cell], goal.attacker)
        if (more == chosen).all():
            break
        chosen = more
    # A cell that readers can calculate hides nothing, so it is published.
    known = [cells.index[one.key] for one in done.intervals if one.disclosed]
    known = [cell for cell in known if not levels.sensitive[cell]]
    if not known:
        return done
    chosen = chosen.copy()
    chosen[known] = False
    cost = float(weights[chosen].sum())
    return SuppressedTable(cells=cells, levels=levels, suppressed=chosen, cost=cost, bound=min(bound, cost))


class _Movements:
    """Tables that attackers cannot tell apart: movements of suppressed cells that keep all sums."""

    def __init__(self, cells: TableCells, levels: ProtectionLevels, weights: Floats) -> None:
        self.cells, self.weights, self.sensitive = cells, weights, np.flatnonzero(levels.sensitive)
        # Tolerances of the solver are absolute, so that sums are scaled to a common size.
        self.scale = float(cells.values.max(initial=0.0)) / 1e6 or 1.0 if cells.magnitude else 1.0
        self.values = cells.values / self.scale
        self.most = float(self.values.sum() + levels.upper.sum() / self.scale + 1)
        self.floor = np.where(cells.empty | cells.magnitude, 0.0, 1.0)
        self.people = levels.contributors
        self.owner = np.repeat(np.arange(len(self.people)), [len(one.cells) for one in self.people])
        self.held = np.concatenate([np.zeros(0, dtype=np.int64), *(one.cells for one in self.people)])
        self.least = np.concatenate([np.zeros(0), *(one.low for one in self.people)]) / self.scale
        self.largest = np.concatenate([np.zeros(0), *(one.high for one in self.people)]) / self.scale
        self.solved = 0
        """Linear programs that were solved: the search is limited by work, not by time."""
        self._last: tuple[Mask, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], object]] | None = None
        self._possible: dict[tuple[int, tuple[int, ...]], float] = {}
        self.goals = []
        for cell in map(int, self.sensitive):
            up, down = float(levels.upper[cell]) / self.scale, float(levels.lower[cell]) / self.scale
            if down > 0 and not cells.magnitude:
                down = self._most_below(cell, down)
                if up <= 0 and down <= _TOLERANCE:
                    raise _unprotected()
            self.goals += [(cell, sign, level) for sign, level in ((1.0, up), (-1.0, down)) if level > _TOLERANCE]

    def _box(self, *attackers: int) -> tuple[Floats, Floats]:
        """How far every cell can move down and up without being noticed by any attacker, if it is suppressed."""
        down, up = self.values - self.floor, np.full(len(self.values), self.most)
        if attackers:
            own = np.isin(self.owner, attackers)
            held = self.held[own]
            np.minimum.at(down, held, self.values[held] - self.least[own])
            np.minimum.at(up, held, self.largest[own] - self.values[held])
        up[self.cells.empty] = 0.0
        return np.maximum(down, 0.0), np.maximum(up, 0.0)

    def _most_below(self, cell: int, level: float, *attackers: int) -> float:
        """The level, or how far the cell can move down if everything is suppressed, if that is less."""
        if (cell, attackers) not in self._possible:
            self._possible[cell, attackers] = self._reach(~self.cells.empty, cell, -1.0, level, *attackers)[0]
        return min(level, self._possible[cell, attackers])

    def heuristic(self) -> Mask:
        """Suppress, goal by goal, the cells that the cheapest movement needs."""
        chosen = np.zeros(len(self.cells.keys), dtype=np.bool_)
        chosen[self.sensitive] = True
        for cell, sign, level in sorted(self.goals, key=lambda goal: -goal[2]):
            chosen |= self._cheapest(chosen, cell, sign * level)
        while found := [(cell, move, attacker) for cell, move, attacker, _ in self._attacks(chosen)]:
            for cell, move, attacker in found:
                chosen |= self._cheapest(chosen, cell, move, attacker)
        return chosen

    def _attacks(self, chosen: Mask) -> Iterator[tuple[int, float, int | None, Floats]]:
        """Goals that are missed: cell, movement, the contributor who attacks (None for readers), and a cut.

        A movement that agrees with what a contributor knows deceives them too, so that few need a program.
        """
        for cell, sign, level in self.goals:
            reach, cut, move = self._reach(chosen, cell, sign, level)
            if reach < level - _TOLERANCE:
                yield cell, sign * level, None, np.minimum(cut, level) / level
                continue
            # Nobody is deceived about the largest contribution, which its contributor knows.
            own = level if sign > 0 else min(level, float(self.values[cell] - self.cells.largest[cell, 0] / self.scale))
            doubtful = self._not_deceived(move) if own > _TOLERANCE else set()
            doubtful = {one for one in doubtful if not self.people[one].knows(cell)}
            # A movement within what all of a group know deceives the whole group.
            groups = [sorted(doubtful, key=lambda one: (self.people[one].exact, one))]
            while groups:
                group = [one for one in groups.pop() if one in doubtful]
                if not group:
                    continue
                reach, cut, move = self._reach(chosen, cell, sign, own, *group)
                if reach >= own - _TOLERANCE:
                    doubtful &= self._not_deceived(move)
                elif len(group) > 1:
                    groups += [group[len(group) // 2 :], group[: len(group) // 2]]
                else:
                    need = self._most_below(cell, own, *group) if sign < 0 else own
                    if reach < need - _TOLERANCE:
                        yield cell, sign * need, group[0], np.minimum(cut, need) / need

    def _not_deceived(self, move: Floats) -> set[int]:
        moved = (self.values + move)[self.held]
        seen = (moved < self.least - _TOLERANCE) | (moved > self.largest + _TOLERANCE)
        return set(self.owner[seen].tolist())

    def cheapest_movement(self, free: Mask, cell: int, amount: float, attacker: int | None) -> Mask:
        """The cells of the cheapest movement by an amount in units of the table; whole numbers for counts."""
        return self._cheapest(free, cell, amount / self.scale, attacker, whole=not self.cells.magnitude)

    def _cheapest(
        self, free: Mask, cell: int, amount: float, attacker: int | None = None, *, whole: bool = False
    ) -> Mask:
        from scipy.optimize import linprog
        from scipy.sparse import hstack

        count = len(free)
        price = np.where(free, 0.0, self.weights / np.maximum(self.cells.values, 1.0))
        below, above = self._box(*(() if attacker is None else (attacker,)))
        down, up = np.column_stack([np.zeros(count), below]), np.column_stack([np.zeros(count), above])
        # The cell itself moves by exactly this amount.
        up[cell], down[cell] = (amount, amount) if amount > 0 else (0, 0), (-amount, -amount) if amount < 0 else (0, 0)
        matrix = self.cells.matrix
        solved = linprog(
            np.concatenate([price, price]),
            A_eq=hstack([matrix, -matrix]),
            b_eq=np.zeros(matrix.shape[0]),
            bounds=np.vstack([up, down]),
            method="highs" if whole else "highs-ds",
            integrality=1 if whole else None,
        )
        if solved.x is None:
            raise _unprotected(attacker)
        moved: Mask = np.abs(solved.x[:count] - solved.x[count:]) > 1e-7
        return moved

    def _reach(
        self, chosen: Mask, cell: int, sign: float, level: float, *attackers: int
    ) -> tuple[float, Floats, Floats]:
        """How far the cell can move, up to a level; for each cell what its suppression adds to that at most (the dual
        cut); and the movement."""
        from scipy.optimize import linprog

        goal = np.zeros(len(chosen))
        goal[cell] = -sign
        down, up = self._box(*attackers)
        # It moves no further than it must, so that the movement deceives many contributors.
        if sign > 0:
            up[cell] = min(up[cell], level)
        else:
            down[cell] = min(down[cell], level)
        free, lines, matrix = self._part(chosen)
        self.solved += 1
        solved = linprog(
            goal[free],
            A_eq=matrix,
            b_eq=np.zeros(len(lines)),
            bounds=np.column_stack([-down, up])[free],
            method="highs",
        )
        price, move = np.zeros(self.cells.matrix.shape[0]), np.zeros(len(chosen))
        price[lines], move[free] = solved.eqlin.marginals, solved.x
        reduced = goal - self.cells.matrix.T @ price
        cut = np.maximum(reduced, 0) * down + np.maximum(-reduced, 0) * up
        return float(-solved.fun), cut, move

    def _part(self, chosen: Mask) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Any]:
        """The suppressed cells, the sums that they are in, and the matrix of both; kept for the next program."""
        if self._last is None or (self._last[0] != chosen).any():
            free = np.flatnonzero(chosen)
            matrix = self.cells.matrix[:, free]
            lines = np.flatnonzero(np.diff(matrix.indptr))
            self._last = chosen.copy(), (free, lines, matrix[lines])
        return self._last[1]

    def protected(self, chosen: Mask) -> bool:
        return next(self._attacks(chosen), None) is None

    def cleaned(self, chosen: Mask) -> Mask:
        """Without the suppressions that turn out to be unnecessary, the most expensive first."""
        extra = np.setdiff1d(np.flatnonzero(chosen), self.sensitive)
        limit = self.solved + _CLEANING
        for cell in extra[np.argsort(-self.weights[extra], kind="stable")]:
            if self.solved > limit:
                break
            without = chosen.copy()
            without[cell] = False
            if self.protected(without):
                chosen = without
        return chosen

    def exact(self, effort: int, bound: float) -> tuple[Mask | None, float]:
        """The cheapest protected set, or None if the effort is not enough; and a lower bound of its cost."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        count = len(self.cells.keys)
        low, high = np.zeros(count), np.where(self.cells.empty, 0.0, 1.0)
        low[self.sensitive] = 1
        cuts: list[Floats] = []
        limit = self.solved + _ATTACKS * effort
        for _ in range(effort):
            limits: Any = [LinearConstraint(np.array(cuts), lb=np.ones(len(cuts)))] if cuts else []
            solved = milp(
                self.weights, integrality=np.ones(count), bounds=Bounds(low, high), constraints=limits,
                options={"node_limit": 10 * effort},
            )  # fmt: skip
            if solved.x is None:
                return None, bound
            if solved.status != 0:
                return None, max(bound, float(solved.mip_dual_bound))
            bound = max(bound, float(solved.fun))
            chosen: Mask = solved.x > 0.5
            missed = [cut for *_, cut in self._attacks(chosen)]
            if not missed:
                return chosen, bound
            if self.solved > limit:
                return None, bound
            cuts += missed
        return None, bound


def _unprotected(attacker: int | None = None) -> NotApplicable:
    return NotApplicable(
        "A sensitive cell cannot be protected: the sums leave it no room, whatever is suppressed.",
        fix="Combine categories, or lower the protection level."
        + (" With `insiders: false` contributors may learn about other cells." if attacker is not None else ""),
    )
