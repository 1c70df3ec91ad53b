"""k-assign anonymity: after all answers together, every person has at least k possible secret values.

The adversary knows who is in each query's result and sees the multiset of secret values returned. A value is possible
for a person if one assignment of values to people agrees with all answers at once. Checking each answer alone would
allow combinations that no assignment has. People in no query are not constrained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import factorial, log, prod

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.auditing.atoms import AnswerConstraint, Atoms, AtomSplit, Flags
from sfumato.auditing.linear_system import CountSystem, connected
from sfumato.auditing.posterior import assignments, posterior
from sfumato.auditing.search import Possibilities, search
from sfumato.auditing.worlds import Worlds
from sfumato.errors import BadParameter

_COUNTED_PEOPLE, _COUNTED_ANSWERS, _COUNTING = 2_000, 50, 0.2
"""Possible worlds are counted exactly up to this size and with this effort; beyond it, a bound is given."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The effect of one more answer. It depends on the true answer, so only the owner may see it."""

    safe: bool
    certain: bool
    """False if the effort ran out; the query is then not safe."""
    worst: int
    """The smallest number of values that a person provably keeps."""
    probability: float | None
    """The largest probability of a value of a person in these queries, where the rule limits it and k values are
    kept."""
    exposed: Ints
    """Rows of people who would keep fewer than k values (all of them with ``full``). If the effort ran out, rows of
    people for whom k values could not be proved."""
    how: str
    split: AtomSplit = field(repr=False)
    answer: AnswerConstraint = field(repr=False)
    rows: Flags = field(repr=False)
    atoms: Flags = field(repr=False)
    possible: Possibilities = field(repr=False)


