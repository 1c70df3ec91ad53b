"""Hellinger distance of the marginals."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._spread import comparable, spread
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Hellinger(Measure):
    """Hellinger distance between each column before and after, averaged over the columns both tables have.

    0: the same distribution; 1: nothing in common. Compared with the total variation distance of ``marginals`` it
    weighs changes in rare values more. Columns are laid over at most ``cells`` cells, coarse values spread evenly.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "cells"
    reference: ClassVar[str] = (
        "Gomatam, Karr, Sanil: Data swapping as a decision problem (2005), J. Official Statistics 21"
    )

    cells: Annotated[int, Field(ge=2, le=10_000)] = 100
    """The most cells a column is compared on."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        found: dict[str, float] = {}
        for name in comparable(pair):
            column = spread(pair, name, self.cells)
            before, after = column.original_share(), column.released_share()
            found[name] = float(np.sqrt(max(0.0, 1 - np.sqrt(before * after).sum())))
        if not found:
            raise NotApplicable("The tables have no column in common that could be compared.")
        return MeasureResult(measure=self.part_name(), value=float(np.mean(list(found.values()))), columns=found)
