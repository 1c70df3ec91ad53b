"""The columns two files are compared on: numbers by distance, categories by whether they fit, names by likeness.

What is made here is the same for every engine that weighs the comparisons. Levels count from 0 (the values agree) up;
the number after the last one means that a value is unknown and the column says nothing of the pair.
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

__all__ = ["Labels", "Numbers", "Strings", "comparable", "cuts"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

Strings = Literal["exact", "similar"]


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A column of numbers or dates in deviations of the release; NaN where nothing is known."""

    name: str
    known: Floats
    released: Floats

    @property
    def blank(self) -> bool:
        """Whether a value is unknown anywhere."""
        return bool(np.isnan(self.known).any() or np.isnan(self.released).any())


@dataclass(frozen=True, kw_only=True)
class Labels:
    """A column of categories or names: for each known value the released ones that are not simply different."""

    name: str
    known: Ints
    """Per person, the number of her value."""
    released: Ints
    """Per release row, the number of its value."""
    starts: Ints
    """Where the released values of a known one start in ``fits``."""
    fits: Ints
    level: Bytes
    """The level of each pair in ``fits``; all other pairs have the last level."""
    levels: int
    labels: int
    """How many released values there are."""
    vague: npt.NDArray[np.bool_]
    """Released values that may stand for anything."""
    unsaid: npt.NDArray[np.bool_]
    """Known values that are not known after all."""
    text: tuple[pl.Series, pl.Series] | None = None
    """For names: the distinct known and released values, folded."""

    @property
    def blank(self) -> bool:
        return bool((self.level == self.levels).any())


def comparable(
    view: View, names: list[str], strings: Strings | None, blocks: Blocks, progress: Progress = SILENT
) -> tuple[list[Numbers], list[Labels]]:
    """The known columns that can tell rows apart, ready to be compared."""
    near: list[Numbers] = []
    fitted: list[Labels] = []
    published = view.release.manifest.get("columns", {}) if view.transparent else {}
    for name in names:
        known, released = view.targets.get_column(name), view.release.table.column(name)
        numeric = known.dtype.is_numeric() or known.dtype.is_temporal()
        before, after = (numbers(known), numbers(released)) if numeric else (None, None)
        if before is not None and after is not None:
            held = after[np.isfinite(after)]
            if len(held) and (spread := float(held.std())) > 0:
                middle = float(held.mean())
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
    """Per column the distances at which one level ends and the next begins, from the distances of random pairs.

    The nearest level holds the share ``nearest`` of random pairs, the farthest half of them, and the levels between
    grow by one factor.
    """
    share = np.geomspace(nearest, max(0.5, nearest), levels - 1)
    found = np.zeros((len(columns), levels - 1))
    for place, column in enumerate(columns):
        count = min(200_000, 20 * max(len(column.known), len(column.released)))
        left, right = draw.integers(len(column.known), size=count), draw.integers(len(column.released), size=count)
        gap = np.abs(column.known[left] - column.released[right])
        gap = gap[np.isfinite(gap)]
        if len(gap):
            found[place] = np.quantile(gap, share)
    return found


def _labels(
    known: pl.Series,
    released: pl.Series,
    declared: object,
    blanks_unknown: bool,
    blocks: Blocks | None,
    progress: Progress,
) -> Labels | None:
    found = compare(known, released, declared, blanks_unknown=blanks_unknown)
    if len(found.labels) < 2:
        return None
    levels = 2 if blocks is None else 2 + len(CUTS)
    value = np.repeat(np.arange(len(found.values)), np.diff(found.starts))
    fits, level = found.fits, np.zeros(len(found.fits), dtype=np.uint8)
    # A suppressed cell may be anybody's, and a blank in an outside file anything: neither is evidence. A value that
    # is missing in both files is.
    vague = canonical(found.labels).is_in(list(ROOTS)).fill_null(True).to_numpy()
    blank, hidden = found.values.is_null().to_numpy(), found.labels.is_null().to_numpy()
    text = None
    if blocks is not None:
        near = similar_pairs(found.values, found.labels, found.known, found.released, blocks, progress)
        value, fits = np.concatenate([value, near[0]]), np.concatenate([fits, near[1]])
        level = np.concatenate([level, near[2]])
        text = folded(found.values), folded(found.labels)
    unknown = (vague[fits] & ~(blank[value] & hidden[fits])) | (blank[value] & blanks_unknown)
    level[unknown] = levels
    order = np.lexsort((level, fits, value))
    # A pair may stand twice, as fitting and as alike: the better level counts.
    value, fits, level = value[order], fits[order], level[order]
    pair = value * len(found.labels) + fits
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    value, fits, level = value[first], fits[first], level[first]
    return Labels(
        name=known.name,
        known=found.known,
        released=found.released,
        starts=np.searchsorted(value, np.arange(len(found.values) + 1)).astype(np.int64),
        fits=np.ascontiguousarray(fits),
        level=np.ascontiguousarray(level),
        levels=levels,
        labels=len(found.labels),
        vague=vague,
        unsaid=blank & blanks_unknown,
        text=text,
    )