class AssignAuditor:
    """Decides exactly whether the true answer to each query may be given.

    ``secrets`` are codes 0..values-1, one per person. ``effort`` bounds the search of one decision in the solver's
    deterministic seconds; if it runs out, the query is refused.

    With ``probable``, no value of a person may have a larger probability given all answers; ``shares`` are the public
    shares of the values. ``known`` are rows of people whose value the adversary knows; the others are protected.
    """

    def __init__(
        self, secrets: npt.ArrayLike, *, values: int, k: int, effort: float = 30.0, probable: float | None = None,
        shares: Sequence[float] = (), known: Ints | None = None,
    ) -> None:  # fmt: skip
        if k < 2:
            raise BadParameter("k is at least 2: with one possible value everything is known.")
        if values < k:
            raise BadParameter(f"there are only {values} secret values, so nobody can keep {k}.")
        self.partition = Atoms(secrets, values)
        self.k = k
        self.effort = effort
        self.probable, self.shares = probable, shares
        if probable is not None and len(shares) != values:
            raise BadParameter(f"`probable` needs {values} shares, one for each value.")
        self._known: Flags = np.zeros(self.partition.people, np.bool_)
        if known is not None:
            self._known[known] = True
        self.answers: list[AnswerConstraint] = []
        self._yes: Flags = np.zeros((1, values), np.bool_)
        self._no: Flags = np.zeros((1, values), np.bool_)
        self._witnesses: list[Ints] = []

    def recall(self, history: Sequence[tuple[Ints, AnswerConstraint]]) -> None:
        """Start from answers given earlier, which the secret values must agree with."""
        for people, answer in history:
            people, answer = self.unknown(people, answer)
            self.partition.commit(self.partition.split(people))
            self.answers.append(answer)
        self._yes = np.zeros((self.partition.atoms, self.partition.values), np.bool_)
        self._no = np.zeros_like(self._yes)

    def unknown(self, rows: Ints, answer: AnswerConstraint) -> tuple[Ints, AnswerConstraint]:
        """An answer as the adversary uses it: about the people whose values they do not know."""
        inside = self._known[rows]
        if not inside.any():
            return rows, answer
        return rows[~inside], answer.without(self.partition.count(rows[inside]))

    def judge(
        self,
        people: npt.ArrayLike,
        *,
        fakes: Sequence[int] = (),
        told: Callable[[Ints], AnswerConstraint] | None = None,
        full: bool = False,
    ) -> Assessment:
        """Assess an answer about these people; with ``full``, decide every pair instead of only those that k needs.

        The answer is a list of values unless ``told`` makes another one of the counts of values. ``fakes`` are
        counterfeit values added to the list.
        """
        if fakes and told is not None:
            raise BadParameter("counterfeits are added to a list of values only.")
        selected = self.partition.select(people)
        true = self.partition.count(selected)
        answer = AnswerConstraint.plain(true, fakes) if told is None else told(true)
        rows, answer = self.unknown(selected, answer)
        split = self.partition.split(rows)
        last = np.zeros(len(split.member), np.bool_)
        last[-1] = True
        near, atoms = connected(split.member, last)
        system = CountSystem(
            member=split.member[near][:, atoms],
            answers=[a for a, chosen in zip([*self.answers, answer], near, strict=True) if chosen],
            sizes=split.truth[atoms].sum(axis=1),
            known=split.truth[atoms],
        )
        extended = (_extend(old, split, answer, atoms) for old in self._witnesses)
        examples = (x for x in extended if x is not None)
        possible = search(
            system, need=None if full else self.k, effort=self.effort,
            impossible=self._no[split.parent[atoms]], examples=examples,
        )  # fmt: skip
        sure = possible.yes.sum(axis=1)
        doomed = (~possible.no).sum(axis=1) < self.k
        few = doomed if doomed.any() else sure < self.k
        safe = not few.any()
        certain = safe or bool(doomed.any())
        worst = int(sure.min()) if len(sure) else self.partition.values
        probability = None
        if safe and self.probable is not None:
            likely = posterior(system, self.shares, effort=self.effort)
            certain = likely is not None
            few = np.ones(len(sure), np.bool_) if likely is None else likely.max(axis=1) > self.probable + 1e-9
            safe = not few.any()
            probability = None if likely is None else float(likely.max(initial=0.0))
        exposed = self.partition.persons_after(split, np.flatnonzero(atoms)[few])
        return Assessment(
            safe=safe, certain=certain, worst=worst, probability=probability, exposed=exposed, how=possible.how,
            split=split, answer=answer, rows=near, atoms=atoms, possible=possible,
        )  # fmt: skip

    def accept(self, assessment: Assessment) -> None:
        """Record the assessed answer as given. The assessment must belong to the current state."""
        split, atoms = assessment.split, assessment.atoms
        if len(split.member) != len(self.answers) + 1:
            raise BadParameter("this assessment is out of date; judge again.")
        yes, no = self._yes[split.parent].copy(), self._no[split.parent].copy()
        yes[atoms], no[atoms] = assessment.possible.yes, assessment.possible.no
        self._witnesses = _full_solutions(assessment, split)
        self.partition.commit(split)
        self.answers.append(assessment.answer)
        self._yes, self._no = yes, no

    def probabilities(self) -> npt.NDArray[np.float64] | None:
        """People by values: the probability of each value given all answers; None if the effort does not suffice."""
        table = np.tile(np.asarray(self.shares, float) / sum(self.shares), (self.partition.atoms, 1))
        for system, atoms in self._components():
            likely = posterior(system, self.shares, effort=self.effort)
            if likely is None:
                return None
            table[atoms] = likely
        return table[self.partition._atom]

    def possible(self) -> Flags:
        """People by values: the exact possible values of each person. People in no query may have any value."""
        table = np.ones((self.partition.atoms, self.partition.values), np.bool_)
        for system, atoms in self._components():
            table[atoms] = search(system, need=None, effort=self.effort, impossible=self._no[atoms]).yes
        return table[self.partition._atom]

    def worlds(self) -> Worlds:
        """How many assignments of values to the people asked about agree with all answers."""
        asked = self.partition.truth[self.partition.member.any(axis=0)]
        if asked.sum() > _COUNTED_PEOPLE:
            from scipy.special import gammaln

            logs = gammaln(asked.sum(axis=1) + 1).sum() - gammaln(asked + 1).sum()
            return Worlds(log10=float(logs) / log(10), exact=False)
        exchanges = prod(map(_exchanges, asked.tolist()))
        if len(self.answers) > _COUNTED_ANSWERS:
            return Worlds.of(exchanges, exact=False)
        counted = [self._counted(system) for system, _ in self._components()]
        exact = all(number is not None for number in counted)
        return Worlds.of(prod(number for number in counted if number) if exact else exchanges, exact=exact)

    def _counted(self, system: CountSystem) -> int | None:
        if len(system.sizes) == 1 and any(answer.fine and not answer.slack for answer in system.answers):
            return _exchanges(system.known[0].tolist())  # the list says how many have each value
        return assignments(system, effort=min(self.effort, _COUNTING))

    def _components(self) -> Iterator[tuple[CountSystem, Flags]]:
        """The connected sets of answered queries, each with its atoms."""
        pending = np.ones(len(self.answers), np.bool_)
        while pending.any():
            start = np.zeros_like(pending)
            start[np.argmax(pending)] = True
            near, atoms = connected(self.partition.member, start)
            near |= start
            pending &= ~near
            if atoms.any():
                yield (
                    CountSystem(
                        member=self.partition.member[near][:, atoms],
                        answers=[a for a, chosen in zip(self.answers, near, strict=True) if chosen],
                        sizes=self.partition.truth[atoms].sum(axis=1),
                        known=self.partition.truth[atoms],
                    ),
                    atoms,
                )


