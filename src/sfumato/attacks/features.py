"""Numeric features of known and released values, for distances between targets and rows.

Numbers and dates are numbers; a released range is its midpoint. A category is one-hot encoded, and a coarse label is
the mean of the values it may represent: the fewer values a label covers, the smaller its distance, and a wrong label is
farthest. Columns are standardized.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import Comparison, compare
from sfumato.attacks.value_parser import bounds
from sfumato.deadline import check_deadline
from sfumato.errors import NotApplicable
from sfumato.memory import require_memory
from sfumato.progress import SILENT, Progress

Floats = npt.NDArray[np.float64]

_MAX_CATEGORIES = 64
"""Categories with more values are not used, because their features would dominate the cost."""


@dataclass(frozen=True, kw_only=True)
class Points:
    """Feature matrices of targets and release rows, with the same columns."""

    targets: Floats
    released: Floats
    column: tuple[str, ...]
    """The table column of each feature."""
    left_out: tuple[str, ...] = ()
    """Known columns without features."""

    @property
    def names(self) -> tuple[str, ...]:
        """The table columns that are used, in order."""
        return tuple(dict.fromkeys(self.column))


def numbers(series: pl.Series) -> Floats | None:
    """A column as numbers, NaN where missing; a released range is its midpoint; None if it holds anything else."""
    if series.dtype == pl.Float64:
        return series.to_numpy()
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return series.cast(pl.Float64).to_numpy()
    if series.dtype == pl.Date:
        return series.cast(pl.Int32).cast(pl.Float64).to_numpy()
    if series.dtype == pl.Datetime:
        return (series.dt.epoch("s").cast(pl.Float64) / 86_400).to_numpy()
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
    """Standardized features of targets and release: every column has variance one, times its weight.

    Each file is standardized by its own mean and standard deviation, because masking changes both. If there are fewer
    than half as many targets as rows, the release's values are used for both files, because the estimates from few
    targets would be worse. The same if ``own`` is false, for targets that are not the people of the release. A missing
    value is set to the mean.
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
        elif known.n_unique() <= _MAX_CATEGORIES and max(known.n_unique(), released.n_unique()) > 1:
            declared = published.get(name, {}).get("hierarchy")
            encoded = _one_hot(compare(known, released, declared, recoding=view.recodings.get(name)))
            left.append(scale * encoded[0])
            right.append(scale * encoded[1])
            names.extend([name] * encoded[0].shape[1])
        else:
            left_out.append(name)
    if not left:
        raise NotApplicable(
            "No distance can be computed from the known columns: none holds numbers, dates or few categories in both "
            "files, or all are constant.",
            fix="Name other columns with `knows`.",
            columns=view.knows,
        )
    return Points(
        targets=np.ascontiguousarray(np.hstack(left)),
        released=np.ascontiguousarray(np.hstack(right)),
        column=tuple(names),
        left_out=tuple(left_out),
    )


def _standardized(before: Floats, after: Floats, own: bool) -> tuple[Floats, Floats] | None:
    released = after[np.isfinite(after)]
    if len(released) == 0 or released.std() == 0:
        return None
    known = before[np.isfinite(before)]
    reference = known if own and 2 * len(known) >= len(released) and known.std() > 0 else released
    left = (before - reference.mean()) / reference.std()
    right = (after - released.mean()) / released.std()
    return np.nan_to_num(left, nan=0.0), np.nan_to_num(right, nan=0.0)


def _one_hot(comparison: Comparison) -> tuple[Floats, Floats]:
    values = len(comparison.values)
    rows = len(comparison.known) + len(comparison.released)
    require_memory(16.0 * values * (rows + len(comparison.labels)), f"one-hot encoding of `{comparison.values.name}`")
    corner = np.eye(values) / np.sqrt(2)
    mixture = np.zeros((len(comparison.labels), values))
    mixture[comparison.fits, np.repeat(np.arange(values), np.diff(comparison.starts))] = 1.0
    total = mixture.sum(axis=1, keepdims=True)
    # A label that matches no known value is equally far from all of them.
    mixture = np.divide(mixture, total, out=np.zeros_like(mixture), where=total > 0) / np.sqrt(2)
    return corner[comparison.known], mixture[comparison.released]
