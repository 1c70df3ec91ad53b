"""Counterfeits: the fewest false values that make an unsafe answer safe.

The choice of counterfeits depends on the true answer, so it can reveal something. The simulatable mode
(:mod:`sfumato.query.auditing.simulatable`) reveals nothing by its decisions, and adds no counterfeits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy.typing as npt

from sfumato.query.auditing.k_assign import Assessment, AssignAuditor

__all__ = ["Repair", "counterfeits"]


@dataclass(frozen=True, kw_only=True)
class Repair:
    """A safe answer with its counterfeit values."""

    assessment: Assessment
    fakes: tuple[int, ...] = ()
    """Counterfeit values added."""


def counterfeits(auditor: AssignAuditor, people: npt.ArrayLike, *, most: int, tries: int = 3000) -> Repair | None:
    """The fewest counterfeits that make the answer safe, at most ``most``; None if there are none.

    Sizes are tried in increasing order, each completely, so the result is smallest. None as well after ``tries``
    assessments.
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
