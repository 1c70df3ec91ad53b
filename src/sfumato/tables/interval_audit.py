"""The interval attack on suppressed tables: what an attacker can calculate about each suppressed cell.

The attacker knows the published cells, all sums between cells, and what a blank can stand for. Zeros of counts are
published, so that a blank is a whole number of at least 1; blanks of sums are not negative. A contributor
(:class:`Knowledge`) also knows the own contribution to every cell, the value of cells without others, and that a count
with others is larger than the own contribution. Linear programs (HiGHS) give the smallest and the largest value that is
consistent with that, integer programs where a solution is not whole.

The audit (:func:`missed_goals`) proves protection by witnesses: for every sensitive cell and attacker, tables that the
attacker cannot tell from the true one and in which the cell is as far away as is asked for. It uses published figures
only and shares no code with the suppressor. That at least one blank is below a public threshold does not narrow an
interval: where a cell has its largest value, another blank has its smallest one, 1 (a vertex of the polyhedron).
Not covered is what a reader infers from the choice of the suppressed cells by a known program.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.arrays import Floats, Ints
from sfumato.errors import BadParameter
from sfumato.tables.cells import VALUE, CellKey

_TOLERANCE = 1e-6
_LARGEST = 1e15
_SCALE = 1e6
"""Sums are scaled so that the largest known one has this size: tolerances of the solver are absolute."""
_NODES = 2000
"""Branches of an integer program. A cell whose program needs more counts as not protected."""


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    """A table as published: values, NaN where a cell is suppressed, and the sums that every reader knows."""

    keys: tuple[CellKey, ...]
    values: Floats
    sums: tuple[tuple[int, tuple[int, ...]], ...]
    integers: bool = False
    """Whether values are whole numbers, as counts are."""
    least: float = 0.0
    """The smallest value that a suppressed cell can stand for: 1 for counts whose zeros are published."""


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What a contributor knows about cells beyond what is published: bounds of their values."""

    cells: Ints
    low: Floats
    """The least that each cell can be: the own contribution, one more in a count with others, or the value of the cell
    if nobody else contributes."""
    high: Floats
    """The value of the cell if nobody else contributes; infinite otherwise."""

    @classmethod
    def joined(cls, people: Sequence[Knowledge]) -> Knowledge:
        """What contributors know together. Whoever is deceived about that is deceived about what each knows."""
        cells, place = np.unique(np.concatenate([one.cells for one in people]), return_inverse=True)
        low, high = np.zeros(len(cells)), np.full(len(cells), np.inf)
        np.maximum.at(low, place, np.concatenate([one.low for one in people]))
        np.minimum.at(high, place, np.concatenate([one.high for one in people]))
        return cls(cells=cells, low=low, high=high)

    @cached_property
    def exact(self) -> bool:
        """Whether the value of any cell is known."""
        return bool((self.low == self.high).any())

    def knows(self, cell: int) -> bool:
        """Whether the value of a cell is known."""
        return bool((self.low == self.high)[self.cells == cell].any())


@dataclass(frozen=True, kw_only=True)
class Goal:
    """How far the interval of a sensitive cell must reach."""

    cell: int
    value: float
    low: float
    high: float
    low_for_contributors: float
    """The same as ``low``, but not below the largest contribution, which its contributor knows in any case."""


@dataclass(frozen=True, kw_only=True)
class MissedGoal:
    """A cell that an attacker calculates too closely."""

    cell: int
    sign: int
    """1 if the interval does not reach far enough above the cell, -1 below."""
    wanted: float
    attacker: int | None
    """The number of the contributor; None for readers."""


@dataclass(frozen=True, kw_only=True)
class CellInterval:
    """The values of a suppressed cell that are consistent with everything that an attacker knows."""

    key: CellKey
    low: float
    high: float

    @property
    def disclosed(self) -> bool:
        """Whether the value follows from the published cells."""
        return self.high < np.inf and self.high - self.low <= _TOLERANCE * max(1.0, abs(self.high))


