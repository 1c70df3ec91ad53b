"""Decision tree with differential privacy: splits chosen on noisy histograms, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from sfumato.arrays import Floats, Ints
from sfumato.learning.binning import BinnedClassifier, BinnedFeatures
from sfumato.learning.noisy_sums import COUNT_STEPS, NoisySums
from sfumato.learning.tree import descend, split_table

_BINS_SHARE, _LEAVES_SHARE = Fraction(1, 10), Fraction(1, 4)
_CLEAR = 4.0
"""Standard deviations of the noise of a count below which a bin is not seen."""


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionTree(ClassifierMixin, BinnedClassifier):  # type: ignore[misc]
    """Decision tree with differential privacy.

    On every level, the counts of all bins and classes in all nodes are measured at once: nodes are disjoint, so that a
    level costs the same whatever its number of nodes. The split with the largest gain on the noisy counts is chosen,
    which is post-processing. Categories are ordered by their noisy share of the last class.

    Parameters are those of :class:`~sfumato.learning.LogisticRegression` without ``steps``, and:

    Parameters
    ----------
    max_depth
        Depth of the tree.
    bins
        The largest number of bins of a number.

    Attributes
    ----------
    features_, right_
        The feature of every inner node, and for each of its bins whether a row goes to the right child.
    leaves_
        The probability of every class in every leaf.
    """

    max_depth: int = 6
    bins: int = 12

    def fit(self, X: Any, y: Any) -> DecisionTree:  # noqa: N803
        """Charge the budget and grow the tree."""
        start = self._fit_bins(X, y, share=_BINS_SHARE, most={"max_depth": 12, "bins": 256})
        codes, lines, sums, classes = start.codes, start.lines, start.sums, len(self.classes_)
        self.features_, self.right_ = _grow(lines, codes, start.binned, classes, depth=self.max_depth, sums=sums)
        leaf = descend(lines, self.features_, self.right_, depth=self.max_depth)
        exact = np.bincount(leaf * classes + codes, minlength=2**self.max_depth * classes)
        counts = sums.measure(exact * COUNT_STEPS, distance=COUNT_STEPS**2, share=_LEAVES_SHARE) / COUNT_STEPS
        floor = sums.deviation(distance=COUNT_STEPS**2, share=_LEAVES_SHARE) / COUNT_STEPS
        raised = np.maximum(counts.reshape(-1, classes), 0)
        overall = raised.sum(axis=0) + 1
        smooth = raised + floor * overall / overall.sum()
        self.leaves_ = smooth / smooth.sum(axis=1, keepdims=True)
        return self

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """The probability of every class, in the order of ``classes_``."""
        lines = self._lines(X)
        return np.asarray(np.asarray(self.leaves_)[descend(lines, self.features_, self.right_, depth=self.max_depth)])


def _grow(
    lines: Ints, codes: Ints, binned: BinnedFeatures, classes: int, *, depth: int, sums: NoisySums
) -> tuple[Ints, npt.NDArray[np.int8]]:
    features, right = split_table(2**depth - 1, binned.sizes)
    share, distance = (1 - _BINS_SHARE - _LEAVES_SHARE) / depth, len(lines) * COUNT_STEPS**2
    noise = sums.deviation(distance=distance, share=share) / COUNT_STEPS
    for level in range(depth):
        nodes = 2**level
        node = descend(lines, features, right, depth=level)
        exact = [
            np.bincount((node * size + line) * classes + codes, minlength=nodes * size * classes)
            for line, size in zip(lines, binned.sizes, strict=True)
        ]
        noisy = sums.measure(np.concatenate(exact) * COUNT_STEPS, distance=distance, share=share) / COUNT_STEPS
        tables = [
            part.reshape(nodes, size, classes)
            for part, size in zip(
                np.split(noisy, np.cumsum([len(part) for part in exact])[:-1]), binned.sizes, strict=True
            )
        ]
        for number in range(nodes):
            best = max(
                (_best_split(table[number], ordered, noise), feature)
                for feature, (table, ordered) in enumerate(zip(tables, binned.ordered, strict=True))
            )
            (_, turns), feature = best
            place = 2**level - 1 + number
            features[place] = feature
            right[place, : len(turns)] = turns
    return features, right


def _best_split(counts: Floats, ordered: bool, noise: float) -> tuple[float, tuple[int, ...]]:
    """Gain of the best split of noisy counts (bin, class), and the bins that go right.

    Bins below the noise count zero: a split that gains from many of them would be a split of noise. Categories are
    ordered by their share of the last class.
    """
    counts = np.where(counts.sum(axis=1, keepdims=True) > _CLEAR * noise, np.maximum(counts, 0), 0)
    shares = counts[:, -1] / np.maximum(counts.sum(axis=1), 1e-9)
    order = np.arange(len(counts)) if ordered else np.argsort(shares)
    left = np.cumsum(counts[order], axis=0)[:-1]
    total = counts.sum(axis=0)
    if not len(left):
        return 0.0, (0,) * len(counts)
    gains = _purity(left) + _purity(total - left) - _purity(total)
    cut = int(np.argmax(gains))
    turns = np.ones(len(counts), dtype=np.int64)
    turns[order[: cut + 1]] = 0
    return float(gains[cut]), tuple(turns.tolist())


def _purity(counts: Floats) -> Floats:
    """Sum of squared class counts over the size of a node: the larger, the purer."""
    return np.asarray((counts**2).sum(axis=-1) / np.maximum(counts.sum(axis=-1), 1e-9))
