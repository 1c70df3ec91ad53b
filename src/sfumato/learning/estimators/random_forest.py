"""Random forest with differential privacy: random trees whose leaves are measured together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from sfumato.arrays import Floats, Ints
from sfumato.dp.os_random import words
from sfumato.learning.binning import BinnedClassifier, BinnedFeatures
from sfumato.learning.noisy_sums import COUNT_STEPS
from sfumato.learning.tree import descend, split_table

_BINS_SHARE = Fraction(1, 10)


@dataclass(kw_only=True, eq=False, repr=False)
class RandomForest(ClassifierMixin, BinnedClassifier):  # type: ignore[misc]
    """Random forest with differential privacy: extremely randomized trees.

    Splits are drawn at random, balanced by the noisy histograms of the features, so that they cost nothing. The class
    counts in the leaves of all trees are measured at once on all rows. A prediction adds the evidence of all leaves.

    Parameters are those of :class:`~sfumato.learning.LogisticRegression` without ``steps``, and:

    Parameters
    ----------
    n_estimators
        Number of trees.
    max_depth
        Depth of the trees.
    bins
        The largest number of bins of a number.
    """

    n_estimators: int = 60
    max_depth: int = 4
    bins: int = 16

    def fit(self, X: Any, y: Any) -> RandomForest:  # noqa: N803
        """Charge the budget and measure the leaves."""
        most = {"n_estimators": 10_000, "max_depth": 12, "bins": 256}
        start = self._fit_bins(X, y, share=_BINS_SHARE, most=most)
        codes, lines, sums, classes = start.codes, start.lines, start.sums, len(self.classes_)
        draw = np.random.default_rng(words(4))
        trees = [_random_tree(start.binned, self.max_depth, draw) for _ in range(self.n_estimators)]
        exact = np.stack(
            [
                np.bincount(
                    descend(lines, features, right, depth=self.max_depth) * classes + codes,
                    minlength=2**self.max_depth * classes,
                )
                for features, right in trees
            ]
        )
        distance, share = self.n_estimators * COUNT_STEPS**2, 1 - _BINS_SHARE
        noisy = sums.measure(exact * COUNT_STEPS, distance=distance, share=share) / COUNT_STEPS
        noise = sums.deviation(distance=distance, share=share) / COUNT_STEPS
        self.features_ = np.stack([features for features, _ in trees])
        self.right_ = np.stack([right for _, right in trees])
        self.leaves_ = _evidence(noisy.reshape(self.n_estimators, -1, classes), noise)
        return self

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """The probability of every class, in the order of ``classes_``."""
        lines = self._lines(X)
        total = np.zeros((lines.shape[1], len(self.classes_)))
        for features, right, leaves in zip(self.features_, self.right_, self.leaves_, strict=True):
            total += np.asarray(leaves)[descend(lines, features, right, depth=self.max_depth)]
        return np.asarray(total / total.sum(axis=1, keepdims=True))


def _evidence(counts: Floats, noise: float) -> Floats:
    """Class shares per leaf, drawn towards the shares of the whole where a leaf is not above the noise."""
    seen = np.maximum(counts, 0)
    overall = seen.sum(axis=1, keepdims=True) + 1
    overall = overall / overall.sum(axis=-1, keepdims=True)
    smooth = seen + 2 * noise * overall
    return np.asarray(smooth / smooth.sum(axis=-1, keepdims=True))


def _random_tree(binned: BinnedFeatures, depth: int, draw: np.random.Generator) -> tuple[Ints, npt.NDArray[np.int8]]:
    features, right = split_table(2**depth - 1, binned.sizes)
    for node in range(len(features)):
        feature = int(draw.integers(len(binned.sizes)))
        weights = np.maximum(binned.counts[feature], 0) + 1e-9
        order = np.arange(len(weights)) if binned.ordered[feature] else draw.permutation(len(weights))
        position = np.cumsum(weights[order]) / weights.sum()
        features[node] = feature
        right[node, order] = position > draw.uniform(0.2, 0.8)
    return features, right