class _Unknowns:
    """The suppressed cells of a table as unknowns of linear equations."""

    def __init__(self, table: PublishedTable) -> None:
        from scipy.sparse import coo_array

        self.table = table
        self.cells = np.flatnonzero(np.isnan(table.values))
        self.place = {int(cell): number for number, cell in enumerate(self.cells)}
        self.places = np.full(len(table.values), -1)
        self.places[self.cells] = np.arange(len(self.cells))
        lines: list[int] = []
        columns: list[int] = []
        signs: list[float] = []
        right: list[float] = []
        for total, parts in table.sums:
            unknown = [(self.place[cell], 1.0) for cell in parts if cell in self.place]
            unknown += [(self.place[total], -1.0)] if total in self.place else []
            if not unknown:
                continue
            for column, sign in unknown:
                lines.append(len(right))
                columns.append(column)
                signs.append(sign)
            known = sum(table.values[cell] for cell in parts if cell not in self.place)
            right.append((0.0 if total in self.place else table.values[total]) - known)
        shown = table.values[~np.isnan(table.values)]
        largest = float(np.abs(shown).max(initial=0.0))
        self.scale = largest / _SCALE if largest > 0 and not table.integers else 1.0
        self.matrix = coo_array((signs, (lines, columns)), shape=(len(right), len(self.cells))).tocsr()
        self.right = np.array(right)

    def bounds(self, knowledge: Knowledge | None = None) -> tuple[Floats, Floats]:
        """The smallest and the largest value of every unknown, as far as the attacker knows."""
        low, high = np.full(len(self.cells), self.table.least), np.full(len(self.cells), np.inf)
        if knowledge is not None:
            places = self.places[knowledge.cells]
            hidden = places >= 0
            low[places[hidden]] = np.maximum(self.table.least, knowledge.low[hidden])
            high[places[hidden]] = knowledge.high[hidden]
        return low, high

    def extreme(self, number: int, sign: int, low: Floats, high: Floats) -> Floats | float | None:
        """A consistent table in which an unknown is as large (sign 1) or as small (-1) as possible.

        The number inf if it has no limit, None if no consistent table is found.
        """
        from scipy.optimize import linprog

        goal = np.zeros(len(self.cells))
        goal[number] = -float(sign)
        box = np.column_stack([low, high]) / self.scale
        right = self.right / self.scale
        equations = {"A_eq": self.matrix, "b_eq": right} if len(right) else {}
        solved = linprog(goal, **equations, bounds=box, method="highs")
        if solved.status == 3:
            return np.inf
        if solved.x is None:
            return None
        found: Floats = solved.x * self.scale
        if not self.table.integers:
            return found
        whole = np.rint(found)
        # Verified in whole numbers: the equations and bounds hold exactly.
        if np.abs(found - whole).max(initial=0.0) > _TOLERANCE or not self._consistent(whole, low, high):
            return self._whole(goal, low, high)
        return whole

    def _whole(self, goal: Floats, low: Floats, high: Floats) -> Floats | None:
        from scipy.optimize import Bounds, LinearConstraint, milp

        solved = milp(
            goal, integrality=np.ones(len(goal)), bounds=Bounds(np.ceil(low), np.floor(high)),
            constraints=LinearConstraint(self.matrix, self.right, self.right), options={"node_limit": _NODES},
        )  # fmt: skip
        if solved.x is None:
            return None
        found = np.rint(solved.x)
        return found if solved.status == 0 and self._consistent(found, low, high) else None

    def _consistent(self, found: Floats, low: Floats, high: Floats) -> bool:
        exact = not len(self.right) or bool((self.matrix @ found == self.right).all())
        return exact and bool(((found >= low) & (found <= high)).all())

    def witness(self, goal_cell: int, sign: int, wanted: float, knowledge: Knowledge | None) -> Floats | None:
        """A consistent table in which a cell has at least (sign 1) or at most (-1) a value; None if there is none."""
        number = self.place[goal_cell]
        low, high = self.bounds(knowledge)
        if self.table.integers:
            wanted = float(np.ceil(wanted - _TOLERANCE) if sign > 0 else np.floor(wanted + _TOLERANCE))
        slack = 0.0 if self.table.integers else _TOLERANCE * max(self.scale, abs(wanted))
        # The cell moves as far as it must and no further, so that one table deceives many contributors.
        if sign > 0:
            high[number] = min(high[number], max(wanted, low[number]))
        else:
            low[number] = max(low[number], min(wanted, high[number]))
        found = self.extreme(number, sign, low, high)
        if found is None or isinstance(found, float) or sign * (found[number] - wanted) < -slack:
            return None
        return found


