"""People and households with several rows: the score of a person for a released group is the sum over their rows.

A released column (a pseudonym, a household number) says which rows belong together, and nothing else. Each known row of
a person is one of the rows of the right group, so its likelihood is the mean over the rows of the group; the rows of
the person are added. Groups are then assigned to different people, and the rows of a group to the rows of its person.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.attacks.posterior.matching import CandidatePairs, one_to_one
from sfumato.attacks.posterior.scores import RowEvidence
from sfumato.deadline import batches
from sfumato.masking.channel import IMPOSSIBLE
from sfumato.progress import Progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_PAIRS = 20_000_000
"""Pairs of rows in memory at a time."""
_KEPT = 50
"""Groups kept for each person in large files."""
_DENSE = 4_000_000
_NEGLIGIBLE = 25.0


def link_people(
    evidence: RowEvidence, person: Ints, group: Ints, complete: bool, draw: np.random.Generator, progress: Progress
) -> tuple[Ints, Floats]:
    """The row of each target that was reached in time, and the probability of the pair.

    ``person`` numbers the targets, whose rows are consecutive; ``group`` numbers the released rows, negative for none.
    ``complete`` says that all rows of the people are released, so that groups have as many rows as their person.
    """
    starts = np.flatnonzero(np.diff(person, prepend=person[0] - 1))
    ends = np.append(starts[1:], len(person))
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    edges = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff(np.append(edges, len(order)))
    kept = len(edges) if len(starts) * len(edges) <= _DENSE else min(_KEPT, len(edges))
    parts: list[tuple[Ints, Ints, Floats]] = []
    step = max(1, _PAIRS // max(1, evidence.rows) // max(1, int((ends - starts).max(initial=1))))
    done = 0
    for part in batches(progress, "people with several rows", len(starts), step):
        first, last = int(starts[part.start]), int(ends[part.stop - 1])
        scores = evidence.block(slice(first, last))[:, order].astype(np.float64)
        top = np.maximum.reduceat(scores, edges, axis=1)
        inside = np.add.reduceat(np.exp(scores - np.repeat(top, sizes, axis=1)), edges, axis=1)
        total = np.add.reduceat(top + np.log(inside / sizes), starts[part] - first, axis=0)
        if complete:
            total[(ends - starts)[part][:, None] != sizes[None, :]] += IMPOSSIBLE
        near = np.argpartition(-total, kept - 1, axis=1)[:, :kept]
        value = np.take_along_axis(total, near, axis=1)
        close = value > value.max(axis=1, keepdims=True) - _NEGLIGIBLE
        parts.append((part.start + np.nonzero(close)[0], near[close], value[close]))
        done = part.stop
    if not done:
        return np.empty(0, np.int64), np.empty(0)
    who, where, score = (np.concatenate([part[place] for part in parts]) for place in range(3))
    pairs = CandidatePairs(targets=done, rows=len(edges), person=who, row=where, score=score)
    chosen, sure = one_to_one(pairs, draw)
    row, chance = np.full(int(ends[done - 1]), -1, dtype=np.int64), np.repeat(sure, (ends - starts)[:done])
    for number in range(done):
        own = np.arange(starts[number], ends[number])
        rows = order[edges[chosen[number]] : edges[chosen[number]] + sizes[chosen[number]]]
        row[own], share = _rows_of_group(evidence, own, rows, draw)
        chance[own] *= share
    return row, chance


def _rows_of_group(evidence: RowEvidence, own: Ints, rows: Ints, draw: np.random.Generator) -> tuple[Ints, Floats]:
    """Different rows of a group for the rows of a person, as far as there are enough, and their probabilities."""
    left, right = np.repeat(own, len(rows)), np.tile(rows, len(own))
    score = evidence.pairs(left, right).reshape(len(own), len(rows)).astype(np.float64)
    place = np.tile(np.arange(len(rows)), len(own))
    pairs = CandidatePairs(targets=len(own), rows=len(rows), person=left - own[0], row=place, score=score.ravel())
    named, share = one_to_one(pairs, draw)
    return rows[named], share
