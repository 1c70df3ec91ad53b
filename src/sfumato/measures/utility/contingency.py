"""Contingency tables up to order three."""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._spread import comparable, distance, spread
from sfumato.measures.utility._tables import tables
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Contingency(Measure):
    """Total variation distance of contingency tables before and after, averaged over tables of each order.

    0: every table the same; 1: nothing in common. The value is the mean over the tables of the highest order; the
    detail gives the mean of every order. With many columns a random selection of tables is compared, and the value
    carries the interval that the selection causes.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "order"
    examples = ({}, {"order": 2})
    reference: ClassVar[str] = (
        "Torra: Guide to Data Privacy (2022), section on information loss, doi:10.1007/978-3-031-12837-0"
    )

    order: Annotated[int, Field(ge=1, le=3)] = 3
    """Most columns in a table: 1, 2 or 3."""
    cells: Annotated[int, Field(ge=2, le=50)] = 8
    """The most cells per column."""
    most: Annotated[int, Field(ge=2)] = 100
    """The most tables of each order."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        names = comparable(pair)
        order = min(self.order, len(names))
        if order == 0:
            raise NotApplicable("The tables have no column in common that could be compared.")
        spreads = {name: spread(pair, name, self.cells) for name in names}
        means: dict[str, float] = {}
        found: dict[str, float] = {}
        partial = False
        for size in range(1, order + 1):
            sets = list(combinations(names, size))
            partial = len(sets) > self.most
            if partial:
                picked = rng.child(size).generator.choice(len(sets), self.most, replace=False)
                sets = [sets[number] for number in sorted(picked)]
            with progress.task(f"tables of order {size}", len(sets)) as tick:
                found = {}
                for chosen in sets:
                    found[" × ".join(chosen)] = distance(*tables([spreads[name] for name in chosen]))
                    tick(1)
            means[str(size)] = float(np.mean(list(found.values())))
        value = means[str(order)]
        half = 1.96 * float(np.std(list(found.values()), ddof=1)) / np.sqrt(len(found)) if partial else None
        return MeasureResult(
            measure=self.part_name(),
            value=value,
            columns=found,
            low=None if half is None else max(0.0, value - half),
            high=None if half is None else min(1.0, value + half),
            detail={"by_order": means},
        )
