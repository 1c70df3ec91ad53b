"""How far each released row can be trusted to be a real person's, where made-up rows were added."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.masking.base import method_of

__all__ = ["trust_in_rows"]


def trust_in_rows(view: View) -> npt.NDArray[np.float64] | None:
    """Per released row, the chance that what it says beside the known columns is its own; None without counterfeits.

    A counterfeit takes all but the quasi-identifiers from one real record, which is in the release, too. So of m rows
    that agree in all other columns at most one is real, and a row that agrees with no other there is no counterfeit
    made from one record. Among equally trusted rows those with rarer single values are slightly preferred: what was
    copied is there at least twice.
    """
    if not any(method_of(step).adds_rows for step in view.steps):
        return None
    frame = view.release.table.frame
    rest = [name for name in frame.columns if name not in view.knows]
    if not rest:
        return None
    found = frame.select(
        pl.len().over(rest).alias("alike"), *(pl.len().over(name).log().alias(f"{name} alone") for name in rest)
    )
    rare = found.drop("alike").sum_horizontal().to_numpy()
    alike = found["alike"].cast(pl.Float64).to_numpy()
    trust: npt.NDArray[np.float64] = (1 + 1e-6 * (1 - rare / (rare.max() + 1.0))) / alike
    return trust
