"""Risk of sample uniques from a log-linear model of the whole table of quasi-identifiers."""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.arrays import Floats, Ints
from sfumato.dataset import Data
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.classes import quasi_of
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class LogLinearRisk(Measure):
    """The expected number of correct matches of sample uniques with the population, from a Poisson log-linear model.

    The model smooths over empty cells: a combination that is rare because each of its values is rare is riskier than
    one that is missing by chance. The value is the mean over sample uniques of the expected 1 / F (0 without any);
    ``detail`` has the two customary totals, the expected number of sample uniques that are population uniques (tau1)
    and of correct matches (tau2). "main" uses each column's distribution alone and overstates the risk of dependent
    columns; "pairs" fits all two-way tables by iterative proportional fitting, on tables of up to ten million cells.
    """

    about: ClassVar[About] = About.DISCLOSURE
    main: ClassVar[str] = "fraction"
    examples = ({"fraction": 0.1},)
    reference: ClassVar[str] = (
        "Skinner, C., Shlomo, N. (2008). Assessing identification risk in survey microdata using log-linear models. "
        "Journal of the American Statistical Association 103. doi:10.1198/016214507000001328"
    )

    fraction: Annotated[float, Field(gt=0, lt=1)]
    """Sampling fraction: rows of the release per person of the population."""
    effects: Literal["main", "pairs"] = "main"
    """Terms of the model."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        names = quasi_of(Data(table=pair.release.table, schema=pair.original.schema))
        codes = [pair.masked[name].rank("dense").fill_null(0).cast(pl.Int64).to_numpy() for name in names]
        codes = [np.unique(code, return_inverse=True)[1].astype(np.int64) for code in codes]
        unique = pair.masked.select(pl.struct(names).is_unique()).to_series().to_numpy()
        expected = _main(codes) if self.effects == "main" else _pairs(codes)
        hidden = expected[unique] / self.fraction * (1 - self.fraction)
        alone = np.exp(-hidden)
        match = np.where(hidden > 1e-9, -np.expm1(-hidden) / np.maximum(hidden, 1e-300), 1.0)
        return MeasureResult(
            measure=self.part_name(),
            value=float(match.mean()) if unique.any() else 0.0,
            detail={"sample_uniques": int(unique.sum()), "tau1": float(alone.sum()), "tau2": float(match.sum())},
        )


def _main(codes: list[Ints]) -> Floats:
    """Expected sample count of each row's cell when columns are independent."""
    rows = len(codes[0])
    expected = np.full(rows, float(rows))
    for code in codes:
        expected *= (np.bincount(code) / rows)[code]
    return expected


def _pairs(codes: list[Ints], rounds: int = 50) -> Floats:
    """Expected sample count of each row's cell under all two-way margins."""
    shape = tuple(int(code.max()) + 1 for code in codes)
    if prod(shape) > 10_000_000:
        raise NotApplicable(
            f"The table of quasi-identifiers has {prod(shape):,} cells, too many to fit two-way effects.",
            fix="Use `effects: main`, or coarser columns.",
        )
    counts = np.zeros(shape)
    np.add.at(counts, tuple(codes), 1.0)
    fitted = np.full(shape, counts.sum() / counts.size)
    margins: list[tuple[int, ...]] = list(combinations(range(len(shape)), 2)) or [(0,)]
    for _ in range(rounds):
        worst = 0.0
        for kept in margins:
            others = tuple(axis for axis in range(len(shape)) if axis not in kept)
            wanted, have = counts.sum(axis=others, keepdims=True), fitted.sum(axis=others, keepdims=True)
            worst = max(worst, float(np.abs(wanted - have).max()))
            fitted *= np.divide(wanted, have, out=np.zeros_like(wanted), where=have > 0)
        if worst < 1e-6 * max(1.0, counts.sum()):
            break
    return fitted[tuple(codes)]
