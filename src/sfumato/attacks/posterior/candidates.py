"""Candidate rows of each target: the rows that agree in exact columns, or the rows with the highest scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.attacks.posterior.matching import CandidatePairs
from sfumato.attacks.posterior.scores import RowEvidence
from sfumato.data.row_codes import number_rows
from sfumato.deadline import batches, check_deadline
from sfumato.progress import Progress

Ints = npt.NDArray[np.int64]

_DENSE = 4_000_000
"""Up to this many pairs, every row is a candidate of every target."""
_PAIRS = 20_000_000
"""Pairs in memory at a time."""
_KEPT = 50
"""Candidates kept for each target in larger files: those with the highest scores."""
_NEGLIGIBLE = 25.0
"""A row whose score is this far below the best of its target is no candidate."""


def best_pairs(evidence: RowEvidence, progress: Progress) -> tuple[CandidatePairs, int]:
    """The candidates of the targets that were reached in time, and the number of these targets."""
    fitting = None if evidence.targets * evidence.rows <= _DENSE else _fitting(evidence, progress)
    if fitting is not None:
        person, row = fitting
        score = evidence.pairs(person, row)
        check_deadline(progress)
        return _kept(evidence, evidence.targets, person, row, score), evidence.targets
    kept = evidence.rows if evidence.targets * evidence.rows <= _DENSE else min(_KEPT, evidence.rows)
    parts: list[tuple[Ints, Ints, npt.NDArray[np.float32]]] = []
    done = 0
    size = max(1, _PAIRS // max(1, evidence.rows))
    for part in batches(progress, "comparing people with rows", evidence.targets, size):
        scores = evidence.block(part)
        count = len(scores)
        if kept < evidence.rows:
            near = np.argpartition(-scores, kept - 1, axis=1)[:, :kept]
            scores = np.take_along_axis(scores, near, axis=1)
        else:
            near = np.broadcast_to(np.arange(evidence.rows), scores.shape)
        close = scores > scores.max(axis=1, keepdims=True) - _NEGLIGIBLE
        parts.append(((part.start + np.repeat(np.arange(count), close.sum(axis=1))), near[close], scores[close]))
        done = part.stop
    if not parts:
        return _kept(evidence, 0, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)), 0
    person, row, score = (np.concatenate([part[place] for part in parts]) for place in range(3))
    return _kept(evidence, done, person, row, score), done


def _kept(
    evidence: RowEvidence, targets: int, person: Ints, row: Ints, score: npt.NDArray[np.float32]
) -> CandidatePairs:
    """The best candidates of each target, sorted by target."""
    order = np.lexsort((-score, person))
    person, row, score = person[order], row[order], score[order]
    first = np.searchsorted(person, np.arange(targets + 1))
    rank = np.arange(len(person)) - first[person]
    most = evidence.rows if evidence.targets * evidence.rows <= _DENSE else _KEPT
    good = (rank < most) & (score > score[first[person]] - _NEGLIGIBLE)
    return CandidatePairs(
        targets=targets,
        rows=evidence.rows,
        person=person[good].astype(np.int64),
        row=row[good].astype(np.int64),
        score=score[good].astype(np.float64),
    )


def _fitting(evidence: RowEvidence, progress: Progress) -> tuple[Ints, Ints] | None:
    """The pairs that agree in all columns with a certain relation; None if there are none or too many."""
    if evidence.equal:
        known = [pair[0] for pair in evidence.equal]
        released = [pair[1] for pair in evidence.equal]
        number, count = number_rows([np.concatenate(pair) for pair in zip(known, released, strict=True)])
        left, right = number[: evidence.targets].astype(np.int64), number[evidence.targets :].astype(np.int64)
        size = np.bincount(right, minlength=count)
        if int(size[left].sum()) <= _PAIRS:
            order = np.argsort(right, kind="stable")
            starts = np.concatenate([[0], np.cumsum(size)])
            person = np.repeat(np.arange(evidence.targets), size[left])
            inside = np.arange(len(person)) - np.repeat(np.cumsum(size[left]) - size[left], size[left])
            return person, order[np.repeat(starts[left], size[left]) + inside]
    if evidence.matched is None:
        return None
    lists: list[Ints] = [np.empty(0, dtype=np.int64)] * evidence.targets
    total = 0
    for number_of, (targets, candidates) in enumerate(evidence.matched.candidates()):
        if number_of % 1000 == 0:
            check_deadline(progress)
        total += len(targets) * int(candidates.sizes.sum())
        if total > _PAIRS:
            return None
        rows = np.concatenate([np.empty(0, np.int64), *(evidence.matched.rows(one) for one in candidates.classes)])
        for target in targets:
            lists[target] = rows
    return np.repeat(np.arange(evidence.targets), [len(rows) for rows in lists]), np.concatenate(lists)
