"""SUDA: special uniques, which are unique on few columns."""

from __future__ import annotations

from itertools import combinations
from math import comb, factorial
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Floats, Ints
from sfumato.data.row_codes import number_rows
from sfumato.dataset import Data
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.classes import quasi_of
from sfumato.progress import SILENT, Progress, Tick
from sfumato.rng import Rng


class Suda(Measure):
    """The largest DIS-SUDA score: how likely the most special unique row is to be unique in the population.

    A minimal sample unique is a set of columns on which a row is unique while it is not on any smaller one. The fewer
    columns it takes, and the more such sets a row has, the higher its score. ``columns`` says what share of all scores
    each column contributes: what to coarsen first. In columns whose missing values are a wildcard or suppressed, a
    blank cell takes part in no minimal sample unique. All sets of columns up to ``size`` are searched, from small to
    large, and a set is skipped for rows that are unique on a part of it.
    """

    about: ClassVar[About] = About.DISCLOSURE
    reference: ClassVar[str] = (
        "Manning, A. M., Haglin, D. J., Keane, J. A. (2008). A recursive search algorithm for statistical disclosure "
        "assessment. Data Mining and Knowledge Discovery 16. doi:10.1007/s10618-007-0078-6"
    )

    fraction: Annotated[float, Field(gt=0, lt=1)] = 0.01
    """Sampling fraction behind the DIS score; 0.01 is the custom of SUDA programs, not a property of your sample."""
    size: Annotated[int, Field(ge=1)] | None = None
    """Largest set of columns searched; all of them when left out (at most a million sets)."""
    score: Literal["elliot", "ihsn"] = "elliot"
    """Weight of a minimal sample unique of k of M columns: (M - k)!, or (2^(M-k) - 1) / C(M, k)."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        names = quasi_of(Data(table=pair.release.table, schema=pair.original.schema))
        codes = [pair.masked[name].rank("dense").fill_null(0).cast(pl.Int64).to_numpy() for name in names]
        depth = min(self.size or len(names), len(names))
        sets = sum(comb(len(names), count) for count in range(1, depth + 1))
        if sets > 1_000_000:
            raise NotApplicable(
                f"{len(names)} columns have {sets:,} sets of up to {depth}.", fix="Search fewer with `size`."
            )
        schema = pair.original.schema
        blank = [pair.masked[name].is_null().to_numpy() & (schema.column(name).missing != "category") for name in names]
        with progress.task("special uniques", sets) as tick:
            found, share = scores(codes, blank, depth, self.score, tick)
        rare = found > 0
        dis = dis_scores(found, codes, self.fraction)
        detail = {
            "rows": int(rare.sum()),
            "mean": float(dis.mean()),
            "histogram": [
                {
                    "low": low / 10,
                    "high": (low + 1) / 10,
                    "rows": int(((dis > low / 10) & (dis <= (low + 1) / 10)).sum()),
                }
                for low in range(10)
            ],
        }
        contribution = {name: float(part) for name, part in zip(names, share, strict=True)}
        return MeasureResult(measure=self.part_name(), value=float(dis.max()), columns=contribution, detail=detail)


def scores(
    codes: list[Ints], blank: list[npt.NDArray[np.bool_]], depth: int, kind: str, tick: Tick
) -> tuple[Floats, Floats]:
    """SUDA score of each row, and the share of all scores in which each column takes part.

    A blank cell that means "unknown" cannot be part of what makes a row unique.
    """
    rows, width = len(codes[0]), len(codes)
    score = np.zeros(rows)
    part = np.zeros(width)
    # Only rows that are unique on all columns can be unique on some.
    everything = _labels(codes, tuple(range(width)))
    special = np.flatnonzero(np.bincount(everything)[everything] == 1)
    before: dict[tuple[int, ...], npt.NDArray[np.bool_]] = {}
    for size in range(1, depth + 1):
        here: dict[tuple[int, ...], npt.NDArray[np.bool_]] = {}
        worth = factorial(width - size) if kind == "elliot" else (2 ** (width - size) - 1) / comb(width, size)
        for chosen in combinations(range(width), size):
            tick(1)
            label = _labels(codes, chosen)
            unique = np.bincount(label)[label[special]] == 1
            here[chosen] = unique
            minimal = unique.copy()
            for column in chosen:
                minimal &= ~blank[column][special]
            if size > 1:
                for left_out in chosen:
                    minimal &= ~before[tuple(column for column in chosen if column != left_out)]
            score[special[minimal]] += worth
            part[list(chosen)] += worth * minimal.sum()
        before = here
    total = score.sum()
    return score, part / total if total > 0 else part


def dis_scores(score: Floats, codes: list[Ints], fraction: float) -> Floats:
    """Scores spread so that their mean fits the DIS measure: the chance that a match on a unique row is right."""
    label = _labels(codes, tuple(range(len(codes))))
    size = np.bincount(label)[label]
    unique, pairs = int((size == 1).sum()), int((size == 2).sum())
    found = np.zeros(len(score))
    rare = score > 0
    if not rare.any():
        return found
    correct = unique * fraction / (unique * fraction + pairs * (1 - fraction))
    power = 1 + (8 - len(codes)) / 20
    scaled = score[rare] ** power * (score[rare] ** -power).sum()
    found[rare] = 1 / (1 + (unique / correct - unique) / scaled)
    return found


def _labels(codes: list[Ints], chosen: tuple[int, ...]) -> Ints:
    return number_rows([codes[index] for index in chosen])[0].astype(np.int64)
