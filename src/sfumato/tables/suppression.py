"""Secondary cell suppression, proved by linear programming, for any table of sums (hierarchical and linked ones too).

Sensitive cells follow from the others if the others are published, so further cells are suppressed until the attacker's
interval of every sensitive cell is wide enough. The heuristic moves every sensitive cell by its protection level at the
smallest cost (Kelly, Golden, Assad 1992, doi:10.1002/net.3230220407). The exact method is Benders' decomposition:
a mixed-integer master problem and one cut per attack that succeeds (Fischetti, Salazar 2001,
doi:10.1287/mnsc.47.7.1008.9805). The result is checked by :func:`sfumato.tables.interval_audit.interval_attack`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.errors import NotApplicable
from sfumato.release import State, Verdict
from sfumato.tables.cells import TableCells
from sfumato.tables.interval_audit import CellInterval, PublishedTable, interval_attack
from sfumato.tables.sensitivity import ProtectionLevels, known_cells

__all__ = ["SuppressedTable", "suppress"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_TOLERANCE = 1e-6
_CLEANING = 4000
"""Linear programs that may be solved to publish cells again that the heuristic suppressed in vain."""


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
        return PublishedTable(keys=self.cells.keys, values=values, sums=self.cells.sums)

    @cached_property
    def intervals(self) -> tuple[CellInterval, ...]:
        """The attacker's interval of every suppressed cell."""
        return interval_attack(self.published, integers=not self.cells.magnitude)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the attacker's interval of every sensitive cell reaches as far as its protection level asks.

        Attackers are readers, and the single contributors of suppressed cells (singletons), who know one cell more.
        """
        failing = {self.cells.index[one.key] for one in self.intervals if self._too_close(one)}
        sensitive = {int(cell) for cell in np.flatnonzero(self.levels.sensitive & self.suppressed)}
        for known in known_cells(self.cells, self.levels):
            values = self.published.values.copy()
            values[list(known)] = self.cells.values[list(known)]
            seen = PublishedTable(keys=self.cells.keys, values=values, sums=self.cells.sums)
            targets = sensitive - failing - set(known)
            found = interval_attack(seen, integers=not self.cells.magnitude, targets=targets)
            failing |= {self.cells.index[one.key] for one in found if self._too_close(one)}
        return self._verdict(len(failing))

    def _too_close(self, one: CellInterval) -> bool:
        cell = self.cells.index[one.key]
        value, slack = self.cells.values[cell], _TOLERANCE * max(1.0, self.cells.values[cell])
        below, above = value - self.levels.lower[cell], value + self.levels.upper[cell]
        wide = one.low <= below + slack and one.high >= above - slack and not one.disclosed
        return bool(self.levels.sensitive[cell]) and not wide

    def _verdict(self, failing: int) -> Verdict:
        shown = int((self.levels.sensitive & ~self.suppressed).sum())
        return Verdict(
            model="cell-suppression",
            state=State.FAILS if failing + shown else State.HOLDS,
            worst=failing + shown,
            wanted=0,
            reason=f"{failing + shown} sensitive cells can be calculated too closely." if failing + shown else "",
        )

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
    # Readers often know which cells are empty, so these are suppressed only if nothing else helps.
    weights = np.where((cells.values == 0) & (costs is None), 10 * weights.max(initial=1.0), weights)
    program = _Movements(cells, levels, weights)
    chosen = program.cleaned(program.heuristic())
    bound = float(weights[levels.sensitive].sum())
    if method == "exact" or (method == "auto" and len(cells.keys) <= 2000):
        better, bound = program.exact(effort, bound)
        chosen = better if better is not None else chosen
    cost = float(weights[chosen].sum())
    return SuppressedTable(cells=cells, levels=levels, suppressed=chosen, cost=cost, bound=min(bound, cost))


class _Movements:
    """Tables that readers cannot tell apart: movements of suppressed cells that keep all sums."""

    def __init__(self, cells: TableCells, levels: ProtectionLevels, weights: Floats) -> None:
        self.cells, self.weights, self.sensitive = cells, weights, np.flatnonzero(levels.sensitive)
        self.insiders = known_cells(cells, levels)
        self.most = float(cells.values.sum() + levels.upper.sum() + 1)
        self.goals = [
            (int(cell), sign, float(level[cell]))
            for cell in self.sensitive
            for sign, level in ((1.0, levels.upper), (-1.0, levels.lower))
            if level[cell] > 0
        ]

    def heuristic(self) -> Mask:
        """Suppress, goal by goal, the cells that the cheapest movement needs."""
        chosen = np.zeros(len(self.cells.keys), dtype=np.bool_)
        chosen[self.sensitive] = True
        for cell, sign, level in sorted(self.goals, key=lambda goal: -goal[2]):
            chosen |= self._cheapest_movement(chosen, cell, sign * level)
        while found := [(cell, move, known) for cell, move, known, _ in self._attacks(chosen) if known]:
            for cell, move, known in found:
                chosen |= self._cheapest_movement(chosen, cell, move, known)
        return chosen

    def _attacks(self, chosen: Mask) -> Iterator[tuple[int, float, tuple[int, ...], Floats]]:
        """Goals that are missed: cell, movement, the cells that the attacker knows (none for readers), and a cut.

        A movement that leaves the cells of a contributor as they are deceives them too, so that few need a program.
        """
        for cell, sign, level in self.goals:
            reach, cut, moved = self._reach(chosen, cell, sign)
            if reach < level - _TOLERANCE:
                yield cell, sign * level, (), np.minimum(cut, level) / level
                continue
            for known in self.insiders:
                if cell not in known and moved[list(known)].any():
                    reach, cut, _ = self._reach(chosen, cell, sign, known)
                    if reach < level - _TOLERANCE:
                        yield cell, sign * level, known, np.minimum(cut, level) / level

    def _cheapest_movement(self, free: Mask, cell: int, amount: float, known: tuple[int, ...] = ()) -> Mask:
        from scipy.optimize import linprog
        from scipy.sparse import hstack

        count = len(free)
        price = np.where(free, 0.0, self.weights / np.maximum(self.cells.values, 1.0))
        down = np.column_stack([np.zeros(count), self.cells.values])
        up = np.column_stack([np.zeros(count), np.full(count, self.most)])
        up[list(known)] = down[list(known)] = 0
        # The cell itself moves by exactly this amount.
        up[cell], down[cell] = (amount, amount) if amount > 0 else (0, 0), (-amount, -amount) if amount < 0 else (0, 0)
        matrix = self.cells.matrix
        solved = linprog(
            np.concatenate([price, price]),
            A_eq=hstack([matrix, -matrix]),
            b_eq=np.zeros(matrix.shape[0]),
            bounds=np.vstack([up, down]),
            method="highs-ds",
        )
        if solved.x is None:
            raise NotApplicable(
                "A sensitive cell cannot be protected: the sums leave it no room, whatever is suppressed.",
                fix="Combine categories, or lower the protection level."
                + (" With `insiders: false` single contributors may learn about other cells." if known else ""),
            )
        moved: Mask = np.abs(solved.x[:count] - solved.x[count:]) > 1e-7
        return moved

    def _reach(self, chosen: Mask, cell: int, sign: float, known: tuple[int, ...] = ()) -> tuple[float, Floats, Mask]:
        """How far the cell can move, for each cell what its suppression adds to that at most (the dual cut), and which
        cells move. ``known`` cells are known to the attacker."""
        from scipy.optimize import linprog

        goal = np.zeros(len(chosen))
        goal[cell] = -sign
        high, low = np.where(chosen, self.most, 0.0), np.where(chosen, -self.cells.values, 0.0)
        high[list(known)] = low[list(known)] = 0.0
        matrix = self.cells.matrix
        solved = linprog(
            goal, A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=np.column_stack([low, high]), method="highs"
        )
        reduced = goal - matrix.T @ solved.eqlin.marginals
        cut = np.maximum(reduced, 0) * self.cells.values + np.maximum(-reduced, 0) * self.most
        cut[list(known)] = 0.0
        return float(-solved.fun), cut, np.abs(solved.x) > 1e-7

    def protected(self, chosen: Mask) -> bool:
        return next(self._attacks(chosen), None) is None

    def cleaned(self, chosen: Mask) -> Mask:
        """Without the suppressions that turn out to be unnecessary, the most expensive first."""
        extra = np.setdiff1d(np.flatnonzero(chosen), self.sensitive)
        if len(extra) * len(self.goals) > _CLEANING:
            return chosen
        for cell in extra[np.argsort(-self.weights[extra], kind="stable")]:
            without = chosen.copy()
            without[cell] = False
            if self.protected(without):
                chosen = without
        return chosen

    def exact(self, effort: int, bound: float) -> tuple[Mask | None, float]:
        """The cheapest protected set, or None if the effort is not enough; and a lower bound of its cost."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        count = len(self.cells.keys)
        low = np.zeros(count)
        low[self.sensitive] = 1
        cuts: list[Floats] = []
        for _ in range(effort):
            limits: Any = [LinearConstraint(np.array(cuts), lb=np.ones(len(cuts)))] if cuts else []
            solved = milp(
                self.weights, integrality=np.ones(count), bounds=Bounds(low, 1), constraints=limits,
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
            cuts += missed
        return None, bound
