"""Tables of all areas of a hierarchy, as published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.tables.geography import Geography
from sfumato.tables.topdown_plan import TopDownPlan


@dataclass(frozen=True, kw_only=True)
class HierarchicalTables:
    """Tables of all areas: non-negative integers, and the children of an area add up to it."""

    plan: TopDownPlan
    geography: Geography
    counts: tuple[Ints, ...]
    """By level, from the whole down: one line per area, one column per cell."""
    relaxed: int
    """Number of areas whose table was replaced by the sum of the areas in it (failsafe): no tables of these met the
    exact totals and bounds and added up to the table of the area."""
    unsolved: int
    """Number of parts for which the solver failed; they add up, but are not the closest tables."""

    def table(self, level: str | None, *names: str) -> pl.DataFrame:
        """A published table: one row per area and combination of values. ``None`` is the whole."""
        order = list(self.plan.columns)
        number = 0 if level is None else 1 + self.geography.levels.index(level)
        away = tuple(1 + axis for axis, name in enumerate(order) if name not in names)
        counts = self.counts[number].reshape(-1, *self.plan.shape).sum(axis=away)
        kept = [name for name in order if name in names]
        index = np.indices(counts.shape).reshape(counts.ndim, -1)
        areas = [] if level is None else [pl.Series(level, self.geography.names(level)).gather(index[0])]
        values = [pl.Series(name, self.plan.columns[name]).gather(index[1 + axis]) for axis, name in enumerate(kept)]
        return pl.DataFrame([*areas, *values, pl.Series("count", counts.ravel())])

    def microdata(self) -> pl.DataFrame:
        """One row per person of the smallest areas, with exactly these tables."""
        areas, cells = np.nonzero(self.counts[-1])
        times = self.counts[-1][areas, cells]
        codes = np.unravel_index(np.repeat(cells, times), self.plan.shape)
        places = self.geography.frame[np.repeat(areas, times)]
        columns = [
            pl.Series(name, values).gather(code)
            for (name, values), code in zip(self.plan.columns.items(), codes, strict=True)
        ]
        return places.with_columns(columns)
