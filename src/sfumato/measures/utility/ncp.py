"""Normalized certainty penalty: the loss of precision of released values."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl

from sfumato.arrays import Floats
from sfumato.attacks.value_coverage import coverage
from sfumato.attacks.value_parser import bounds
from sfumato.dataset import Data, Domain, RangeDomain, ValuesDomain
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class NcpMeasure(Measure):
    """The mean share of a quasi-identifier's domain that a released cell leaves open: 0 exact, 1 suppressed.

    A number's penalty is the width of its released range over the width of the column (the declared domain, or the
    range of the original). A category's penalty is 0 for an exact value, else the number of values it may stand for
    over the number of all values (those of its hierarchy, of its declared domain, or of the original). Rows that the
    release left out count as 1, as does a quasi-identifier column it left out. Columns that were perturbed rather than
    coarsened have no penalty and are named in ``detail``.
    """

    about: ClassVar[About] = About.UTILITY
    label: ClassVar[str] = "information loss (NCP)"
    meaning: ClassVar[str] = (
        "Normalized certainty penalty: 0 if all values are as detailed as before, 1 if nothing is left of them."
    )
    default_rank: ClassVar[int | None] = 4
    publishable: ClassVar[bool] = True
    reference: ClassVar[str] = (
        "Xu, J. et al. (2006). Utility-based anonymization using local recoding. KDD. doi:10.1145/1150402.1150504"
    )

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        original = pair.original
        if not original.quasi:
            raise NotApplicable(
                "No column is declared quasi-identifier.", fix="Give columns the role `quasi` in the recipe."
            )
        dropped = _dropped(pair)
        found: dict[str, float] = {}
        perturbed: list[str] = []
        with progress.task("ncp", len(original.quasi)) as tick:
            for name in original.quasi:
                tick(1)
                if name not in pair.release.table.columns:
                    found[name] = 1.0
                    continue
                cells = penalties(pair, name)
                if cells is None:
                    perturbed.append(name)
                else:
                    found[name] = float((cells.sum() + dropped) / (len(cells) + dropped))
        if not found:
            raise NotApplicable("Every quasi-identifier was perturbed rather than coarsened.")
        detail: dict[str, object] = {"dropped": dropped}
        if perturbed:
            detail["not applicable"] = perturbed
        return MeasureResult(
            measure=self.part_name(), value=sum(found.values()) / len(found), columns=found, detail=detail
        )


def _dropped(pair: ReleasePair) -> int:
    """Number of suppressed rows, by the row map, because fabricated rows replace nobody."""
    if pair.lineage is None or (pair.lineage.rows < 0).all():
        return max(0, pair.original.rows - pair.release.table.rows)
    return int((pair.lineage.release_row(pair.original.rows) < 0).sum())


def penalties(pair: ReleasePair, name: str) -> Floats | None:
    """Penalty of each released cell of a column, or None when its values are not coarser ones of the original's."""
    original, released = pair.original.table.column(name), pair.release.table.column(name)
    declared = pair.release.manifest.get("columns", {}).get(name, {}).get("hierarchy")
    found = coverage(original, released, declared)
    if original.null_count() and released.null_count():
        # A blank of the original's own is an exact value, not a suppressed one.
        found_blank = found.labels.is_null().to_numpy()
    else:
        found_blank = np.zeros(len(found.labels), dtype=np.bool_)
    fits = found.counts
    if (fits == 0).any():
        return None
    column = pair.original.schema.column(name)
    if original.dtype.is_numeric():
        low, high = _range(original, column.domain)
        label = _widths(found.labels, low, high)
        value = found.values.cast(pl.Float64).fill_null(np.nan).to_numpy()
        unstated = np.flatnonzero(np.isnan(label))
        smallest, largest = found.extremes(unstated, value)
        width = label.copy()
        width[unstated] = np.maximum(0.0, largest - smallest)
        each = np.minimum(1.0, width / (high - low)) if high > low else np.where(fits > 1, 1.0, 0.0)
        everything = fits >= len(found.values)
        each = np.where(everything & (len(found.values) > 1), 1.0, each)
    else:
        domain = _domain_size(pair.original, name)
        each = np.where(fits <= 1, 0.0, np.minimum(1.0, fits / max(domain, 1)))
        if column.hierarchy is not None:
            each = _by_leaves(pair.original, name, found.labels, each)
        each = np.where(fits >= len(found.values), np.where(len(found.values) > 1, 1.0, 0.0), each)
    each[found_blank] = 0.0
    return each[found.released]


def _range(original: pl.Series, domain: Domain | None) -> tuple[float, float]:
    if isinstance(domain, RangeDomain):
        return domain.low, domain.high
    values = original.cast(pl.Float64)
    finite = values.filter(values.is_finite())
    low, high = finite.min(), finite.max()
    return (float(low), float(high)) if low is not None and high is not None else (0.0, 0.0)  # type: ignore[arg-type]


def _widths(labels: pl.Series, low: float, high: float) -> Floats:
    """Width of each label that is a range, cut at the column's own; NaN for the others."""
    if labels.dtype != pl.String:
        return np.full(len(labels), np.nan)
    found = np.full(len(labels), np.nan)
    for index, label in enumerate(labels.to_list()):
        ends = bounds(label) if label is not None else None
        if ends is not None:
            found[index] = max(0.0, min(ends[1], high) - max(ends[0], low))
    return found


def _domain_size(data: Data, name: str) -> int:
    domain = data.schema.column(name).domain
    if isinstance(domain, ValuesDomain):
        return domain.size
    if data.schema.column(name).hierarchy is not None:
        return len(data.bound_hierarchy(name).leaves)
    return data.table.column(name).drop_nulls().n_unique()


def _by_leaves(data: Data, name: str, labels: pl.Series, each: Floats) -> Floats:
    """Where the label is one of the hierarchy's, its own leaves count, whether or not they occur in the data."""
    hierarchy = data.bound_hierarchy(name)
    size: dict[str | None, int] = {}
    for level in hierarchy.levels[1:]:
        for label, count in zip(level.labels.to_list(), level.leaves_under.tolist(), strict=True):
            size.setdefault(label, count)
    total = len(hierarchy.leaves)
    exact = set(hierarchy.leaves.cast(pl.String).to_list())
    adjusted = each.copy()
    for index, label in enumerate(labels.cast(pl.String).to_list()):
        if label in size and label not in exact:
            adjusted[index] = size[label] / total
    return adjusted
