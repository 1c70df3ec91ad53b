"""Attribute inference by minimum-cost assignment of people to rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from sfumato.attacks.base import Guesses, Inference, Stage, View
from sfumato.attacks.record_linkage._min_cost_assignment import Assigning, min_cost_assignment
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

__all__ = ["AssignmentInference"]


class AssignmentInference(Assigning, Inference):
    """An attacker who knows many people of the release assigns each a different row and takes its sensitive value.

    Rows are assigned as in ``assignment``. For a correctly assigned person the sensitive value is the released one;
    for the others it is that of a similar person. If the row has no value, the guess is the most frequent value of the
    release.
    """

    stage: ClassVar[Stage] = Stage.INFERENCE
    order_in_stage: ClassVar[int] = 3

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """As ``assignment``, one attack per sensitive column and cost."""
        return tuple(
            cls(secret=name, tolerance=tolerance, by=by)
            for name, tolerance in scenario.secrets.items()
            for by in cls.costs(scenario)
        )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        released = view.release.table.column(view.secret)
        present = released.drop_nulls()
        if len(present) == 0:
            raise NotApplicable(f"The released column `{view.secret}` is empty.")
        assigned = min_cost_assignment(view, self.by, rng, progress)
        common = present.mode(maintain_order=True).head(1)
        value = released.gather(assigned.row).fill_null(common[0])
        return Guesses(
            value=value.alias(view.secret),
            made=np.ones(len(value), dtype=np.bool_),
            confidence=np.minimum(assigned.share, 0.999),
            detail={"columns": list(assigned.columns)},
            tried=len(value),
        )
