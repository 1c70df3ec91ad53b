"""Nearest-neighbour risk: true records among the k nearest of their masked record."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.disclosure._numeric import beside
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class NeighbourRisk(Measure):
    """The share of masked rows whose true row is among the k original rows nearest to it.

    With k = 1 this is distance-based linkage from the release to the original; a larger k shows how many are nearly
    found. ``detail`` gives the share for each k up to the one asked for. Columns are standardized; ``robust`` takes
    Mahalanobis distance with medians and rank correlations instead, which outliers do not stretch.
    """

    about: ClassVar[About] = About.DISCLOSURE
    main: ClassVar[str] = "k"
    examples = ({"k": 3}, {"k": 3, "robust": True})
    reference: ClassVar[str] = (
        "Templ, M., Meindl, B. (2008). Robust statistics meets SDC: new disclosure risk measures for continuous "
        "microdata masking. LNCS 5262. doi:10.1007/978-3-540-87471-3_15"
    )

    k: Annotated[int, Field(ge=1, le=1000)]
    """How many nearest rows are looked at."""
    robust: bool = False
    """Whether distances are taken on robustly whitened columns."""
    columns: tuple[str, ...] | None = None
    """Columns compared; all that hold numbers when left out."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        from scipy.spatial import cKDTree

        both = beside(pair, self.columns)
        original, released = _whitened(both.original, both.released) if self.robust else _scaled(both)
        k = min(self.k, len(original))
        own = np.sqrt(((original - released) ** 2).sum(axis=1))
        distance, _ = cKDTree(original).query(released, k=k, workers=-1)
        distance = distance.reshape(len(released), k)
        # As near as the k-th nearest counts: equal records are not told apart.
        shares = [float((own <= distance[:, place] * (1 + 1e-9) + 1e-12).mean()) for place in range(k)]
        detail: dict[str, object] = {"by_k": {str(place + 1): share for place, share in enumerate(shares)}}
        return MeasureResult(measure=self.part_name(), value=shares[-1], detail=detail)


def _scaled(both: Any) -> tuple[Floats, Floats]:
    spread = both.original.std(axis=0)
    spread[spread == 0] = 1.0
    middle = both.original.mean(axis=0)
    return (both.original - middle) / spread, (both.released - middle) / spread


def _whitened(original: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Both tables turned so that the original has unit robust spread in every direction."""
    from scipy.stats import rankdata

    middle = np.median(original, axis=0)
    spread = 1.4826 * np.median(np.abs(original - middle), axis=0)
    spread = np.where(spread > 0, spread, np.where(original.std(axis=0) > 0, original.std(axis=0), 1.0))
    ranks = rankdata(original, axis=0)
    varying = ranks.std(axis=0) > 0
    correlation = np.eye(original.shape[1])
    if varying.sum() > 1:
        # Spearman's correlation turned into the Pearson correlation of a normal with the same ranks.
        part = 2 * np.sin(np.pi / 6 * np.corrcoef(ranks[:, varying], rowvar=False))
        correlation[np.ix_(varying, varying)] = part
    values, vectors = np.linalg.eigh(correlation)
    kept = values > 1e-6 * values.max()
    turn = vectors[:, kept] / np.sqrt(values[kept])
    return (original - middle) / spread @ turn, (released - middle) / spread @ turn