class _Crowd:
    """What all contributors know about the unknowns, in one list."""

    def __init__(self, unknowns: _Unknowns, people: Sequence[Knowledge]) -> None:
        nobody = [np.zeros(0)]
        owner = np.concatenate([*nobody, *(np.full(len(one.cells), n) for n, one in enumerate(people))]).astype(int)
        cells = np.concatenate([*nobody, *(one.cells for one in people)]).astype(int)
        hidden = unknowns.places[cells] >= 0
        self.owner, self.places = owner[hidden], unknowns.places[cells][hidden]
        self.low = np.concatenate([*nobody, *(one.low for one in people)])[hidden]
        self.high = np.concatenate([*nobody, *(one.high for one in people)])[hidden]
        self.slack = 0.0 if unknowns.table.integers else _TOLERANCE * unknowns.scale

    def not_deceived(self, found: Floats) -> set[int]:
        """The contributors who can tell a table from the true one."""
        here = found[self.places]
        return set(self.owner[(here < self.low - self.slack) | (here > self.high + self.slack)].tolist())


def interval_attack(
    table: PublishedTable,
    *,
    knowledge: Knowledge | None = None,
    known_within: float | None = None,
    truth: Floats | None = None,
    targets: Collection[int] | None = None,
) -> tuple[CellInterval, ...]:
    """The interval of every suppressed cell.

    ``targets`` limits the attack to some cells. ``knowledge`` is that of a contributor. ``known_within`` is prior
    knowledge of another kind: the attacker knows every suppressed cell up to this share of its value; the evaluation
    then needs the ``truth``.
    """
    if known_within is not None and truth is None:
        raise BadParameter("Prior knowledge of values needs the true values.")
    unknowns = _Unknowns(table)
    low, high = unknowns.bounds(knowledge)
    if known_within is not None and truth is not None:
        own = truth[unknowns.cells]
        low, high = np.maximum(low, (1 - known_within) * own), (1 + known_within) * own
    found = []
    for number, cell in enumerate(unknowns.cells):
        if targets is not None and int(cell) not in targets:
            continue
        ends = []
        for sign in (-1, 1):
            best = unknowns.extreme(number, sign, low, high)
            if best is None:
                raise BadParameter(
                    "No table agrees with the published cells.",
                    fix="Check the table and its sums; if zeros are suppressed too, say so (`zeros_hidden: true`).",
                )
            ends.append(best if isinstance(best, float) else float(best[number]))
        found.append(CellInterval(key=table.keys[cell], low=ends[0] + 0.0, high=ends[1] + 0.0))  # not -0
    return tuple(found)


