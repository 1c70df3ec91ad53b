"""k-means clustering with rounded centres."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.integral.encoding import Codes, Encoding
from sfumato.integral.learners._rounded import RoundedLearner, scaled
from sfumato.integral.records import Records


class KMeansLearner(RoundedLearner):
    """Lloyd's algorithm from fixed centres on the diagonal of the bounded space; centres are rounded and sorted.

    The start does not depend on the data. A record belongs to the nearest centre, among equals the first; a centre
    without records stays where it is.
    """

    main = "clusters"
    examples = ({"clusters": 2, "step": 0.05},)
    needs_label = False

    clusters: int = Field(ge=1, le=100)
    """Number of centres."""
    iterations: int = Field(default=20, ge=1, le=1000)
    """Steps of Lloyd's algorithm, at most."""

    def fit(self, records: Records, counts: Codes) -> bytes:
        points, _ = scaled(records)
        centres = np.repeat(((np.arange(self.clusters) + 0.5) / self.clusters)[:, None], points.shape[1], axis=1)
        weights = counts.astype(np.float64)
        for _ in range(self.iterations):
            nearest = _distances(points, centres).argmin(axis=1)
            mass = np.bincount(nearest, weights, self.clusters)
            sums = np.stack([np.bincount(nearest, weights * column, self.clusters) for column in points.T], axis=1)
            moved = np.where(mass[:, None] > 0, sums / np.maximum(mass, 1)[:, None], centres)
            if (moved == centres).all():
                break
            centres = moved
        multiples = np.frombuffer(self.rounded(centres), dtype=np.int64).reshape(centres.shape)
        return multiples[np.lexsort(multiples.T[::-1])].tobytes()

    def score(self, model: bytes, records: Records) -> float:
        """The mean squared distance to the nearest centre, with a minus sign."""
        points, _ = scaled(records)
        centres = self.parameters(model).reshape(self.clusters, -1)
        return -float(np.average(_distances(points, centres).min(axis=1), weights=records.counts))

    def describe(self, model: bytes, encoding: Encoding) -> list[str]:
        centres = np.asarray(self.to_json(model)).reshape(self.clusters, -1)
        names = [column.name for column in encoding.features]
        return [", ".join(f"{name} {value:g}" for name, value in zip(names, row, strict=True)) for row in centres]


def _distances(points: Floats, centres: Floats) -> Floats:
    return np.asarray(((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2))
