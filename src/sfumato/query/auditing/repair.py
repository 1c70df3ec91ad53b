"""When the true answer would give somebody away: the fewest counterfeits, a coarser answer, fewer people, or a no.

A repaired answer is chosen by looking at the true one, so the choice itself can tell something; only the simulatable
mode (:mod:`sfumato.query.auditing.simulatable`) is free of that, and it repairs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from sfumato.query.auditing.k_assign import Assessment, AssignAuditor

__all__ = ["Repair", "coarser", "counterfeits", "fewer_people"]


@dataclass(frozen=True, kw_only=True)
class Repair:
    """An answer that keeps everybody at k values, and what was done to it."""

    assessment: Assessment
    fakes: tuple[int, ...] = ()
    """Counterfeit values added."""
    level: int = 0
    """Level of the value hierarchy told (0: the values themselves)."""
    dropped: int = 0
    """How many of the people asked about are left out of the answer."""


def counterfeits(auditor: AssignAuditor, people: npt.ArrayLike, *, most: int, tries: int = 3000) -> Repair | None:
    """The fewest extra values that make the answer safe, at most ``most`` of them; None if none were found.

    Sizes are tried in order and each size completely, so what is found is smallest unless ``tries`` ran out first, in
    which case the answer is None.
    """
    for size in range(1, most + 1):
        for fakes in combinations_with_replacement(range(auditor.partition.values), size):
            tries -= 1
            if tries < 0:
                return None
            assessment = auditor.judge(people, fakes=fakes)
            if assessment.safe:
                return Repair(assessment=assessment, fakes=fakes)
    return None


def coarser(auditor: AssignAuditor, people: npt.ArrayLike, levels: Sequence[Sequence[int]]) -> Repair | None:
    """The finest of these generalizations of the values (each maps a value to its group) whose answer is safe."""
    for level, groups in enumerate(levels, start=1):
        assessment = auditor.judge(people, groups=groups)
        if assessment.safe:
            return Repair(assessment=assessment, level=level)
    return None


def fewer_people(auditor: AssignAuditor, people: npt.ArrayLike) -> Repair | None:
    """The answer about fewer people: those who would be exposed are left out, then the smallest atom, and so on."""
    rows = auditor.partition.select(people)
    asked = len(rows)
    while len(rows):
        assessment = auditor.judge(rows, full=True)
        if assessment.safe:
            return Repair(assessment=assessment, dropped=asked - len(rows)) if len(rows) < asked else None
        kept = np.setdiff1d(rows, assessment.exposed)
        if len(kept) == len(rows):
            atoms = np.array([auditor.partition.atom_of(int(row)) for row in rows])
            names, sizes = np.unique(atoms, return_counts=True)
            kept = rows[atoms != names[np.argmin(sizes)]]
        rows = kept
    return None
