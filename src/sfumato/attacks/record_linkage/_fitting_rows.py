"""Fitting rows: those that agree with a target in every column whose released values are true.

Where some columns were generalized and others perturbed, the generalized ones leave a person a few rows, whatever the
size of the file, and the perturbed ones choose among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import match
from sfumato.deadline import check_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import Progress

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FittingRows:
    """The rows that fit each target, in CSR format."""

    starts: Ints
    rows: Ints
    vagueness: Floats
    """For each pair a small cost of coarse rows, at most one half: a suppressed row fits everybody."""

    @property
    def people(self) -> int:
        return len(self.starts) - 1


def fitting_rows(view: View, most: int, progress: Progress) -> FittingRows | None:
    """The rows that fit each target; None if no column is known to be true, or if there are more than ``most`` pairs.

    Without published steps nothing is known to be true, and no row can be excluded.
    """
    if not view.steps or not view.untouched:
        return None
    try:
        matched = match(replace(view, knows=view.untouched), in_release=True)
    except NotApplicable:
        return None
    lists: list[Ints] = [np.empty(0, dtype=np.int64)] * view.targets.height
    total = 0
    for number, (targets, candidates) in enumerate(matched.candidates()):
        if number % 1000 == 0:
            check_deadline(progress)
        total += len(targets) * int(candidates.sizes.sum())
        if total > most:
            return None
        found = np.concatenate([np.empty(0, dtype=np.int64), *(matched.rows(place) for place in candidates.classes)])
        for target in targets:
            lists[target] = found
    rows = np.concatenate(lists)
    starts = np.concatenate([[0], np.cumsum([len(found) for found in lists])]).astype(np.int64)
    weight = matched.weights(rows)
    vagueness = np.minimum(-0.05 * np.log(np.maximum(weight, 1e-300)), 0.5)
    return FittingRows(starts=starts, rows=rows, vagueness=vagueness)
