"""Quantiles before and after."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._values import number_columns, numbers
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class QuantilesMeasure(Measure):
    """Mean absolute difference between quantiles before and after, in standard deviations of the original.

    0: the same quantiles. The detail gives them, for a picture of before against after.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "shares"
    reference: ClassVar[str] = (
        "Mateo-Sanz, Domingo-Ferrer, Sebé: Probabilistic information loss (2005), doi:10.1007/s10618-005-0011-9"
    )

    shares: Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1)] = (
        0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99,
    )  # fmt: skip
    """Which quantiles, as fractions."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        found, detail = {}, {}
        for name in number_columns(pair, dates=True):
            before, after = (values[~np.isnan(values)] for values in numbers(pair, name))
            if not len(before) or not len(after):
                continue
            old, new = np.quantile(before, self.shares), np.quantile(after, self.shares)
            found[name] = float(np.abs(new - old).mean() / before.std())
            detail[name] = {"before": old.tolist(), "after": new.tolist()}
        if not found:
            raise NotApplicable("No column of numbers kept a value.")
        value = float(np.mean(list(found.values())))
        account = {"shares": list(self.shares), "columns": detail}
        return MeasureResult(measure=self.part_name(), value=value, columns=found, detail=account)
