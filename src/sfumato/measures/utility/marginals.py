"""Marginal distributions: total variation distance of single columns."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._spread import comparable, distance, spread
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Marginals(Measure):
    """Total variation distance between each column before and after, averaged over the columns both tables have.

    0 means the same distribution, 1 means nothing in common. A coarse value (``20-29``, ``*``) counts as spread evenly
    over the original's values it may stand for, which is all that a reader can do with it; a released value that stands
    for no value of the original counts in full. Numbers and columns with more values than ``cells`` are compared on
    that many cells: numbers on bins with equal numbers of original rows, categories on the frequent ones and a rest.
    """

    about: ClassVar[About] = About.UTILITY
    label: ClassVar[str] = "change of columns (marginals)"
    meaning: ClassVar[str] = (
        "Mean total variation distance of single columns: 0 if all shares are the same, 1 if none is."
    )
    default_rank: ClassVar[int | None] = 5
    publishable: ClassVar[bool] = True
    main: ClassVar[str] = "cells"

    cells: Annotated[int, Field(ge=2, le=10_000)] = 100
    """The most cells a column is compared on."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        names = comparable(pair)
        if not names:
            raise NotApplicable("The release and the original have no column in common that could be compared.")
        found: dict[str, float] = {}
        with progress.task("marginals", len(names)) as tick:
            for name in names:
                column = spread(pair, name, self.cells)
                found[name] = distance(column.original_share(), column.released_share())
                tick(1)
        return MeasureResult(measure=self.part_name(), value=sum(found.values()) / len(found), columns=found)
