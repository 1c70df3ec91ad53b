"""Comparison levels of columns: numbers by distance, categories by matching, names by string similarity.

The comparisons are the same for every engine. Levels count from 0 (agreement); the number after the last level means
that a value is unknown and the column is no evidence for the pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.features import numbers
from sfumato.attacks.normalize import canonical, folded
from sfumato.attacks.record_linkage.probabilistic_linkage.blocking import Blocks
from sfumato.attacks.record_linkage.probabilistic_linkage.string_similarity import CUTS, free_text, similar_pairs
from sfumato.attacks.value_parser import ROOTS
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

Strings = Literal["exact", "similar"]


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A column of numbers or dates, standardized by the release; NaN where unknown."""

    name: str
    known: Floats
    released: Floats

    @property
    def blank(self) -> bool:
        """Whether any value is unknown."""
        return bool(np.isnan(self.known).any() or np.isnan(self.released).any())


@dataclass(frozen=True, kw_only=True)
class Labels:
    """A column of categories or names: for each known value the released values that do not simply disagree."""

    name: str
    known: Ints
    """The value number of each target."""
    released: Ints
    """The value number of each release row."""
    starts: Ints
    """Where the released values of a known one start in ``fits``."""
    fits: Ints
    level: Bytes
    """The level of each pair in ``fits``; all other pairs have the last level."""
    levels: int
    labels: int
    """The number of distinct released values."""
    vague: npt.NDArray[np.bool_]
    """Released values that represent all values."""
    unsaid: npt.NDArray[np.bool_]
    """Known values that are blank and mean "unknown"."""
    text: tuple[pl.Series, pl.Series] | None = None
    """For names: the distinct known and released values, folded."""

    @property
    def blank(self) -> bool:
        return bool((self.level == self.levels).any())


def comparable(
    view: View, names: list[str], strings: Strings | None, blocks: Blocks, progress: Progress = SILENT
) -> tuple[list[Numbers], list[Labels]]:
    """The known columns that distinguish rows, prepared for comparison."""
    near: list[Numbers] = []
    fitted: list[Labels] = []
    published = view.release.manifest.get("columns", {}) if view.transparent else {}
    for name in names:
        known, released = view.targets.get_column(name), view.release.table.column(name)
        numeric = known.dtype.is_numeric() or known.dtype.is_temporal()
        before, after = (numbers(known), numbers(released)) if numeric else (None, None)
        if before is not None and after is not None:
            finite = after[np.isfinite(after)]
            if len(finite) and (spread := float(finite.std())) > 0:
                middle = float(finite.mean())
                scaled = [np.where(np.isfinite(side), (side - middle) / spread, np.nan) for side in (before, after)]
                near.append(Numbers(name=name, known=scaled[0], released=scaled[1]))
            continue
        declared = published.get(name, {}).get("hierarchy")
        both = known.dtype == pl.String and released.dtype == pl.String
        automatic = declared is None and free_text(known, released)
        fuzzy = both and (strings == "similar" or (strings is None and automatic))
        column = _labels(known, released, declared, view.blanks_unknown, blocks if fuzzy else None, progress)
        if column is not None:
            fitted.append(column)
    if not near and not fitted:
        raise NotApplicable("No known column can be compared: all are constant.", columns=tuple(names))
    return near, fitted


def cuts(columns: list[Numbers], levels: int, nearest: float, draw: np.random.Generator) -> Floats:
    """The distances that separate comparison levels, per column, from the distances of random pairs.

    The nearest level contains the share ``nearest`` of random pairs, the farthest half of them, and the shares between
    form a geometric sequence.
    """
    share = np.geomspace(nearest, max(0.5, nearest), levels - 1)
    distances = np.zeros((len(columns), levels - 1))
    for place, column in enumerate(columns):
        count = min(200_000, 20 * max(len(column.known), len(column.released)))
        left, right = draw.integers(len(column.known), size=count), draw.integers(len(column.released), size=count)
        gap = np.abs(column.known[left] - column.released[right])
        gap = gap[np.isfinite(gap)]
        if len(gap):
            distances[place] = np.quantile(gap, share)
    return distances


def _labels(
    known: pl.Series,
    released: pl.Series,
    declared: object,
    blanks_unknown: bool,
    blocks: Blocks | None,
    progress: Progress,
) -> Labels | None:
    comparison = compare(known, released, declared, blanks_unknown=blanks_unknown)
    if len(comparison.labels) < 2:
        return None
    levels = 2 if blocks is None else 2 + len(CUTS)
    value = np.repeat(np.arange(len(comparison.values)), np.diff(comparison.starts))
    fits, level = comparison.fits, np.zeros(len(comparison.fits), dtype=np.uint8)
    # A suppressed cell and a blank in an external file are no evidence. A value that is missing in both files is.
    vague = canonical(comparison.labels).is_in(list(ROOTS)).fill_null(True).to_numpy()
    blank, hidden = comparison.values.is_null().to_numpy(), comparison.labels.is_null().to_numpy()
    text = None
    if blocks is not None:
        near = similar_pairs(
            comparison.values, comparison.labels, comparison.known, comparison.released, blocks, progress
        )
        value, fits = np.concatenate([value, near[0]]), np.concatenate([fits, near[1]])
        level = np.concatenate([level, near[2]])
        text = folded(comparison.values), folded(comparison.labels)
    unknown = (vague[fits] & ~(blank[value] & hidden[fits])) | (blank[value] & blanks_unknown)
    level[unknown] = levels
    order = np.lexsort((level, fits, value))
    # A pair may occur twice, as matching and as similar: the better level counts.
    value, fits, level = value[order], fits[order], level[order]
    pair = value * len(comparison.labels) + fits
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    value, fits, level = value[first], fits[first], level[first]
    return Labels(
        name=known.name,
        known=comparison.known,
        released=comparison.released,
        starts=np.searchsorted(value, np.arange(len(comparison.values) + 1)).astype(np.int64),
        fits=np.ascontiguousarray(fits),
        level=np.ascontiguousarray(level),
        levels=levels,
        labels=len(comparison.labels),
        vague=vague,
        unsaid=blank & blanks_unknown,
        text=text,
    )
