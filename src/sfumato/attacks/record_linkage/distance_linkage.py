"""Distance-based record linkage: each person is linked to the nearest released row."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, View
from sfumato.attacks.features import points
from sfumato.attacks.nearest_neighbours import nearest
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["DistanceLinkage"]


class DistanceLinkage(Linking):
    """Somebody who knows values of a person names the released row that is nearest to them.

    For perturbed releases (noise, swapping, microaggregation), where no row fits exactly. Columns are standardized and
    their squared differences added up (the arithmetic mean distance), or whitened by the covariance of both files
    (Mahalanobis), which makes differences count where files vary little. Numbers, dates, ranges and categories with up
    to 64 values take part; a coarse category counts as the mixture of what it may stand for. The search is exact;
    equally near rows are chosen among at random.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    pairwise: ClassVar[bool] = True
    main: ClassVar[str] = "metric"
    examples: ClassVar = ({}, {"metric": "mahalanobis", "knows": ["height", "income", "rent", "commute"]})
    reference: ClassVar[str] = (
        "Torra, V., Domingo-Ferrer, J. (2003). Record linkage methods for multidatabase data mining. "
        "doi:10.1007/978-3-540-36519-8_7"
    )

    metric: Literal["euclidean", "mahalanobis"] = "euclidean"
    """How differences in several columns are added up."""
    weights: Annotated[dict[str, float], Field(default_factory=dict)]
    """Weight of a column in the squared distance, 1 for those not named. Only for the Euclidean metric."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        found = points(view, weights=self.weights if self.metric == "euclidean" else None, progress=progress)
        targets, released = found.targets, found.released
        if self.metric == "mahalanobis":
            targets, released = whitened(targets, released)
        near = nearest(targets, released, rng.generator, progress, "distance linkage")
        detail = {"columns": list(found.names), "left out": list(found.left_out)}
        return Guesses.of_rows(
            near.row, 1 / near.ties, {name: value for name, value in detail.items() if value}, tried=len(near.row)
        )


def whitened(
    targets: npt.NDArray[np.float64], released: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Both files rotated and scaled so that Euclidean distance becomes Mahalanobis distance by V(A) + V(B)."""
    enough = len(targets) > 2 * targets.shape[1]
    spread = np.cov(released, rowvar=False) + (np.cov(targets, rowvar=False) if enough else 0.0)
    spread = np.atleast_2d(spread)
    values, vectors = np.linalg.eigh(spread)
    # Directions in which neither file varies carry no information and would divide by zero.
    kept = values > values.max() * 1e-10
    if not kept.any():
        raise NotApplicable("Neither file varies in what the intruder knows, so no row is nearer than another.")
    turn = vectors[:, kept] / np.sqrt(values[kept])
    return np.ascontiguousarray(targets @ turn), np.ascontiguousarray(released @ turn)
