"""Known values and released values as points in one space, so that distances between people and rows can be taken.

Numbers and dates are numbers; a released range is its middle. A category is a corner of a simplex, and a coarse label
the middle of the corners it may stand for, so that a label costs the less the fewer values it covers and a wrong one
costs most. Columns are put on one scale before they are added up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.value_parser import bounds
from sfumato.deadline import check_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress

__all__ = ["Points", "numbers", "points"]

Floats = npt.NDArray[np.float64]

_CORNERS = 64
"""Categories with more values than this are left out of distances: they would outweigh everything else in cost."""


@dataclass(frozen=True, kw_only=True)
class Points:
    """Targets and release rows as rows of two matrices with the same columns."""

    targets: Floats
    released: Floats
    column: tuple[str, ...]
    """The table's column behind each column of the matrices."""
    left_out: tuple[str, ...] = ()
    """Known columns that no distance could be taken on."""

    @property
    def names(self) -> tuple[str, ...]:
        """The table's columns that are used, in order."""
        return tuple(dict.fromkeys(self.column))


def numbers(series: pl.Series) -> Floats | None:
    """A column as numbers, NaN where missing; a released range is its middle; None when it holds other things."""
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    if series.dtype == pl.Date:
        return series.cast(pl.Int32).cast(pl.Float64).fill_null(np.nan).to_numpy()
    if series.dtype == pl.Datetime:
        return (series.dt.epoch("s").cast(pl.Float64) / 86_400).fill_null(np.nan).to_numpy()
    if series.dtype != pl.String:
        return None
    labels = series.unique().drop_nulls()
    middle: dict[str, float] = {}
    for label in labels.to_list():
        ends = bounds(label)
        if ends is not None:
            finite = [end for end in ends if np.isfinite(end)]
            middle[label] = sum(finite) / len(finite) if finite else np.nan
        elif label.strip("*") != "" or not label:
            return None
        else:
            middle[label] = np.nan
    if not any(np.isfinite(value) for value in middle.values()):
        return None
    return series.replace_strict(middle, default=np.nan, return_dtype=pl.Float64).fill_null(np.nan).to_numpy()


def points(
    view: View, *, weights: dict[str, float] | None = None, own: bool = True, progress: Progress = SILENT
) -> Points:
    """Targets and release on one scale: every column has variance one, then its weight.

    Each file is standardized by its own mean and deviation, because masking changes both. An intruder who knows fewer
    than half as many people as the release has rows uses the release's for both: his few would be off by more than
    masking is. So does one who asks not to (``own``), because the people sought are not those of the release. A missing
    value stands at the mean.
    """
    left: list[Floats] = []
    right: list[Floats] = []
    names: list[str] = []
    left_out: list[str] = []
    published = view.release.manifest.get("columns", {}) if view.transparent else {}
    for name in view.knows:
        check_deadline(progress)
        known, released = view.targets.get_column(name), view.release.table.column(name)
        numeric = known.dtype.is_numeric() or known.dtype.is_temporal()
        before, after = numbers(known) if numeric else None, numbers(released) if numeric else None
        scale = (weights or {}).get(name, 1.0) ** 0.5
        if before is not None and after is not None:
            pair = _standardized(before, after, own)
            if pair is None:
                left_out.append(name)
                continue
            left.append(scale * pair[0][:, None])
            right.append(scale * pair[1][:, None])
            names.append(name)
        elif known.n_unique() <= _CORNERS and max(known.n_unique(), released.n_unique()) > 1:
            corners = _corners(known, released, published.get(name, {}).get("hierarchy"))
            left.append(scale * corners[0])
            right.append(scale * corners[1])
            names.extend([name] * corners[0].shape[1])
        else:
            left_out.append(name)
    if not left:
        raise NotApplicable(
            "No distance can be taken on what the intruder knows: no known column holds numbers, dates or few "
            "categories in both files, or all are constant.",
            fix="Name other columns with `knows`.",
            columns=view.knows,
        )
    return Points(
        targets=np.ascontiguousarray(np.hstack(left)),
        released=np.ascontiguousarray(np.hstack(right)),
        column=tuple(names),
        left_out=tuple(left_out),
    )


def _standardized(before: Floats, after: Floats, by_itself: bool) -> tuple[Floats, Floats] | None:
    held = after[np.isfinite(after)]
    if len(held) == 0 or held.std() == 0:
        return None
    own = before[np.isfinite(before)]
    reference = own if by_itself and 2 * len(own) >= len(held) and own.std() > 0 else held
    left = (before - reference.mean()) / reference.std()
    right = (after - held.mean()) / held.std()
    return np.nan_to_num(left, nan=0.0), np.nan_to_num(right, nan=0.0)


def _corners(known: pl.Series, released: pl.Series, declared: object) -> tuple[Floats, Floats]:
    found = compare(known, released, declared)
    values = len(found.values)
    corner = np.eye(values) / np.sqrt(2)
    spread = np.zeros((len(found.labels), values))
    spread[found.fits, np.repeat(np.arange(values), np.diff(found.starts))] = 1.0
    total = spread.sum(axis=1, keepdims=True)
    # A label that fits no known value is equally far from all of them.
    spread = np.divide(spread, total, out=np.zeros_like(spread), where=total > 0) / np.sqrt(2)
    return corner[found.known], spread[found.released]