def _exchanges(counts: Sequence[int]) -> int:
    """In how many ways so many people can have each value."""
    return factorial(sum(counts)) // prod(map(factorial, counts))


def _extend(old: Ints, split: AtomSplit, answer: AnswerConstraint, atoms: Flags) -> Ints | None:
    """Extend an earlier solution to the new query by a maximum flow; None if that is impossible.

    Each atom's counts are divided between inside and outside of the query, so that the inside parts have the right
    sizes and together give the new answer. This is a transportation problem.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    wide = old.shape[1]
    before = np.zeros((split.parent.max() + 1, wide), np.int64)
    before[: len(old)] = old
    x = before[split.parent]
    inside = split.member[-1]
    pieces = np.flatnonzero(inside)
    need = split.truth[pieces].sum(axis=1)
    supply = x[pieces]
    if answer.slack or not answer.fine or need.max(initial=0) >= 2**31:
        return None
    count = len(pieces)
    source, sink = count + wide, count + wide + 1
    a, s = np.nonzero(supply)
    tail = np.concatenate([np.full(count, source), a, count + np.arange(wide)])
    head = np.concatenate([np.arange(count), count + s, np.full(wide, sink)])
    capacity = np.concatenate([need, supply[a, s], answer.totals]).astype(np.int32)
    graph = coo_array((capacity, (tail, head)), shape=(sink + 1, sink + 1)).tocsr()
    done = maximum_flow(graph, source, sink)
    if done.flow_value != int(need.sum()):
        return None
    flow = done.flow.toarray()[:count, count : count + wide].astype(np.int64)
    for atom, part in zip(pieces, flow, strict=True):
        x[atom] = part
        origin = split.parent[atom]
        if origin != atom:
            x[origin] = x[origin] - part
    if (x[0] < 0).any():
        return None
    return x[atoms]


def _full_solutions(assessment: Assessment, split: AtomSplit, keep: int = 12) -> list[Ints]:
    """The last solutions of this decision, over all atoms, with the true counts in the other atoms."""
    solutions = []
    for x in assessment.possible.witnesses[-keep:]:
        full = split.truth.copy()
        full[assessment.atoms] = x
        solutions.append(full)
    return solutions
