"""Household risk: the probability that at least one member is linked."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.dataset import Role
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.disclosure._weighted import weighted_risk
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class HouseholdRisk(Measure):
    """The mean probability that at least one member of a row's household is linked, from the sampling weights.

    One minus the product over the household of one minus the individual risk. The household is read from the release,
    or, where the release dropped the column, from the original by the row map. Rows without one stand alone.
    """

    about: ClassVar[About] = About.DISCLOSURE
    examples = ({"fraction": 0.1},)
    reference: ClassVar[str] = (
        "Hundepool, A. et al. (2012). Statistical Disclosure Control, section 3.6. doi:10.1002/9781118348239"
    )

    fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Sampling fraction, for a sample without a weight column."""
    formula: Literal["exact", "sdcmicro"] = "exact"
    """As for individual risk."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        household = _household(pair)
        found = weighted_risk(pair, self.fraction, self.formula)
        frame = pl.DataFrame({"house": household[found.rows], "safe": np.log1p(-np.minimum(found.risk, 1 - 1e-15))})
        # a row without a household is one by itself
        alone, together = pl.col("house").is_null(), pl.col("safe").sum().over("house")
        safe = frame.select(pl.when(alone).then(pl.col("safe")).otherwise(together)).to_series().to_numpy()
        risk = 1 - np.exp(safe)
        return MeasureResult(
            measure=self.part_name(),
            value=float(risk.mean()),
            detail={
                "expected": float(risk.sum()),
                "largest": float(risk.max()),
                "households": frame["house"].drop_nulls().n_unique() + frame["house"].null_count(),
                "individual": float(found.risk.mean()),
            },
        )


def _household(pair: ReleasePair) -> pl.Series:
    names = pair.original.schema.names(Role.HOUSEHOLD)
    if not names:
        raise NotApplicable("No column is declared household.", fix="Give the household number the role `household`.")
    name = names[0]
    if name in pair.release.table.columns:
        return pair.release.table.column(name)
    if pair.lineage is None or (pair.lineage.rows < 0).any():
        raise NotApplicable(
            f"The release has no column `{name}` and no row map tells which rows are one household.",
            fix="Give the row map (`lineage`) that was written with the release.",
        )
    return pair.original.table.column(name).gather(pair.lineage.rows)
