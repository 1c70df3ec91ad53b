"""IL1 and IL1s, record by record."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._values import aligned, number_columns, numbers
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Il1(Measure):
    """Mean distance between each person's values before and after, record by record.

    ``il1s`` divides by the square root of two times the column's standard deviation: 0 nothing moved, about 0.8 the
    values were drawn anew. ``il1`` divides by the value itself and explodes near zero; cells whose original is 0 are
    left out and counted in the detail. Needs the row map, so only the owner can compute it; records that were
    dropped or made up do not count.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "variant"
    examples = ({}, {"variant": "il1"})
    reference: ClassVar[str] = (
        "Yancey, Winkler, Creecy: Disclosure risk assessment in perturbative microdata protection (2002), "
        "doi:10.1007/3-540-47804-3_11; Mateo-Sanz, Domingo-Ferrer, Sebé (2005), doi:10.1007/s10618-005-0011-9"
    )

    variant: Literal["il1s", "il1"] = "il1s"
    """``il1s``: in standard deviations. ``il1``: relative to the value."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        old, new = aligned(pair)
        found: dict[str, float] = {}
        skipped = 0
        for name in number_columns(pair):
            before, after = numbers(pair, name)
            spread = np.nanstd(before, ddof=1)
            here, there = before[old], after[new]
            with np.errstate(divide="ignore", invalid="ignore"):
                moved = np.abs(here - there) / (np.sqrt(2) * spread if self.variant == "il1s" else np.abs(here))
            usable = np.isfinite(moved)
            skipped += int((here == 0).sum()) if self.variant == "il1" else 0
            if usable.any():
                found[name] = float(moved[usable].mean())
        if not found:
            raise NotApplicable("No value of a number column could be compared with its original.")
        detail = {"cells_with_original_zero": skipped} if self.variant == "il1" else {}
        value = float(np.mean(list(found.values())))
        return MeasureResult(measure=self.part_name(), value=value, columns=found, detail=detail)
