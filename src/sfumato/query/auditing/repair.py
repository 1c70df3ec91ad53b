"""Counterfeits: the fewest false values that make an answer safe which would expose somebody.

A repaired answer is chosen by looking at the true one, so the choice itself can tell something; only the simulatable
mode (:mod:`sfumato.query.auditing.simulatable`) is free of that, and it repairs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy.typing as npt

from sfumato.query.auditing.k_assign import Assessment, AssignAuditor

__all__ = ["Repair", "counterfeits"]


@dataclass(frozen=True, kw_only=True)
class Repair:
    """An answer that keeps everybody at k values, and what was done to it."""

    assessment: Assessment
    fakes: tuple[int, ...] = ()
    """Counterfeit values added."""


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
