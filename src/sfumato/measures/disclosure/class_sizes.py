"""Sizes of equivalence classes."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from sfumato.measures.base import MeasureResult, Picture
from sfumato.measures.classes import ClassCounts, ClassMeasure


class ClassSizes(ClassMeasure):
    """The smallest equivalence class of the release, and the histogram of class sizes before and after.

    A class is the set of rows with the same quasi-identifiers. The value is the size of the smallest class (the k of
    k-anonymity). Suppressed rows, all of whose quasi-identifiers are ``*``, are counted apart.
    """

    better: ClassVar[Literal["low", "high"]] = "high"
    label: ClassVar[str] = "smallest equivalence class"
    meaning: ClassVar[str] = "The smallest number of records that share the same values of all quasi-identifiers."
    headline: ClassVar[str] = "records or more look alike"
    default_rank: ClassVar[int | None] = 1
    publishable: ClassVar[bool] = True
    publishable_detail: ClassVar[frozenset[str]] = frozenset({"histogram"})
    before_key: ClassVar[str] = "smallest_before"
    picture: ClassVar[Picture] = Picture.CLASS_SIZES

    def of_classes(self, released: ClassCounts, before: ClassCounts | None) -> MeasureResult:
        detail: dict[str, object] = {"suppressed": released.suppressed}
        for end, found in (("", released), ("_before", before)):
            sizes = None if found is None or not len(found.fit) else found
            detail |= {
                f"average{end}": None if sizes is None else sizes.rows / len(sizes.fit),
                f"classes{end}": 0 if sizes is None else len(sizes.fit),
                f"histogram{end}": [] if sizes is None else histogram(sizes.fit, sizes.own),
                f"smallest{end}": None if sizes is None else int(sizes.fit.min()),
            }
        del detail["smallest"]
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
