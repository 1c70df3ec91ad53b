"""Different rows for different people: the posterior of each person if no two people have the same row.

Scores are log-likelihood ratios of pairs. One person at a time, the posterior over the rows is the normalized
exponential of the scores. An adversary who knows many people of the release knows more: rows that belong to somebody
else are taken. The probability of a pair under all one-to-one assignments is approximated by scaling rows and columns
of the matrix of likelihoods in turn until each person has one row and each row at most one person (Sinkhorn scaling),
and the assignment of the largest total score is computed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROUNDS = 60
"""Rounds of scaling."""


@dataclass(frozen=True, kw_only=True)
class CandidatePairs:
    """Pairs of a target and a row that may belong together, sorted by target, with their scores."""

    targets: int
    rows: int
    person: Ints
    row: Ints
    score: Floats

    @property
    def starts(self) -> Ints:
        return np.searchsorted(self.person, np.arange(self.targets + 1))


def probabilities(pairs: CandidatePairs) -> Floats:
    """The probability of each pair under all assignments of different rows to different people."""
    if not len(pairs.person):
        return np.empty(0)
    top = np.full(pairs.targets, -np.inf)
    np.maximum.at(top, pairs.person, pairs.score)
    weight = np.exp(pairs.score - top[pairs.person])
    for _ in range(_ROUNDS):
        weight /= np.bincount(pairs.person, weight, pairs.targets)[pairs.person]
        taken = np.bincount(pairs.row, weight, pairs.rows)
        weight /= np.maximum(taken, 1.0)[pairs.row]
    weight /= np.bincount(pairs.person, weight, pairs.targets)[pairs.person]
    return np.asarray(weight)


def one_to_one(pairs: CandidatePairs, draw: np.random.Generator) -> tuple[Ints, Floats]:
    """A different row for each target with the largest total score, -1 if it has no candidate, and its probability.

    A target whose candidates all went to others gets its most probable one.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    row, sure = np.full(pairs.targets, -1, dtype=np.int64), np.zeros(pairs.targets)
    if not len(pairs.person):
        return row, sure
    chance = probabilities(pairs)
    score = pairs.score + 1e-7 * draw.random(len(pairs.score))
    people = np.unique(pairs.person)
    used, column = np.unique(pairs.row, return_inverse=True)
    # Every target has a private dummy row that is worse than any of its rows, so that a full matching exists. Costs
    # start at one, because a sparse matrix has no entries of zero.
    best = np.full(pairs.targets, -np.inf)
    np.maximum.at(best, pairs.person, score)
    cost = best[pairs.person] - score + 1.0
    place = np.searchsorted(people, pairs.person)
    matrix = csr_array(
        (
            np.concatenate([cost, np.full(len(people), cost.max() + 1.0)]),
            (
                np.concatenate([place, np.arange(len(people))]),
                np.concatenate([column, len(used) + np.arange(len(people))]),
            ),
        ),
        shape=(len(people), len(used) + len(people)),
    )
    taken = np.asarray(min_weight_full_bipartite_matching(matrix)[1], dtype=np.int64)
    row[people] = np.append(used, np.full(len(people), -1))[taken]
    order = np.lexsort((chance, pairs.person))
    last = order[np.searchsorted(pairs.person[order], people, side="right") - 1]
    left = row[people] < 0
    row[people[left]] = pairs.row[last[left]]
    named = pairs.row == row[pairs.person]
    np.add.at(sure, pairs.person[named], chance[named])
    return row, sure
