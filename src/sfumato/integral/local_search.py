"""Minimal modifications near a given one: proof of integral privacy for changes too large for a full search."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from sfumato.errors import BadParameter
from sfumato.integral.explanations import Explanations
from sfumato.integral.learner import Learner
from sfumato.integral.modification import NOWHERE, Modification
from sfumato.integral.records import Records

_LARGEST = 8
"""Largest minimal deletion whose parts are all tried."""


def explain_nearby(
    learner: Learner, records: Records, deleted: Sequence[int], *, known: Sequence[int] = (), enough: int
) -> Explanations:
    """Minimal deletions found by shrinking a deletion and by replacing one of its records at a time.

    Every one is checked to be minimal: the learner returns another model for each of its parts. The search is never
    complete, so that its verdict is that integral privacy holds, or "not checked".
    """
    new = learner.fit(records, records.without(deleted))
    available = records.counts - records.counts_of(known)
    cells = [int(records.cell_of_row[row]) for row in deleted]
    if not cells or (records.counts_of(deleted) > available).any():
        raise BadParameter("The deleted people cannot be known to have stayed, and there must be at least one.")
    refits = 1

    def models(parts: Sequence[Sequence[int]]) -> list[bool]:
        nonlocal refits
        counts = np.repeat(records.counts[None, :], len(parts), axis=0)
        for row, part in enumerate(parts):
            np.subtract.at(counts[row], list(part), 1)
        refits += len(parts)
        return [model == new for model in learner.fit_many(records, counts)]

    def smaller(part: Sequence[int]) -> Sequence[int] | None:
        """A proper part that explains the new model too; the smallest there is."""
        inner = sorted({one for size in range(1, len(part)) for one in combinations(sorted(part), size)}, key=len)
        return next((one for one, hit in zip(inner, models(inner), strict=True) if hit), None) if inner else None

    core = cells
    for cell in list(core):
        rest = list(core)
        rest.remove(cell)
        if rest and models([rest])[0]:
            core = rest
    minimal: set[Modification] = set()
    if len(core) <= _LARGEST:
        core = list(smaller(core) or core)
        minimal.add(_deletion(core))
        for place in range(len(core)):
            others = [[*core[:place], cell, *core[place + 1 :]] for cell in np.flatnonzero(available > 0).tolist()]
            fitting = [one for one in others if _deletion(one).applies(available)]
            for one, hit in zip(fitting, models(fitting), strict=True):
                if hit and smaller(one) is None:
                    minimal.add(_deletion(one))
                    if len(minimal) > 4 * enough:
                        break
    return Explanations(
        records=records,
        minimal=tuple(sorted(minimal, key=lambda one: one.steps)),
        available=available,
        complete=False,
        refits=refits,
        unchanged=learner.fit(records, records.counts) == new,
        considered="deletions like the given one",
    )


def _deletion(cells: Sequence[int]) -> Modification:
    return Modification.of([(cell, NOWHERE) for cell in cells])
