"""k-means clustering with differential privacy: a private partition as start, then noisy Lloyd steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics import pairwise_distances_argmin

from sfumato.arrays import Floats, Ints
from sfumato.dp.os_random import below
from sfumato.errors import BadParameter
from sfumato.learning.base import PrivateEstimator
from sfumato.learning.moments import noisy_moments
from sfumato.learning.noisy_sums import FEATURE_STEPS, NoisySums
from sfumato.learning.partition import noisy_cells

_MOMENTS, _CELLS, _CELL_MEANS = Fraction(1, 20), Fraction(1, 5), Fraction(1, 4)
"""Shares of the budget for the start: moments, counts of cells, means of cells. The rest is for Lloyd steps."""


@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """k-means clustering with differential privacy, of features scaled to -1 .. 1 by their public bounds.

    Half of the budget finds the start: the space is partitioned into cells that are small where people are, the mean of
    every cell is measured with noise, and k-means runs on the noisy cells, which is post-processing. The other half
    measures ``steps`` Lloyd steps on the rows.

    Parameters
    ----------
    n_clusters
        Number of clusters.
    steps
        Number of noisy Lloyd steps.
    epsilon, delta, bounds, categories, max_rows, ledger, dataset
        As for :class:`~sfumato.learning.LogisticRegression`.

    Attributes
    ----------
    cluster_centers_
        Centres of the scaled features.
    counts_
        The noisy number of rows of every cluster.
    """

    n_clusters: int = field(default=8, kw_only=False)
    categories: Any = None
    steps: int = 4

    def fit(self, X: Any, y: Any = None) -> KMeans:  # noqa: N803
        """Charge the budget and find the centres. ``labels_`` of the rows are not kept: they are not private."""
        self._check_budget()
        for name in ("n_clusters", "steps"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise BadParameter(f"`{name}` must be a whole number, 1 or larger.")
        rows, _ = self._checked_rows(X, reset=True)
        domain = self._domain()
        design = domain.in_steps(rows, constant=True)
        norm, sums = domain.squared_norm + 1, self._charge()
        moments, _, noise = noisy_moments(design, norm=norm, share=_MOMENTS, sums=sums)
        mean = np.clip(moments[-1, :-1], -1, 1)
        spread = np.sqrt(np.maximum(np.diag(moments)[:-1] - mean**2, 0) + noise)
        points = design[:, :-1] / FEATURE_STEPS
        cell, counts = noisy_cells(points, spread, share=_CELLS, sums=sums)
        means, counts = _noisy_means(design, cell, len(counts), norm=norm, share=_CELL_MEANS, sums=sums, old=mean)
        centers = _cluster(means, np.maximum(counts, 0.0), self.n_clusters)
        share = (1 - _MOMENTS - _CELLS - _CELL_MEANS) / self.steps
        for _ in range(self.steps):
            nearest = pairwise_distances_argmin(points, centers) if len(points) else np.zeros(0)
            labels = nearest.astype(np.int64)
            centers, counts = _noisy_means(
                design, labels, self.n_clusters, norm=norm, share=share, sums=sums, old=centers
            )
        self.cluster_centers_, self.counts_ = centers, counts
        return self

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def fit_predict(self, X: object, y: object = None) -> Ints:  # noqa: N803
        """Fit, and return the nearest centre of every row. The centres are private, the labels of rows are not."""
        return self.fit(X).predict(X)

    def predict(self, X: object) -> Ints:  # noqa: N803
        """The nearest centre of every row."""
        rows = self._fitted_rows(X)
        labels = pairwise_distances_argmin(self._domain().scaled(rows), self.cluster_centers_)
        return np.asarray(labels, dtype=np.int64)

    def transform(self, X: object) -> Floats:  # noqa: N803
        """Distances of every row to all centres, of scaled features."""
        rows = self._fitted_rows(X)
        features = self._domain().scaled(rows)
        return np.asarray(np.linalg.norm(features[:, None, :] - np.asarray(self.cluster_centers_), axis=2))

    def score(self, X: object, y: object = None) -> float:  # noqa: N803
        """Minus the sum of squared distances to the nearest centres, of scaled features."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())


def _noisy_means(
    design: Floats, groups: Ints, count: int, *, norm: int, share: Fraction, sums: NoisySums, old: Floats
) -> tuple[Floats, Floats]:
    """Noisy means and counts of groups of rows. A mean is drawn towards ``old`` where the noise is larger than it."""
    exact = np.stack([np.bincount(groups, weights=column, minlength=count) for column in design.T], axis=1)
    distance = norm * FEATURE_STEPS**2
    noisy = sums.measure(exact.astype(np.int64), distance=distance, share=share) / FEATURE_STEPS
    deviation = sums.deviation(distance=distance, share=share) / FEATURE_STEPS
    counts = noisy[:, -1]
    weight = np.clip((counts - deviation) / (3 * deviation), 0, 1)[:, None]
    means = np.clip(noisy[:, :-1] / np.maximum(counts, deviation)[:, None], -1, 1)
    return weight * means + (1 - weight) * old, counts


def _cluster(points: Floats, weights: Floats, count: int) -> Floats:
    """k-means of noisy, weighted cells: post-processing."""
    from sklearn.cluster import KMeans as PlainKMeans

    seed = int(below(1 << 31, 1)[0])
    points, cells = np.unique(points, axis=0, return_inverse=True)
    weights = np.bincount(cells.ravel(), weights=weights).astype(np.float64)
    if len(points) <= count or weights.sum() <= 0:
        extra = np.random.default_rng(seed).uniform(-1, 1, size=(count, points.shape[1]))
        return np.vstack([points, extra])[:count]
    plain = PlainKMeans(count, n_init=3, random_state=seed).fit(points, sample_weight=weights)
    return np.asarray(plain.cluster_centers_)
