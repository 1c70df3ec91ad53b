"""Attribute disclosure within equivalence classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import polars as pl

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.disclosure._classes import released_classes
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class ClassAttributes(Measure):
    """The share of rows whose sensitive value is the most frequent one of their class, for the worst sensitive column.

    An adversary who finds a person's class and guesses its most frequent value is right that often. ``detail`` gives,
    per sensitive column, the smallest number of values in a class (distinct l-diversity), the largest distance of a
    class's distribution from the whole (t-closeness with equal distances), the share of rows in classes with one value
    only, and the share of the most frequent value overall, which needs no release.
    """

    about: ClassVar[About] = About.DISCLOSURE
    reference: ClassVar[str] = (
        "Li, N., Li, T., Venkatasubramanian, S. (2007). t-closeness. doi:10.1109/ICDE.2007.367856"
    )

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        sensitive = [name for name in pair.original.sensitive if name in pair.release.table.columns]
        if not sensitive:
            raise NotApplicable("The release has no column declared sensitive.")
        released = released_classes(pair)
        if released.rows == 0:
            raise NotApplicable("Every row of the release is suppressed.")
        detail: dict[str, Any] = {name: within(released.label, pair.masked[name]) for name in sensitive}
        values = {name: detail[name]["right"] for name in sensitive}
        return MeasureResult(
            measure=self.part_name(), value=max(values.values()), columns=values, detail={"by_column": detail}
        )


def within(label: Any, column: pl.Series) -> dict[str, float | int]:
    """Diversity of one sensitive column within classes."""
    held = label >= 0
    frame = pl.DataFrame({"class": label[held], "value": column.filter(pl.Series(held))})
    overall = frame["value"].value_counts()
    share = overall.with_columns((pl.col("count") / frame.height).alias("share")).select("value", "share")
    cells = frame.group_by("class", "value").len().join(share, on="value", nulls_equal=True)
    cells = cells.with_columns((pl.col("len") / pl.col("len").sum().over("class")).alias("inside"))
    # Values that a class lacks add their whole share: half of the sum of differences is one minus the shared mass.
    by_class = cells.group_by("class").agg(
        top=pl.col("len").max(),
        distinct=pl.len(),
        rows=pl.col("len").sum(),
        shared=pl.min_horizontal("inside", "share").sum(),
    )
    distinct = by_class["distinct"].to_numpy()
    rows = by_class["rows"].to_numpy()
    return {
        "right": float(by_class["top"].sum() / frame.height),
        "blind": float(np.max(share["share"].to_numpy())),
        "fewest_values": int(distinct.min()),
        "largest_distance": float(1 - by_class["shared"].to_numpy().min()),
        "homogeneous": float(rows[distinct == 1].sum() / frame.height),
    }
