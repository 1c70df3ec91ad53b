"""Counterfeits: false values added to a list of values, so that the list leaves everybody enough possibilities.

An adversary who knows the rule asks which true lists would have led to the published one. If the fewest counterfeits
were added to unsafe lists only, they would conclude that the true list was unsafe, which can expose everybody: for two
people, the list v0 v0 v1 with one counterfeit would mean that both have v0. The choice is therefore random:

* A list that is safe as it is gets counterfeits as well, with probability 1/2.
* Among all sets of counterfeits whose published list is safe, first the size is drawn, then the set, each uniformly.
* Whether a published list is safe depends on the list and the earlier answers only.

So every true list that is contained in the published one could have led to it, with positive probability: the
possibilities that are left are exactly those that :class:`~sfumato.auditing.k_assign.AssignAuditor` counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import numpy.typing as npt

from sfumato.auditing.k_assign import Assessment, AssignAuditor

_TRIES = 3000


@dataclass(frozen=True, kw_only=True)
class Repair:
    """A safe answer with its counterfeit values."""

    assessment: Assessment
    fakes: tuple[int, ...] = ()
    """Counterfeit values added."""


def counterfeits(
    auditor: AssignAuditor, people: npt.ArrayLike, *, most: int, rng: np.random.Generator
) -> Repair | None:
    """Random counterfeits, at most ``most``, that make the answer safe; None if there are none."""
    choices = [found for size in range(1, most + 1) if (found := safe_counterfeits(auditor, people, size=size))]
    if not choices:
        return None
    same_size = choices[int(rng.integers(len(choices)))]
    return same_size[int(rng.integers(len(same_size)))]


def safe_counterfeits(auditor: AssignAuditor, people: npt.ArrayLike, *, size: int) -> list[Repair]:
    """All sets of this many counterfeits that make the answer safe; none if there are too many sets to try."""
    values = auditor.partition.values
    if comb(values + size - 1, size) > _TRIES:
        return []
    tried = (
        (fakes, auditor.judge(people, fakes=fakes)) for fakes in combinations_with_replacement(range(values), size)
    )
    return [Repair(assessment=assessment, fakes=fakes) for fakes, assessment in tried if assessment.safe]
