"""Clustering utility: agreement of k-means clusters from release and original."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._selection import drawn
from sfumato.measures.utility._values import modest_threads, need_sklearn
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Clustering(Measure):
    """Agreement (adjusted Rand index) of the clusters that k-means finds in the release and in the original.

    Both sets of cluster centres divide the same original rows; 1: the same division, 0: no more in common than by
    chance. k-means itself is not stable where the data has no clusters: the detail gives the agreement of two runs
    on the original (``stability``), which no release can be expected to exceed. The interval comes from ``repeats``
    starts of k-means.
    """

    about: ClassVar[About] = About.UTILITY
    better: ClassVar[Literal["low", "high"]] = "high"
    main: ClassVar[str | None] = "clusters"
    reference: ClassVar[str] = "Hubert, Arabie: Comparing partitions (1985), doi:10.1007/BF01908075"

    clusters: Annotated[int, Field(ge=2, le=100)] = 5
    """How many clusters are sought."""
    rows: Annotated[int, Field(ge=100)] = 20_000
    """Most rows of each table that are used, drawn at random."""
    repeats: Annotated[int, Field(ge=2, le=50)] = 5
    """How many times both are clustered anew."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        need_sklearn(self.part_name())
        from sklearn.cluster import KMeans
        from sklearn.metrics import adjusted_rand_score

        random = rng.generator
        (before, _), (after, _) = drawn(pair, self.rows, random, one_hot=True)
        if min(len(np.unique(before, axis=0)), len(np.unique(after, axis=0))) < self.clusters:
            raise NotApplicable(f"One of the tables has fewer than {self.clusters} different rows to cluster.")
        agreement, stability = [], []
        last = None
        with progress.task("clustering", self.repeats) as tick, modest_threads(len(before)):
            for _ in range(self.repeats):
                seed = int(random.integers(2**31))
                old, new = (KMeans(self.clusters, n_init=3, random_state=seed).fit(x) for x in (before, after))
                here = old.predict(before)
                agreement.append(float(adjusted_rand_score(here, new.predict(before))))
                if last is not None:
                    stability.append(float(adjusted_rand_score(here, last)))
                last = here
                tick(1)
        value = float(np.mean(agreement))
        half = 1.96 * float(np.std(agreement, ddof=1)) / np.sqrt(len(agreement))
        return MeasureResult(
            measure=self.part_name(),
            value=value,
            low=max(-1.0, value - half),
            high=min(1.0, value + half),
            detail={"stability": float(np.mean(stability))},
        )
