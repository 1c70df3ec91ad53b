"""Simulatable auditing: decisions that depend only on the queries and the earlier answers.

An auditor that looks at the true answer reveals by a refusal that the answer would expose somebody, which can be enough
for an adversary. A simulatable auditor does not look at it. It samples assignments that agree with the earlier answers,
checks for each whether its answer would break k-assign anonymity, and refuses if more than an allowed share of them
would. Its randomness is derived from the public history, so every analyst can repeat the decision and learns nothing
from it.

Decisions are a function of public information. The true answer may still break the rule if some assignments are allowed
to; it cannot with :meth:`SimulatableAuditor.every_answer`.

Reference: Kenthapadi, Mishra, Nissim (2005), Simulatable auditing, doi:10.1145/1065167.1065183
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter, missing_extra
from sfumato.query.auditing.atoms import AnswerConstraint, Atoms, Ints
from sfumato.query.auditing.k_assign import AssignAuditor

__all__ = ["SimulatableAuditor"]


class SimulatableAuditor:
    """Decides from public information only, without access to the secret values.

    ``shares`` is the prior distribution of values for people in no query. ``draws`` is the number of sampled
    assignments and ``allow`` the share of them that may break k-assign anonymity. Assignments are sampled as solutions
    of a random linear objective, which favours extreme ones and so causes more refusals.
    """

    def __init__(
        self, *, people: int, values: int, k: int, allow: float, draws: int = 40,
        shares: Sequence[float] | None = None, effort: float = 5.0,
    ) -> None:  # fmt: skip
        if not 0 <= allow < 1:
            raise BadParameter("the allowed share lies between 0 and 1.")
        prior = np.full(values, 1 / values) if shares is None else np.asarray(shares, float)
        if len(prior) != values or (prior < 0).any() or prior.sum() <= 0:
            raise BadParameter(f"shares are {values} numbers, none negative.")
        self.k, self.values, self.allow, self.draws, self.effort = k, values, allow, draws, effort
        self._prior = prior / prior.sum()
        self._atoms = Atoms(np.zeros(people, np.int32), values)
        self._history: list[tuple[Ints, AnswerConstraint]] = []

    def allows(self, people: npt.ArrayLike) -> bool:
        """Whether the query may be answered, decided without its true answer."""
        rows = self._atoms.select(people)
        broken = 0
        for world in self._worlds(rows):
            broken += not self._safe(world, rows)
            if broken > self.allow * self.draws:
                return False
        return True

    def every_answer(self, people: npt.ArrayLike, *, most: int = 5000) -> bool:
        """Whether no answer that agrees with the earlier ones breaks the rule; False if more than ``most`` exist."""
        rows = self._atoms.select(people)
        if comb(len(rows) + self.values - 1, self.values - 1) > most:
            return False
        for counts in _compositions(len(rows), self.values):
            world = self._world(rows, counts)
            if world is not None and not self._safe(world, rows):
                return False
        return True

    def learn(self, people: npt.ArrayLike, answer: AnswerConstraint) -> None:
        """Add an answer that was given to the public history."""
        rows = self._atoms.select(people)
        self._atoms.commit(self._atoms.split(rows))
        self._history.append((rows, answer))

    def _safe(self, world: Ints, rows: Ints) -> bool:
        auditor = AssignAuditor(world, values=self.values, k=self.k, effort=self.effort)
        for people, answer in self._history:
            auditor.partition.commit(auditor.partition.split(people))
            auditor.answers.append(answer)
        auditor._yes = np.zeros((auditor.partition.atoms, self.values), np.bool_)
        auditor._no = np.zeros_like(auditor._yes)
        return auditor.judge(rows).safe

    def _worlds(self, rows: Ints) -> Iterator[Ints]:
        seed = hashlib.sha256(np.array([self.k, self.values, self._atoms.people], np.int64).tobytes())
        for people, answer in [*self._history, (rows, None)]:
            seed.update(people.tobytes() + (answer.counts.tobytes() if answer is not None else b"?"))
        rng = np.random.default_rng(list(seed.digest()))
        for _ in range(self.draws):
            cost = rng.integers(-10, 11, self._atoms.truth.shape)
            solution = _solve(self._atoms, self._history, cost)
            if solution is None:
                raise BadParameter("the earlier answers contradict each other; the history was tampered with.")
            yield self._people(solution, rng)

    def _world(self, rows: Ints, counts: Ints) -> Ints | None:
        """An assignment with this answer; None if the earlier answers exclude it."""
        atoms = Atoms(np.zeros(self._atoms.people, np.int32), self.values)
        history = [*self._history, (rows, AnswerConstraint.plain(counts))]
        for people, _ in history:
            atoms.commit(atoms.split(people))
        solution = _solve(atoms, history, None)
        return None if solution is None else self._people(solution, np.random.default_rng(0), atoms)

    def _people(self, solution: Ints, rng: np.random.Generator, atoms: Atoms | None = None) -> Ints:
        partition = atoms or self._atoms
        world = np.empty(partition.people, np.int64)
        for atom in range(partition.atoms):
            here = partition.persons(atom)
            if atom == 0:
                world[here] = rng.choice(self.values, len(here), p=self._prior)
            else:
                world[here] = rng.permutation(np.repeat(np.arange(self.values), solution[atom]))
        return world


def _compositions(total: int, parts: int) -> Iterator[Ints]:
    for bars in combinations(range(total + parts - 1), parts - 1):
        edges = np.array([-1, *bars, total + parts - 1])
        yield np.diff(edges) - 1


def _solve(atoms: Atoms, history: Sequence[tuple[Ints, AnswerConstraint]], cost: Ints | None) -> Ints | None:
    """Count of each value in each atom that agrees with the history and minimizes ``cost``."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing_extra("audit", "OR-tools", needed_by="Simulatable auditing") from None
    model = cp_model.CpModel()
    sizes = atoms.truth.sum(axis=1)
    x: list[list[Any]] = [[model.new_int_var(0, int(size), "") for _ in range(atoms.values)] for size in sizes]
    for size, row in zip(sizes, x, strict=True):
        model.add(sum(row) == int(size))
    for inside, (_, answer) in zip(atoms.member, history, strict=True):
        for group, count in enumerate(answer.counts):
            cells = [x[a][s] for a in np.flatnonzero(inside) for s in np.flatnonzero(answer.groups == group)]
            if cells:
                model.add(sum(cells) <= int(count) if answer.slack else sum(cells) == int(count))
            elif count and not answer.slack:
                return None
    if cost is not None:
        model.minimize(
            sum(int(c) * cell for line, row in zip(cost, x, strict=True) for c, cell in zip(line, row, strict=True))
        )
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 5.0
    state = solver.solve(model)
    if state not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return np.array([[solver.value(cell) for cell in row] for row in x], np.int64)
