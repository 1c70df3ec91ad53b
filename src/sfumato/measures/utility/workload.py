"""A workload of random range and count queries."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.dataset import Kind
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._spread import Spread, comparable, spread
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class WorkloadMeasure(Measure):
    """Mean relative error of random counting queries answered from the release.

    A query asks how many people have their values in given ranges (numbers, dates) or equal to given values
    (categories) of one to ``columns`` columns. The answer from the release is scaled to the original's size; coarse
    values count with the share of their meaning that fits. Errors are divided by the true count, or by ``least`` of
    the rows where it is smaller, so that rare answers do not dominate. The interval is over queries.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "queries"
    reference: ClassVar[str] = (
        "LeFevre, DeWitt, Ramakrishnan: Workload-aware anonymization (2006), doi:10.1145/1150402.1150435; Xiao, Tao: "
        "Anatomy (VLDB 2006)"
    )

    queries: Annotated[int, Field(ge=10, le=100_000)] = 500
    """How many queries are asked."""
    columns: Annotated[int, Field(ge=1, le=10)] = 3
    """Most columns in a query."""
    least: Annotated[float, Field(gt=0, le=1)] = 0.005
    """Smallest denominator, as a fraction of the rows."""
    cells: Annotated[int, Field(ge=2, le=1000)] = 50
    """The most cells per column; ranges begin and end at their borders."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        names = comparable(pair)
        if not names:
            raise NotApplicable("The tables have no column in common that could be asked about.")
        random = rng.generator
        spreads = {name: spread(pair, name, self.cells) for name in names}
        ordered = {n for n in names if pair.original.kind(n) in {Kind.INTEGER, Kind.NUMBER, Kind.DATE, Kind.DATETIME}}
        size, rows = pair.original.rows, pair.release.table.rows
        errors = np.empty(self.queries)
        involved: dict[str, list[float]] = {name: [] for name in names}
        with progress.task("workload", self.queries) as tick:
            for number in range(self.queries):
                count = int(random.integers(1, min(self.columns, len(names)) + 1))
                chosen = random.choice(len(names), count, replace=False)
                inside, weight = np.ones(size, dtype=bool), np.ones(rows)
                for index in chosen:
                    name = names[index]
                    asked = _asked(spreads[name], name in ordered, random)
                    inside &= asked[spreads[name].original] > 0
                    weight *= np.asarray(spreads[name].matrix @ asked).ravel()[spreads[name].released]
                truth, answer = float(inside.sum()), float(weight.sum()) * size / rows
                errors[number] = abs(answer - truth) / max(truth, self.least * size)
                for index in chosen:
                    involved[names[index]].append(errors[number])
                tick(1)
        value = float(errors.mean())
        half = 1.96 * float(errors.std(ddof=1)) / np.sqrt(self.queries)
        return MeasureResult(
            measure=self.part_name(),
            value=value,
            columns={name: float(np.mean(seen)) for name, seen in involved.items() if seen},
            low=max(0.0, value - half),
            high=value + half,
            detail={
                "median": float(np.median(errors)),
                "quantiles": np.quantile(errors, [0.1, 0.25, 0.75, 0.9]).tolist(),
            },
        )


def _asked(column: Spread, ordered: bool, random: np.random.Generator) -> Floats:
    """1 for the cells a query asks for: a run of cells, or the cell of a random person."""
    asked = np.zeros(column.cells)
    if ordered:
        first, last = np.sort(column.original[random.integers(len(column.original), size=2)])
        asked[first : last + 1] = 1.0
    else:
        asked[column.original[random.integers(len(column.original))]] = 1.0
    return asked
