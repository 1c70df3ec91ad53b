"""Linkage of everybody at once: a row that is clearly somebody's is nobody else's."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.attacks.base import Discloses, Guesses, View
from sfumato.attacks.record_linkage._min_cost_assignment import Assigning, min_cost_assignment
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["Assignment"]


class Assignment(Assigning):
    """Somebody who knows many people of the release gives each a row of her own, so that all together fit best.

    Linkage one by one may name the same row for several people. Whoever holds a file about most of the people in the
    release (a register, an earlier release, a customer list) does better: the assignment of people to rows with the
    smallest sum of costs is found exactly over all rows, or over each person's 50 nearest where there are more than
    four million pairs. The more of the people in the release are sought, the more it tells; with few it is linkage
    by distance.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        found = min_cost_assignment(view, self.by, rng, progress)
        # A person is never certain: another assignment may cost as little.
        share = np.minimum(found.share, 0.999)
        return Guesses.of_rows(found.row, share, {"columns": list(found.columns)}, tried=len(found.row))
