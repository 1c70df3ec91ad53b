"""Weights of released rows when counterfeit rows were added: the probability that a row is real."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.masking.base import method_of


def counterfeit_weights(view: View) -> npt.NDArray[np.float64] | None:
    """For each released row the probability that its unknown columns are its own; None without counterfeits.

    A counterfeit copies all columns except the quasi-identifiers from one real record, which is in the release as well.
    So among m rows that agree in all these columns at most one is real, and a row that agrees with no other is not a
    counterfeit. Among rows of equal probability, those with rarer single values are slightly preferred, because copied
    values occur at least twice.
    """
    if not any(method_of(step).adds_rows for step in view.steps):
        return None
    frame = view.release.table.frame
    unknown = [name for name in frame.columns if name not in view.knows]
    if not unknown:
        return None
    counts = frame.select(
        pl.len().over(unknown).alias("alike"), *(pl.len().over(name).log().alias(f"{name} alone") for name in unknown)
    )
    frequency = counts.drop("alike").sum_horizontal().to_numpy()
    alike = counts["alike"].cast(pl.Float64).to_numpy()
    weights: npt.NDArray[np.float64] = (1 + 1e-3 * (1 - frequency / (frequency.max() + 1.0))) / alike
    return weights
