"""Record linkage by minimum-cost assignment: every person gets a different row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.record_linkage._min_cost_assignment import By, min_cost_assignment
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

_DEFAULT_ROWS = 2000
"""Up to this many rows the attack belongs to the default battery."""


class Assignment(Linking):
    """An attacker who knows many people of the release assigns each of them a different row at minimum total cost.

    Linkage of one person at a time may name the same row for several people. An attacker with a file about most people
    in the release (a register, an earlier release, a customer list) does better: the assignment of people to rows with
    the smallest sum of costs is computed exactly over all rows, or over the 50 nearest rows of each person if there are
    more than four million pairs. The attack is stronger the more people of the release are known. With few it equals
    distance linkage. It does not know how values were perturbed; ``posterior-linkage`` does.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.SIMILARITY
    order_in_stage: ClassVar[int] = 1
    pairwise: ClassVar[bool] = True
    min_targets: ClassVar[int] = 10_000
    main: ClassVar[str] = "by"
    examples = ({}, {"by": "ranks"})
    reference: ClassVar[str] = (
        "Herranz, J., Nin, J., Rodriguez, P., Tassa, T. (2015). Revisiting distance-based record linkage for privacy-"
        "preserving release of statistical datasets. Data & Knowledge Engineering 100. doi:10.1016/j.datak.2015.07.009"
    )

    by: By = "values"
    """Cost of a pair of person and row: ``values`` (squared differences of standardized values) or ``ranks`` (squared
    differences of ranks)."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """In small releases, where all pairs are compared; in larger ones ``view-linkage`` finds as many people."""
        if scenario.synthetic or scenario.release_row is None or scenario.release.table.rows > _DEFAULT_ROWS:
            return ()
        perturbed = not scenario.steps or len(scenario.unperturbed) < len(scenario.known)
        return (cls(),) if scenario.known and perturbed else ()

    @property
    def setting(self) -> str:
        return f"by {self.by}"

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assigned = min_cost_assignment(view, self.by, rng, progress)
        # No match is certain: another assignment may have the same cost.
        share = np.minimum(assigned.share, 0.999)
        return Guesses.of_rows(assigned.row, share, {"columns": list(assigned.columns)}, tried=len(assigned.row))
