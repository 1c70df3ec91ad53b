"""Simulatable auditing: decisions that depend only on the queries and the earlier answers.

An auditor that looks at the true answer reveals by a refusal that the answer would expose somebody, which can be enough
for an adversary. A simulatable auditor does not look at it, so every analyst can repeat its decisions and learns
nothing from them.

With ``allow`` 0, a query is answered only if no answer that agrees with the earlier ones would break k-assign
anonymity: the true answer cannot break it either. A fresh set of people might all have the same value, so such a query
is always refused; lists and counts are then answered only where earlier answers exclude this. With ``allow`` above 0
the owner declares the public shares of the values; assignments are drawn with these shares, and the query is refused
if more than ``allow`` of the drawn answers would break the rule. The true answer may then be one of the few that do.

Reference: Kenthapadi, Mishra, Nissim (2005), Simulatable auditing, doi:10.1145/1065167.1065183
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.auditing.answer_forms import AnswerForm
from sfumato.auditing.atoms import AnswerConstraint, Atoms, Sense
from sfumato.auditing.k_assign import AssignAuditor
from sfumato.errors import BadParameter
from sfumato.extras import missing_extra

_DRAWS = 100
_MOST = 5000


class SimulatableAuditor:
    """Decides from public information only, without access to the secret values.

    ``shares`` is the public distribution of the values; it is required if ``allow`` is above 0. Values of people in no
    query are drawn from it exactly. Values of people in earlier queries are drawn among the assignments that agree with
    the answers by perturb-and-MAP (Papandreou and Yuille, 2011), which is approximate.
    """

    def __init__(
        self, *, people: int, values: int, k: int, allow: float, shares: Sequence[float] | None = None,
        effort: float = 5.0, probable: float | None = None,
    ) -> None:  # fmt: skip
        if not 0 <= allow < 1:
            raise BadParameter("the allowed share lies between 0 and 1.")
        if allow and shares is None:
            raise BadParameter("`allow` needs the public shares of the values.", fix="Declare `shares`, or allow 0.")
        prior = np.full(values, 1 / values) if shares is None else np.asarray(shares, float)
        if len(prior) != values or (prior < 0).any() or prior.sum() <= 0:
            raise BadParameter(f"shares are {values} numbers, none negative.")
        self.k, self.values, self.allow, self.effort, self.probable = k, values, allow, effort, probable
        self._prior = prior / prior.sum()
        self._atoms = Atoms(np.zeros(people, np.int32), values)
        self._history: list[tuple[Ints, AnswerConstraint]] = []

    def allows(self, people: npt.ArrayLike, form: AnswerForm) -> bool:
        """Whether the query may be answered, decided without its true answer."""
        rows = self._atoms.select(people)
        if not len(rows):
            return True
        return self._every_answer(rows, form) if self.allow == 0 else self._most_answers(rows, form)

    def _every_answer(self, rows: Ints, form: AnswerForm) -> bool:
        """Whether no answer that agrees with the earlier ones breaks the rule; False if there are too many to check."""
        if form.candidates(len(rows)) > _MOST:
            return False
        for answer in form.possible(len(rows)):
            world = self._world(rows, answer)
            if world is not None and not self._safe(world, rows, form):
                return False
        return True

    def _most_answers(self, rows: Ints, form: AnswerForm) -> bool:
        broken = 0
        decided: dict[bytes, bool] = {}  # what an answer leaves does not depend on the world that it was taken from
        for world in self._worlds(rows):
            answer = form.of(np.bincount(world[rows], minlength=self.values).astype(np.int64))
            key = answer.weights.tobytes() + answer.totals.tobytes()
            if key not in decided:
                decided[key] = self._safe(world, rows, form)
            broken += not decided[key]
            if broken > self.allow * _DRAWS:
                return False
        return True

    def learn(self, people: npt.ArrayLike, answer: AnswerConstraint) -> None:
        """Add an answer that was given to the public history."""
        rows = self._atoms.select(people)
        self._atoms.commit(self._atoms.split(rows))
        self._history.append((rows, answer))

    def _safe(self, world: Ints, rows: Ints, form: AnswerForm) -> bool:
        auditor = AssignAuditor(world, values=self.values, k=self.k, effort=self.effort, probable=self.probable,
                                shares=self._prior.tolist())  # fmt: skip
        auditor.recall(self._history)
        return auditor.judge(rows, told=form.of).safe

    def _worlds(self, rows: Ints) -> Iterator[Ints]:
        seed = hashlib.sha256(np.array([self.k, self.values, self._atoms.people], np.int64).tobytes())
        for people, answer in self._history:
            seed.update(people.tobytes() + answer.weights.tobytes() + answer.totals.tobytes())
        seed.update(b"?" + rows.tobytes())
        rng = np.random.default_rng(list(seed.digest()))
        likely = -np.log(np.maximum(self._prior, 1e-12))
        for _ in range(_DRAWS):
            cost = np.rint(100 * (likely - rng.gumbel(size=self._atoms.truth.shape))).astype(np.int64)
            solution = _solve(self._atoms, self._history, cost) if self._history else self._atoms.truth
            if solution is None:
                raise BadParameter("the earlier answers contradict each other; the history was tampered with.")
            yield self._people(solution, rng)

    def _world(self, rows: Ints, answer: AnswerConstraint) -> Ints | None:
        """An assignment with this answer; None if the earlier answers exclude it."""
        atoms = Atoms(np.zeros(self._atoms.people, np.int32), self.values)
        history = [*self._history, (rows, answer)]
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
        here = np.flatnonzero(inside)
        for weights, total, sense in answer.facts:
            amount = sum(int(weights[s]) * x[a][s] for a in here for s in np.flatnonzero(weights))
            if sense is Sense.EQUAL:
                model.add(amount == total)
            else:
                model.add(amount <= total if sense is Sense.AT_MOST else amount >= total)
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
