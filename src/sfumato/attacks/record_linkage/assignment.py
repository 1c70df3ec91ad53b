"""Record linkage by minimum-cost assignment: every person gets a different row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from sfumato.attacks.base import Discloses, Guesses, Stage, View
from sfumato.attacks.record_linkage._min_cost_assignment import Assigning, min_cost_assignment
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

__all__ = ["Assignment"]


class Assignment(Assigning):
    """An attacker who knows many people of the release assigns each of them a different row at minimum total cost.

    Linkage of one person at a time may name the same row for several people. An attacker with a file about most people
    in the release (a register, an earlier release, a customer list) does better: the assignment of people to rows with
    the smallest sum of costs is computed exactly over all rows, or over the 50 nearest rows of each person if there are
    more than four million pairs. The attack is stronger the more people of the release are known. With few it equals
    distance linkage.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.SIMILARITY
    order_in_stage: ClassVar[int] = 1

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        if scenario.synthetic or scenario.release_row is None:
            return ()
        return tuple(cls(by=by) for by in cls.costs(scenario))

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assigned = min_cost_assignment(view, self.by, rng, progress)
        # No match is certain: another assignment may have the same cost.
        share = np.minimum(assigned.share, 0.999)
        return Guesses.of_rows(assigned.row, share, {"columns": list(assigned.columns)}, tried=len(assigned.row))
