"""Row samples for models, and intervals of their scores."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.errors import NotApplicable
from sfumato.measures.base import ReleasePair
from sfumato.measures.utility._spread import comparable
from sfumato.measures.utility._values import features


def persons(pair: ReleasePair) -> tuple[Ints, Ints]:
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


def drawn(
    pair: ReleasePair, most: int, random: np.random.Generator, *, one_hot: bool
) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
    """All columns of both tables as a matrix for a model, and which rows these are: at most so many, at random."""
    names = comparable(pair)
    if not names:
        raise NotApplicable("The tables have no column in common that could be compared.")
    before, after = features(pair, names, random, one_hot=one_hot)
    left, right = take(len(before), most, random), take(len(after), most, random)
    return (before[left], left), (after[right], right)


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
