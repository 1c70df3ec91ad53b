"""Bivariate distributions: total variation distance of pairs of columns."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from scipy import sparse

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, Picture, ReleasePair
from sfumato.measures.utility._dependence import couples, over_couples
from sfumato.measures.utility._spread import Spread, comparable, spread
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Pairs(Measure):
    """Total variation distance between the joint distributions of every two columns before and after, averaged.

    Read like :class:`Marginals`, on the cross table of two columns. A pair of coarse values is spread evenly over the
    combinations it may stand for, so the distance is at least as large as that of either column alone. Tables of more
    than 64 columns are judged by 2,000 pairs drawn at random, with an interval.
    """

    about: ClassVar[About] = About.UTILITY
    label: ClassVar[str] = "change of pairs of columns"
    meaning: ClassVar[str] = (
        "Mean total variation distance of pairs of columns: 0 if all shares are the same, 1 if none is."
    )
    default_rank: ClassVar[int | None] = 6
    publishable: ClassVar[bool] = True
    picture: ClassVar[Picture] = Picture.MATRIX
    main: ClassVar[str] = "cells"

    cells: Annotated[int, Field(ge=2, le=1000)] = 20
    """The most cells per column; a cross table has at most its square."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        names = comparable(pair)
        if len(names) < 2:
            raise NotApplicable("The release and the original share fewer than two columns that could be compared.")
        spreads = {name: spread(pair, name, self.cells) for name in names}
        found: dict[str, float] = {}
        chosen = couples(names, rng.generator)
        with progress.task("pairs", len(chosen)) as tick:
            for left, right in chosen:
                found[f"{left} × {right}"] = joint_distance(spreads[left], spreads[right])
                tick(1)
        return over_couples(self.part_name(), names, found, {})


def joint_distance(left: Spread, right: Spread) -> float:
    """Total variation distance of the cross tables of two columns."""
    before = np.bincount(left.original * right.cells + right.original, minlength=left.cells * right.cells)
    rows = len(left.released)
    counts = sparse.coo_matrix(
        (np.ones(rows), (left.released, right.released)), shape=(left.matrix.shape[0], right.matrix.shape[0])
    ).tocsr()
    after = (left.matrix.T @ counts @ right.matrix).toarray().ravel()
    return float(np.abs(before / len(left.original) - after / rows).sum() / 2)
