"""Distance-based record linkage: each target is linked to the nearest released row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.features import points
from sfumato.attacks.nearest_neighbours import nearest, squared_distance
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario


class DistanceLinkage(Linking):
    """An attacker who knows values of a person names the released row at the smallest distance from them.

    The attack is meant for perturbed releases (noise, swapping, microaggregation), in which no row matches exactly.
    Columns are standardized and their squared differences summed (Euclidean), or whitened by the covariance of both
    files (Mahalanobis), so that differences count more where the files vary less. Numbers, dates, ranges and categories
    with up to 64 values are used; a coarse category counts as the mixture of the values it may represent. The search is
    exact. Of several nearest rows each counts with its probability.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.SIMILARITY
    cheap: ClassVar[bool] = True
    pairwise: ClassVar[bool] = True
    main: ClassVar[str] = "metric"
    examples = ({}, {"metric": "mahalanobis", "knows": ["height", "income", "rent", "commute"]})
    reference: ClassVar[str] = (
        "Torra, V., Domingo-Ferrer, J. (2003). Record linkage methods for multidatabase data mining. "
        "doi:10.1007/978-3-540-36519-8_7"
    )

    metric: Literal["euclidean", "mahalanobis"] = "euclidean"
    """How the differences in several columns are combined."""
    weights: dict[str, float] = Field(default_factory=dict)
    """Weights of columns in the squared distance; 1 for columns not listed. Only for the Euclidean metric."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        numeric = any(scenario.release.table.column(name).dtype.is_numeric() for name in scenario.known)
        return (cls(),) if numeric or (scenario.known and not scenario.unperturbed) else ()

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        features = points(view, weights=self.weights if self.metric == "euclidean" else None, progress=progress)
        targets, released = features.targets, features.released
        if self.metric == "mahalanobis":
            targets, released = whitened(targets, released)
        near = nearest(targets, released, rng.generator, progress, "distance linkage")
        detail = {"columns": list(features.names), "left out": list(features.left_out)}

        def chance(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            """One over the number of nearest rows for each of them, 0 for all others."""
            count = len(rows)
            close = squared_distance(targets[:count], released[rows]) <= near.distance[:count]
            return np.where(close, 1 / near.ties[:count], 0.0)

        return Guesses.of_rows(
            near.row,
            1 / near.ties,
            {name: value for name, value in detail.items() if value},
            tried=len(near.row),
            chance=chance,
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
        raise NotApplicable("All known columns are constant in both files, so no row is nearer than another.")
    turn = vectors[:, kept] / np.sqrt(values[kept])
    return np.ascontiguousarray(targets @ turn), np.ascontiguousarray(released @ turn)