def missed_goals(table: PublishedTable, goals: Sequence[Goal], contributors: Sequence[Knowledge]) -> list[MissedGoal]:
    """Audit: the goals that the table misses, for readers and for every contributor.

    A goal below a cell is not asked for as far as no suppression can meet it: zeros are published, so that a total is
    at least the number of its cells that are not empty. Goals above a cell are never lowered.
    """
    unknowns = _Unknowns(table)
    bare = _Unknowns(replace(table, values=np.where(table.values == 0, 0.0, np.nan)))
    crowd = _Crowd(unknowns, contributors)
    missed = []
    for goal in goals:
        demands = 0
        for sign, wanted in ((1, goal.high), (-1, goal.low)):
            if sign * (wanted - goal.value) <= 0:
                continue
            first = _deceived(unknowns, bare, goal, sign, wanted, None)
            if first is None:
                continue
            demands += 1
            if isinstance(first, float):
                missed.append(MissedGoal(cell=goal.cell, sign=sign, wanted=first, attacker=None))
                continue
            own = wanted if sign > 0 else max(wanted, goal.low_for_contributors)
            doubtful = {one for one in crowd.not_deceived(first) if not contributors[one].knows(goal.cell)}
            # A table that deceives somebody who knows what all of a group know deceives the whole group.
            groups = [sorted(doubtful, key=lambda one: (contributors[one].exact, one))]
            while groups:
                group = [one for one in groups.pop() if one in doubtful]
                if len(group) > 1:
                    together = unknowns.witness(
                        goal.cell, sign, own, Knowledge.joined([contributors[n] for n in group])
                    )
                    if together is not None:
                        doubtful &= crowd.not_deceived(together)
                    else:
                        groups += [group[len(group) // 2 :], group[: len(group) // 2]]
                    continue
                for number in group:
                    found = _deceived(unknowns, bare, goal, sign, own, contributors[number])
                    if isinstance(found, float):
                        missed.append(MissedGoal(cell=goal.cell, sign=sign, wanted=found, attacker=number))
                    elif found is not None and sign * (found[unknowns.place[goal.cell]] - own) >= 0:
                        doubtful &= crowd.not_deceived(found)
        if not demands and goal.high > goal.low:
            missed.append(MissedGoal(cell=goal.cell, sign=1, wanted=goal.high, attacker=None))
    return missed


def _deceived(
    unknowns: _Unknowns, bare: _Unknowns, goal: Goal, sign: int, wanted: float, person: Knowledge | None
) -> Floats | float | None:
    """A witness; the value that is missed; or None if no suppression moves the cell that way."""
    found = unknowns.witness(goal.cell, sign, wanted, person)
    if found is not None or sign > 0:
        return wanted if found is None else found
    number = bare.place[goal.cell]
    least = bare.extreme(number, -1, *bare.bounds(person))
    if not isinstance(least, np.ndarray):
        return wanted
    wanted = max(wanted, float(least[number]))
    if goal.value - wanted <= _TOLERANCE * max(1.0, goal.value):
        return None
    found = unknowns.witness(goal.cell, sign, wanted, person)
    return wanted if found is None else found


def published_table(frame: pl.DataFrame, *, counts: bool, zeros_hidden: bool = False) -> PublishedTable:
    """A published table in a file: a column per dimension (null for the total) and ``value`` (null if suppressed).

    A cell is the sum of the cells that add one more column to it; the file is taken to list all of them. A blank in a
    table of ``counts`` is at least 1, unless ``zeros_hidden`` says that empty cells are suppressed too.

    >>> table = published_table(pl.DataFrame({"sex": [None, "F", "M"], "value": [7, None, 3]}), counts=True)
    >>> table.sums, [(one.low, one.high) for one in interval_attack(table)]
    (((0, (1, 2)),), [(4.0, 4.0)])
    """
    if VALUE not in frame.columns:
        raise BadParameter(f"The file has no column `{VALUE}`.", fix="A published table has a column of values.")
    names = [name for name in frame.columns if name != VALUE]
    text = frame.select(pl.col(name).cast(pl.String) for name in names)
    keys = [tuple(sorted((n, v) for n, v in zip(names, row, strict=True) if v is not None)) for row in text.iter_rows()]
    index = {key: number for number, key in enumerate(keys)}
    if len(index) != len(keys):
        raise BadParameter("The file lists a cell twice.", fix="One line per cell; leave a dimension empty for totals.")
    parts: dict[tuple[int, str], list[int]] = {}
    for number, key in enumerate(keys):
        for name, _ in key:
            total = index.get(tuple(pair for pair in key if pair[0] != name))
            if total is not None:
                parts.setdefault((total, name), []).append(number)
    values = frame[VALUE].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy().astype(np.float64)
    if np.isinf(values).any() or (np.abs(values) > _LARGEST).any():
        raise BadParameter(
            f"Column `{VALUE}` must hold finite numbers below 1e15.", fix="Use a larger unit of amounts."
        )
    if counts and (values[~np.isnan(values)] % 1 != 0).any():
        raise BadParameter(
            "The published values are not whole numbers.", fix="Write `values: sums` for tables of sums."
        )
    sums = tuple((total, tuple(cells)) for (total, _), cells in parts.items())
    least = 1.0 if counts and not zeros_hidden else 0.0
    return PublishedTable(keys=tuple(keys), values=values, sums=sums, integers=counts, least=least)


def combine(tables: Sequence[PublishedTable]) -> PublishedTable:
    """Several published tables as one: a cell that one of them shows is known.

    This is the differencing attack between tables that were suppressed one by one: cells with the same values in common
    are the same cell, and the sums of all tables hold at once.
    """
    keys: dict[CellKey, int] = {}
    values: dict[int, float] = {}
    sums: dict[tuple[int, tuple[int, ...]], None] = {}
    for table in tables:
        own = [keys.setdefault(key, len(keys)) for key in table.keys]
        for cell, value in zip(own, table.values, strict=True):
            before = values.get(cell, np.nan)
            if not np.isnan(value) and not np.isnan(before) and not np.isclose(before, value):
                raise BadParameter("The tables contradict each other.", fix="They must be about the same people.")
            values[cell] = before if np.isnan(value) else float(value)
        for total, parts in table.sums:
            sums[own[total], tuple(own[cell] for cell in parts)] = None
    ordered = np.array([values[number] for number in range(len(keys))])
    return PublishedTable(
        keys=tuple(keys), values=ordered, sums=tuple(sums), integers=all(table.integers for table in tables),
        least=min(table.least for table in tables),
    )  # fmt: skip
