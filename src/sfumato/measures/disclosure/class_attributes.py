"""Attribute disclosure within equivalence classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.classes import released_classes
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class ClassAttributes(Measure):
    """The share of rows whose sensitive value is the most frequent one of their class, for the worst sensitive column.

    An adversary who finds a person's class and guesses its most frequent value is right that often. ``detail`` gives,
    per sensitive column, the smallest number of values in a class (distinct l-diversity), the largest distance of a
    class's distribution from the whole (t-closeness with equal distances), the share of rows in classes with one value
    only, and the share of the most frequent value overall, which needs no release; ``tabs`` has the whole conditional
    distribution in each class, for the classes with the largest share of one value.
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
        keys = [name for name in pair.original.quasi if name in pair.masked.columns]
        tabs = [distributions(released.label, pair.masked, keys, name) for name in sensitive]
        return MeasureResult(
            measure=self.part_name(),
            value=max(values.values()),
            columns=values,
            detail={"by_column": detail, "tabs": tabs},
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


_MOST_CLASSES, _MOST_VALUES = 20, 7
"""Classes and values that a tab has; rarer values are added up."""


def distributions(label: Ints, released: pl.DataFrame, keys: list[str], sensitive: str) -> dict[str, Any]:
    """The shares of the values of one sensitive column in each class, with the number of rows, as a cross-tab."""
    value = pl.col(sensitive).cast(pl.String).fill_null("(missing)")
    frame = released.select(*keys, value.alias("value")).with_columns(pl.Series("class", label)).filter(label >= 0)
    common = frame["value"].value_counts().sort(["count", "value"], descending=[True, False])["value"]
    shown = common.head(_MOST_VALUES).to_list()
    shares = [(pl.col("value") == one).mean().alias(f"share {place}") for place, one in enumerate(shown)]
    found = frame.group_by("class").agg(*(pl.col(key).first() for key in keys), pl.len().alias("rows"), *shares)
    largest = pl.max_horizontal([f"share {place}" for place in range(len(shown))])
    found = found.sort(largest, "rows", *keys, "class", descending=[True, True, *[False] * len(keys), False])
    others = ["others"] if len(common) > len(shown) else []
    lines = []
    for line in found.head(_MOST_CLASSES).rows(named=True):
        parts = [line[f"share {place}"] for place in range(len(shown))]
        parts += [max(0.0, 1 - sum(parts)) for _ in others]
        names = ["" if line[key] is None else str(line[key]) for key in keys]
        lines.append([*names, line["rows"], *(f"{part:.0%}" if part else "" for part in parts)])
    rest = found.height - len(lines)
    title = f"{sensitive} by class" + (f"; {rest:,} more classes" if rest else "")
    return {"title": title, "head": [*keys, "rows", *shown, *others], "labels": len(keys), "lines": lines}
