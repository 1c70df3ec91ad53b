"""Which rows a model sees, and how sure a score is."""

from __future__ import annotations

import numpy as np

from tacit.measure.measure import Pair
from tacit.measure.utility._values import Floats, Ints

__all__ = ["auc", "auc_error", "persons", "take"]


def persons(pair: Pair) -> tuple[Ints, Ints]:
    """A number per row of original and release that is equal for the same person, where the row map tells."""
    original = np.arange(pair.original.rows)
    if pair.lineage is None:
        return original, np.arange(pair.release.table.rows) + pair.original.rows
    rows = pair.lineage.rows
    made_up = np.arange(len(rows)) + pair.original.rows
    return original, np.where(rows >= 0, rows, made_up)


def take(count: int, most: int, random: np.random.Generator) -> Ints:
    """All row numbers, or a random selection of ``most`` of them."""
    return np.arange(count) if count <= most else np.sort(random.choice(count, most, replace=False))


def auc(truth: Ints, score: Floats) -> float:
    """Area under the ROC curve: the chance that a random 1 scores above a random 0, ties counting half."""
    from scipy.stats import rankdata

    ranks = rankdata(score)
    ones = int(truth.sum())
    zeros = len(truth) - ones
    return float((ranks[truth == 1].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def auc_error(area: float, ones: int, zeros: int) -> float:
    """Standard error of an area under the curve (Hanley and McNeil 1982, doi:10.1148/radiology.143.1.7063747)."""
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (ones - 1) * (first - area**2) + (zeros - 1) * (second - area**2)
    return float(np.sqrt(max(spread, 0.0) / (ones * zeros)))
