"""Sampling weights of a release and the population size of each equivalence class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.dataset import Data, Role
from sfumato.errors import NotApplicable
from sfumato.measures.base import ReleasePair
from sfumato.measures.classes import classes, quasi_of
from sfumato.measures.disclosure._population import individual_risk


@dataclass(frozen=True, kw_only=True)
class Weighted:
    """Individual risk of the rows that are not suppressed."""

    risk: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]
    """Their rows in the release."""
    fits: npt.NDArray[np.int64]
    population: npt.NDArray[np.float64]
    """Estimated size of their class in the population."""


def weighted_risk(pair: ReleasePair, fraction: float | None, formula: str) -> Weighted:
    """Individual risk from the release's weight column, or from one sampling fraction for all."""
    released = Data(table=pair.release.table, schema=pair.original.schema)
    names = quasi_of(released)
    columns = [name for name in pair.original.schema.names(Role.WEIGHT) if name in released.table.columns]
    if fraction is not None:
        weights = np.full(released.rows, 1 / fraction)
    elif columns:
        weights = released.table.column(columns[0]).cast(float, strict=False).to_numpy()
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise NotApplicable(
                f"The weights in `{columns[0]}` of the release are not all positive numbers.",
                fix="Release the weights, or give the sampling `fraction`.",
            )
    else:
        raise NotApplicable(
            "The release has no sampling weights, so nothing is known about the population.",
            fix="Declare a column of role `weight`, or give the sampling `fraction`.",
        )
    missing = {name: pair.original.schema.column(name).missing for name in names}
    found = classes(pair.masked, names, missing, weights)
    if found.rows == 0:
        raise NotApplicable("Every row of the release is suppressed.")
    label = found.label[found.label >= 0]
    fits, population = found.fit[label], found.weight[label]
    return Weighted(
        risk=individual_risk(fits, population, formula=formula),
        rows=np.flatnonzero(found.label >= 0),
        fits=fits,
        population=population,
    )
