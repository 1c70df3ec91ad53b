"""The compared columns as numbers, and the features of the columns that are no numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import View
from sfumato.attacks.features import numbers, points
from sfumato.attacks.record_linkage._unchanged_columns import blocks, unchanged_columns
from sfumato.errors import NotApplicable
from sfumato.progress import Progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_EXACT = 100.0
"""Weight of a column that no published step perturbed: a difference there outweighs any perturbation."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Known and released values of the same columns, one column of numbers each."""

    known: Floats
    """One row per target; NaN where missing."""
    released: Floats
    people: Floats
    """All known people, of whom the targets are some."""
    dates: Bools
    """Whether a column holds dates, counted in days."""
    fixed: Bools
    """Whether no published step perturbed a column, so that its values are equal in both files."""
    other: tuple[Floats, Floats] | None
    """Features of columns that are no numbers, of targets and release."""
    names: tuple[str, ...]
    left_out: tuple[str, ...]
    block: tuple[Ints, Ints]
    """Blocks of targets and release rows by the columns that the masking left unchanged, which have no features."""

    @cached_property
    def own_scale(self) -> Bools:
        """Whether the known values of a column are standardized by themselves and not by the released ones.

        With few targets the release gives better estimates, unless its distribution is clearly another one.
        """
        if 2 * len(self.known) >= len(self.released):
            return ~self.fixed
        return ~self.fixed & [_differ(*pair) for pair in zip(self.known.T, self.released.T, strict=True)]

    def with_others(self, features: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """The features of the numbers together with those of all other columns."""
        if self.other is None:
            return features
        return np.hstack([features[0], self.other[0]]), np.hstack([features[1], self.other[1]])

    @property
    def weights(self) -> Floats:
        """The weight of each column of numbers."""
        return np.where(self.fixed, _EXACT, 1.0)


def columns_of(view: View, progress: Progress) -> Columns:
    """The known columns of a view as numbers; refused if no column can be compared."""
    if not view.knows:
        raise NotApplicable("The attacker knows no column of the release.", fix="Name columns with `knows`.")
    fixed = set(view.untouched) if view.steps else set()
    exact = unchanged_columns(view)
    names, before, after, dates = [], [], [], []
    people = []
    for name in view.knows:
        if name in exact:
            continue
        known, released = view.targets.get_column(name), view.release.table.column(name)
        if not (known.dtype.is_numeric() or known.dtype.is_temporal()):
            continue
        left, right = numbers(known), numbers(released)
        if left is None or right is None or not _varies(right) or not np.isfinite(left).any():
            continue
        names.append(name)
        before.append(left)
        everyone = numbers(view.people.get_column(name)) if view.people is not None else left
        people.append(left if everyone is None else everyone)
        after.append(right)
        dates.append(known.dtype.is_temporal() and released.dtype.is_temporal())
    rest = tuple(name for name in view.knows if name not in names and name not in exact)
    other, left_out, encoded = _categories(view, rest, fixed, progress)
    if not names and other is None:
        raise NotApplicable(
            "No distance can be computed from the known columns: none holds numbers, dates or few categories in both "
            "files, or all are constant.",
            fix="Name other columns with `knows`.",
            columns=view.knows,
        )
    return Columns(
        known=_stacked(before, view.targets.height),
        released=_stacked(after, view.release.table.rows),
        people=_stacked(people, view.targets.height if view.people is None else view.people.height),
        dates=np.array(dates, dtype=np.bool_),
        fixed=np.array([name in fixed for name in names], dtype=np.bool_),
        other=other,
        names=(*names, *encoded, *exact),
        left_out=left_out,
        block=blocks(view, exact),
    )


def _differ(known: Floats, released: Floats) -> bool:
    """The two-sample Kolmogorov–Smirnov test, significant at the level 0.001."""
    left, right = (np.sort(part[np.isfinite(part)]) for part in (known, released))
    if len(left) == 0 or len(right) == 0:
        return False
    gap = np.searchsorted(left, left, "right") / len(left) - np.searchsorted(right, left, "right") / len(right)
    return bool(np.abs(gap).max() > 1 / len(left) + 1.95 * np.sqrt(1 / len(left) + 1 / len(right)))


def _varies(values: Floats) -> bool:
    finite = values[np.isfinite(values)]
    return len(finite) > 0 and bool(finite.min() < finite.max())


def _stacked(columns: list[Floats], rows: int) -> Floats:
    return np.column_stack(columns) if columns else np.empty((rows, 0))


def _categories(
    view: View, names: tuple[str, ...], fixed: set[str], progress: Progress
) -> tuple[tuple[Floats, Floats] | None, tuple[str, ...], tuple[str, ...]]:
    """One-hot features of categories, the columns that have none, and those that have."""
    if not names:
        return None, (), ()
    weights = {name: _EXACT**2 for name in names if name in fixed}
    try:
        encoded = points(replace(view, knows=names), weights=weights, progress=progress)
    except NotApplicable:
        return None, names, ()
    return (encoded.targets, encoded.released), encoded.left_out, encoded.names
