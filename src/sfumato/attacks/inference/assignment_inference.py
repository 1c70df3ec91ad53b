"""The sensitive value of a person, read off the row that she is given when everybody is given one."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, View
from sfumato.attacks.record_linkage._min_cost_assignment import Assigning, min_cost_assignment
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["AssignmentInference"]


class AssignmentInference(Assigning):
    """Somebody who knows many people of the release gives each a row of her own, and reads the secret off that row.

    People are given rows as in ``assignment``. Whoever is found so has her secret read as it stands in the release;
    whoever is not gets that of somebody alike. A row without a value gives the release's most frequent one.
    """

    discloses: ClassVar[Discloses] = Discloses.ATTRIBUTE

    secret: str | None = None
    """The column sought; may be left out when exactly one released column is declared sensitive."""
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """For numbers: how far off a guess may be and still count, as a share of the true value."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        released = view.release.table.column(view.secret)
        present = released.drop_nulls()
        if len(present) == 0:
            raise NotApplicable(f"The released column `{view.secret}` is empty.")
        found = min_cost_assignment(view, self.by, rng, progress)
        common = present.mode(maintain_order=True).head(1)
        value = released.gather(found.row).fill_null(common[0])
        return Guesses(
            value=value.alias(view.secret),
            made=np.ones(len(value), dtype=np.bool_),
            confidence=np.minimum(found.share, 0.999),
            detail={"columns": list(found.columns)},
            tried=len(value),
        )
