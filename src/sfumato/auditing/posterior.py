"""Posterior probabilities: how probable each value of each person is after all answers, given public shares.

Before any answer, people have their values independently with the declared shares. The probability of an assignment
given the answers is its prior, divided by that of all assignments that agree with the answers. People of one atom are
exchangeable, so assignments are counted by the number of people of each atom with each value: such counts stand for
``size! / (x1! x2! ...)`` assignments each.

The sum over all counts is computed exactly by a transfer over the atoms. The state is what the atoms so far contribute
to each answer that is not yet complete. The work grows with the number of states; if it exceeds the effort, there is no
result, and an auditor refuses. All terms are positive, so rounding errors stay below 1e-9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, factorial, lgamma, prod

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.auditing.atoms import Sense
from sfumato.auditing.linear_system import CountSystem

_STEPS = 100_000
"""Transitions that one unit of effort pays for."""


@dataclass(frozen=True)
class _Fact:
    weights: Ints
    total: int
    sense: Sense
    atoms: frozenset[int]


@dataclass(frozen=True)
class _Step:
    """One atom: from which state, with which counts, to which state."""

    counts: Ints
    source: Ints
    choice: Ints
    target: Ints
    atom: int
    states: int
    """How many states there are after it."""


def posterior(system: CountSystem, shares: Sequence[float], *, effort: float) -> Floats | None:
    """Atoms by values: the probability that a person of the atom has the value; None if the effort does not suffice."""
    steps = _transfer(system, effort)
    if steps is None:
        return None
    log_shares = np.log(np.maximum(np.asarray(shares, float), 1e-300))
    weights = [
        lgamma(int(system.sizes[step.atom]) + 1) - _log_factorials(step.counts).sum(axis=1) + step.counts @ log_shares
        for step in steps
    ]
    forwards = [np.zeros(1)]
    for step, weight in zip(steps, weights, strict=True):
        forwards.append(_log_sums(forwards[-1][step.source] + weight[step.choice], step.target, step.states))
    result = np.zeros(system.known.shape)
    backward = np.zeros(1)
    for step, weight, forward in zip(reversed(steps), reversed(weights), reversed(forwards[:-1]), strict=True):
        ahead = weight[step.choice] + backward[step.target]
        log_mass = forward[step.source] + ahead
        mass = np.exp(log_mass - log_mass.max())
        share = np.bincount(step.choice, mass, len(step.counts)) / mass.sum()
        result[step.atom] = share @ step.counts / max(1, int(system.sizes[step.atom]))
        backward = _log_sums(ahead, step.source, len(forward))
    return result


def assignments(system: CountSystem, *, effort: float) -> int | None:
    """How many assignments of values to people agree with all answers; None if the effort does not suffice."""
    steps = _transfer(system, effort)
    if steps is None:
        return None
    forward = [1]
    for step in steps:
        size = factorial(int(system.sizes[step.atom]))
        ways = [size // prod(map(factorial, counts)) for counts in step.counts.tolist()]
        reached = [0] * step.states
        for source, choice, target in zip(
            step.source.tolist(), step.choice.tolist(), step.target.tolist(), strict=True
        ):
            reached[target] += forward[source] * ways[choice]
        forward = reached
    return sum(forward)


def _transfer(system: CountSystem, effort: float) -> list[_Step] | None:
    """The steps over all atoms that reach only what agrees with the answers; None if the effort does not suffice."""
    atoms, values = system.known.shape
    facts = [
        _Fact(weights, total, sense, frozenset(np.flatnonzero(inside).tolist()))
        for inside, answer in zip(system.member, system.answers, strict=True)
        for weights, total, sense in answer.facts
        if np.ptp(weights) or weights[0]
    ]
    order = _order(atoms, facts)
    place = {atom: step for step, atom in enumerate(order)}
    first = [min((place[a] for a in fact.atoms), default=-1) for fact in facts]
    last = [max((place[a] for a in fact.atoms), default=-1) for fact in facts]
    left = effort * _STEPS
    states = np.zeros((1, 0), np.int64)
    open_facts: list[int] = []
    steps: list[_Step] = []
    for number, atom in enumerate(order):
        size = int(system.sizes[atom])
        entering = [f for f, start in enumerate(first) if start == number]
        states = np.concatenate([states, np.zeros((len(states), len(entering)), np.int64)], axis=1)
        open_facts = open_facts + entering
        if comb(size + values - 1, values - 1) * len(states) > left:
            return None
        counts = _compositions(size, values)
        left -= len(counts) * len(states)
        mine = np.array([atom in facts[f].atoms for f in open_facts], np.bool_)
        weights = np.array([facts[f].weights for f in open_facts], np.int64).reshape(-1, values)
        adds = counts @ weights.T * mine
        reached = states[:, None, :] + adds[None, :, :]
        fits = np.ones(reached.shape[:2], np.bool_)
        for position, f in enumerate(open_facts):
            amount, fact = reached[:, :, position], facts[f]
            if fact.sense is not Sense.AT_LEAST:
                fits &= amount <= fact.total
            if last[f] == number and fact.sense is not Sense.AT_MOST:
                fits &= amount >= fact.total
        source, choice = np.nonzero(fits)
        if not len(source):
            return None
        kept = [position for position, f in enumerate(open_facts) if last[f] > number]
        capped = reached[source, choice][:, kept]
        for column, position in enumerate(kept):  # beyond "at least" every amount is the same
            fact = facts[open_facts[position]]
            if fact.sense is Sense.AT_LEAST:
                capped[:, column] = np.minimum(capped[:, column], fact.total)
        states, target = np.unique(capped, axis=0, return_inverse=True)
        target = target.reshape(-1)
        steps.append(_Step(counts, source, choice, target, atom, len(states)))
        open_facts = [open_facts[position] for position in kept]
    return steps


def _order(atoms: int, facts: Sequence[_Fact]) -> list[int]:
    """Atoms in an order that keeps few answers incomplete at a time: greedily the one that opens fewest."""
    waiting, begun, order = set(range(atoms)), set[int](), list[int]()
    of = {atom: {f for f, fact in enumerate(facts) if atom in fact.atoms} for atom in range(atoms)}
    left = [len(fact.atoms) for fact in facts]
    while waiting:
        best = min(
            waiting, key=lambda atom: (len(of[atom] - begun) - sum(left[f] == 1 for f in of[atom]), atom)
        )  # fmt: skip
        waiting.remove(best)
        order.append(best)
        begun |= of[best]
        for f in of[best]:
            left[f] -= 1
    return order


def _compositions(size: int, parts: int) -> Ints:
    """All ways to divide a number of people among values."""
    bars = np.array(list(combinations(range(size + parts - 1), parts - 1)), np.int64).reshape(-1, parts - 1)
    ends = np.concatenate([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), size + parts - 1)], axis=1)
    return np.asarray(np.diff(ends, axis=1) - 1, np.int64)


def _log_factorials(counts: Ints) -> Floats:
    table = np.array([lgamma(n + 1) for n in range(int(counts.max(initial=0)) + 1)])
    return np.asarray(table[counts], np.float64)


def _log_sums(log_terms: Floats, groups: Ints, count: int) -> Floats:
    """Logarithms of sums of positive terms by group; minus infinity for a group without terms."""
    top = np.full(count, -np.inf)
    np.maximum.at(top, groups, log_terms)
    safe = np.where(np.isfinite(top), top, 0.0)
    sums = np.bincount(groups, np.exp(log_terms - safe[groups]), count)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums) + safe, np.float64)
