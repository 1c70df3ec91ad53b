"""Cramér's V of every two columns before and after."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._dependence import change_of_dependence
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Associations(Measure):
    """Mean absolute difference of Cramér's V (strength of association, 0 to 1) over all pairs of columns.

    Works for categories and numbers alike (numbers on at most ``cells`` cells). 0: every association as strong as it
    was. The detail gives both values of every pair.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "cells"
    reference: ClassVar[str] = (
        "Cramér: Mathematical Methods of Statistics (1946); Bergsma (2013), doi:10.1016/j.jkss.2012.10.002"
    )

    cells: Annotated[int, Field(ge=2, le=200)] = 10
    """The most cells per column."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        return change_of_dependence(self.part_name(), pair, self.cells, cramers_v, rng.generator)


def cramers_v(table: Floats) -> float:
    """Cramér's V of a table of shares: 0 independent, 1 one column tells the other."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(rows, columns)
    used = expected > 0
    chi = float(((table - expected)[used] ** 2 / expected[used]).sum())
    freedom = min(int((rows > 0).sum()), int((columns > 0).sum())) - 1
    return float(np.sqrt(max(chi, 0.0) / freedom)) if freedom > 0 else 0.0
