"""The release rows that compete for a person: those that agree in every column that the masking left unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.nearest_neighbours import BoxTree, distinct_points
from sfumato.attacks.record_linkage._unchanged_columns import apart, unchanged_columns
from sfumato.progress import Progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def exact_columns(view: View, people: pl.DataFrame, rows: Ints) -> tuple[str, ...]:
    """The columns that the masking left unchanged and in which ``people`` agree with their release ``rows``."""
    released = view.release.table.frame
    return tuple(name for name in unchanged_columns(view) if people[name].eq_missing(released[name].gather(rows)).all())


@dataclass(frozen=True, kw_only=True)
class CompetingRows:
    """The distinct rows of a release as points, and the rows at each point."""

    points: Floats
    block: Ints
    """The block of each point. Only points of a person's own block compete for them."""
    order: Ints
    starts: Ints
    place: Ints
    """The point number of each release row."""

    @classmethod
    def of(cls, released: Floats, block: Ints) -> CompetingRows:
        points, order, starts = distinct_points(np.column_stack([released, block]))
        place = np.empty(len(released), dtype=np.int64)
        place[order] = np.repeat(np.arange(len(points)), np.diff(starts))
        return cls(
            points=np.ascontiguousarray(points[:, :-1]),
            block=points[:, -1].astype(np.int64),
            order=order,
            starts=starts,
            place=place,
        )

    def near(
        self, people: Floats, block: Ints, weights: Floats, count: int, progress: Progress
    ) -> Sequence[Ints] | None:
        """The ``count`` nearest points of each person in their block; None if all points compete for everybody."""
        one_block = bool((self.block == self.block[0]).all() and (block == self.block[0]).all())
        if len(self.points) <= 4 * count:
            if one_block:
                return None
            count = len(self.points)
        scale = np.sqrt(np.maximum(weights, 0.0) / max(float(weights.max()), 1e-300))
        tree = BoxTree.of(apart(self.points * scale, self.block))
        near, _ = tree.near(apart(people * scale, block), count, progress)
        return [rows[self.block[rows] == own] for rows, own in zip(near, block, strict=False)]
