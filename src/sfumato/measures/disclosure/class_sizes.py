"""Sizes of equivalence classes."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sfumato.measures.base import About, Measure, MeasureResult, Picture, ReleasePair
from sfumato.measures.disclosure._classes import classes, quasi_of, released_classes
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class ClassSizes(Measure):
    """The smallest equivalence class of the release, and the histogram of class sizes before and after.

    A class is the set of rows with the same quasi-identifiers. The value is the size of the smallest class (the k of
    k-anonymity). Suppressed rows, all of whose quasi-identifiers are ``*``, are counted apart.
    """

    about: ClassVar[About] = About.DISCLOSURE
    better: ClassVar[Literal["low", "high"]] = "high"
    label: ClassVar[str] = "smallest equivalence class"
    meaning: ClassVar[str] = "The smallest number of records that share the same values of all quasi-identifiers."
    headline: ClassVar[str] = "records or more look alike"
    default_rank: ClassVar[int | None] = 1
    publishable: ClassVar[bool] = True
    publishable_detail: ClassVar[frozenset[str]] = frozenset({"histogram"})
    before_key: ClassVar[str] = "smallest_before"
    picture: ClassVar[Picture] = Picture.CLASS_SIZES

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        released = released_classes(pair)
        names = quasi_of(pair.original)
        before = classes(
            pair.original.table.frame, names, {name: pair.original.schema.column(name).missing for name in names}
        )
        detail = {
            "average": released.rows / len(released.fit) if len(released.fit) else None,
            "classes": len(released.fit),
            "suppressed": released.suppressed,
            "histogram": histogram(released.fit, released.own),
            "smallest_before": int(before.fit.min()) if len(before.fit) else None,
            "average_before": before.rows / len(before.fit) if len(before.fit) else None,
            "classes_before": len(before.fit),
            "histogram_before": histogram(before.fit, before.own),
        }
        if len(released.fit) == 0:
            return MeasureResult(
                measure=self.part_name(), value=None, detail=detail, reason="Every row of the release is suppressed."
            )
        return MeasureResult(measure=self.part_name(), value=float(released.fit.min()), detail=detail)


def histogram(sizes: npt.NDArray[np.int64], own: npt.NDArray[np.int64]) -> list[dict[str, int]]:
    """Classes and rows per range of sizes; ranges 1, 2, 3–4, 5–9, 10–19, 20–49, 50–99, 100–... ."""
    edges = [1, 2, 3, 5, 10, 20, 50, 100, 1000, 10_000, 100_000, 2**62]
    place = np.searchsorted(edges, sizes, side="right") - 1
    found = []
    for index, (low, above) in enumerate(pairwise(edges)):
        held = sizes[place == index]
        rows = int(own[place == index].sum())
        if len(held):
            high = above - 1 if above < 2**62 else int(held.max())
            found.append({"low": low, "high": high, "classes": len(held), "rows": rows})
    return found
