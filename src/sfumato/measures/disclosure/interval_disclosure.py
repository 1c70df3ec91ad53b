"""Interval disclosure: true values that lie near their masked value."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.disclosure._numeric import beside
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class IntervalDisclosure(Measure):
    """The share of true values that lie in an interval around their masked value, averaged over the columns.

    The interval reaches ``width`` percent of the ranks to either side of the masked value ("rank"), or ``width``
    percent of the column's standard deviation ("deviation"). What ``blind`` in the detail says is the share for masked
    values taken from other rows: wide intervals hold true values by chance.
    """

    about: ClassVar[About] = About.DISCLOSURE
    main: ClassVar[str] = "width"
    examples = ({}, {"kind": "deviation", "width": 10})
    reference: ClassVar[str] = (
        "Mateo-Sanz, J. M., Sebé, F., Domingo-Ferrer, J. (2004). Outlier protection in continuous microdata masking. "
        "LNCS 3050. doi:10.1007/978-3-540-25955-8_16"
    )

    kind: Literal["rank", "deviation"] = "rank"
    """In what the interval is measured."""
    width: Annotated[float, Field(gt=0, le=100)] = 5.0
    """Half the interval, in percent of the rows or of a standard deviation."""
    columns: tuple[str, ...] | None = None
    """Columns compared; all that hold numbers when left out."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        both = beside(pair, self.columns)
        shuffle = rng.generator.permutation(len(both.original))
        found, blind = {}, {}
        for index, name in enumerate(both.names):
            true, masked = both.original[:, index], both.released[:, index]
            found[name] = float(self._inside(true, masked).mean())
            blind[name] = float(self._inside(true, masked[shuffle]).mean())
        return MeasureResult(
            measure=self.part_name(),
            value=sum(found.values()) / len(found),
            columns=found,
            detail={"blind": sum(blind.values()) / len(blind), "blind_columns": blind},
        )

    def _inside(self, true: Floats, masked: Floats) -> npt.NDArray[np.bool_]:
        if self.kind == "deviation":
            inside: npt.NDArray[np.bool_] = np.abs(true - masked) <= self.width / 100 * masked.std()
            return inside
        order = np.sort(masked)
        reach = max(1, int(len(order) * self.width / 100))
        first, last = np.searchsorted(order, masked, "left"), np.searchsorted(order, masked, "right") - 1
        low = order[np.maximum(first - reach, 0)]
        high = order[np.minimum(last + reach, len(order) - 1)]
        return (true >= low) & (true <= high)
