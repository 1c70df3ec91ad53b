"""Transparency attack on rank swapping: windows of ranks, intersected over columns."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.best_row import next_random
from sfumato.attacks.features import numbers
from sfumato.attacks.normalize import canonical
from sfumato.attacks.remasking import coarsened
from sfumato.deadline import batches
from sfumato.errors import NotApplicable
from sfumato.kernels import kernel
from sfumato.masking.base import Step
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["RankWindow"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_PORTION = 50_000_000
"""Maximum number of rows compared between two checks of the deadline."""


class RankWindow(Linking):
    """An attacker who knows that a release was rank-swapped with parameter p intersects the windows of possible rows.

    A value swapped within p percent of the ranks has its masked value in a window of ranks around its own. The attacker
    computes the window from the release alone, because swapping keeps the values of every column. For each known column
    the rows with a value in the window are candidates. The intersection over all columns is small, and a certain match
    if it contains one row. Among several candidates the nearest is named (RSLD). An upper bound on p is sufficient.
    Known columns that no step perturbed must agree exactly. If ranks were swapped within strata that are among them,
    windows are computed per stratum.

    Variants without a fixed window (p-buckets, p-distribution) can move a value out of it; then the true row is missed.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.METHOD
    cheap: ClassVar[bool] = True
    weak_masking: ClassVar = {"rank-swap": {"p": 0.5}}
    main: ClassVar[str] = "p"
    examples: ClassVar = ({"p": 2}, {})
    reference: ClassVar[str] = (
        "Nin, J., Herranz, J., Torra, V. (2008). Rethinking rank swapping to decrease disclosure risk. Data & "
        "Knowledge Engineering 64(1). doi:10.1016/j.datak.2007.07.006"
    )

    p: Annotated[float, Field(gt=0, le=100)] | None = None
    """Swapping distance in percent of the rows, or an upper bound; as published with the release if omitted."""

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method.part_name() == "rank-swap"

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        percent, names = self._setting(view)
        released = np.column_stack([_as_numbers(view.release.table.column(name), name) for name in names])
        targets = np.column_stack([_as_numbers(view.targets.get_column(name), name) for name in names])
        low, high = np.full(targets.shape, -np.inf), np.full(targets.shape, np.inf)
        for people, rows in _strata(view):
            low[people], high[people] = windows(targets[people], released[rows], percent)
        # Columns that were not swapped must agree: a window of width zero.
        exact = [name for name in view.untouched if name not in names] if view.steps else []
        emptied = coarsened(view)
        for name in exact:
            known, seen = _same_codes(view.targets.get_column(name), view.release.table.column(name))
            if name in emptied:
                seen = np.where(view.release.table.column(name).is_null().to_numpy(), np.nan, seen)
            targets, released = np.column_stack([targets, known]), np.column_stack([released, seen])
            low = np.column_stack([low, np.where(np.isnan(known), -np.inf, known)])
            high = np.column_stack([high, np.where(np.isnan(known), np.inf, known)])
        scale = np.nanstd(released, axis=0)
        if not (scale > 0).any():
            raise NotApplicable("All known swapped columns are constant.", columns=names)
        scale[scale == 0] = 1.0
        order = np.argsort(released[:, 0], kind="stable").astype(np.int64)
        seeds = rng.generator.integers(1, 2**62, size=len(targets), dtype=np.int64)
        near, known, left, right = released[order] / scale, targets / scale, low / scale, high / scale
        blank = np.array([name in emptied for name in (*names, *exact)])
        row, size, ties = (np.zeros(len(targets), dtype=np.int64) for _ in range(3))
        done = 0
        for part in batches(progress, "rank windows", len(targets), max(1, _PORTION // len(released))):
            row[part], size[part], ties[part] = _link(known[part], near, left[part], right[part], blank, seeds[part])
            done = part.stop
        row, size, ties = row[:done], size[:done], ties[:done]
        guessed = np.where(row >= 0, order[np.maximum(row, 0)], -1)
        # A single candidate is certain; otherwise the confidence decreases with the number of candidates and ties.
        confidence = np.where(size == 1, 1.0, 1 / np.maximum(size, 1) ** 0.5 / np.maximum(ties, 1))
        detail: dict[str, object] = {
            "p": percent,
            "columns": list(names),
            "exact": exact,
            "alone": int((size == 1).sum()),
            "median_candidates": float(np.median(size)) if done else None,
        }
        return Guesses.of_rows(guessed, confidence, detail, tried=done)

    def _setting(self, view: View) -> tuple[float, tuple[str, ...]]:
        step = next((step for step in reversed(view.steps) if step["step"] == "rank-swap"), None)
        parameters = dict(step.get("parameters", {})) if step is not None else {}
        percent = self.p if self.p is not None else parameters.get("p")
        if percent is None:
            raise NotApplicable(
                "The release does not publish a rank-swap step, or the attacker does not know it.",
                fix="Set the swapping distance, or an upper bound, with `p`.",
            )
        swapped = step.get("columns") if step is not None else None
        names = tuple(name for name in view.knows if swapped is None or name in swapped)
        usable = tuple(name for name in names if _is_number(view, name))
        if not usable:
            raise NotApplicable("The attacker knows no swapped column of numbers or dates.", columns=view.knows)
        return float(percent), usable


def _strata(view: View) -> list[tuple[Ints, Ints]]:
    """Targets and released rows of each stratum within which ranks were swapped; all of them without strata."""
    nothing: dict[str, Any] = {}
    step = next((step for step in reversed(view.steps) if step["step"] == "rank-swap"), nothing)
    names = step.get("parameters", {}).get("strata") or ()
    everybody = [(np.arange(view.targets.height), np.arange(view.release.table.rows))]
    if not names:
        return everybody
    if not set(names) <= set(view.untouched):
        raise NotApplicable(
            "Ranks were swapped within strata that the attacker does not know, so windows cannot be computed.",
            fix="Add the strata columns to `knows`, or use the simulation attack.",
            columns=tuple(names),
        )
    codes = [_same_codes(view.targets.get_column(name), view.release.table.column(name)) for name in names]
    known, seen = (np.column_stack([np.nan_to_num(pair[side], nan=-1.0) for pair in codes]) for side in (0, 1))
    _, label = np.unique(np.vstack([known, seen]), axis=0, return_inverse=True)
    people, rows = label[: len(known)], label[len(known) :]
    strata = [(np.flatnonzero(people == stratum), np.flatnonzero(rows == stratum)) for stratum in np.unique(people)]
    # Targets of a stratum that is not in the release keep infinite windows.
    return [(some, near) for some, near in strata if len(near)]


def _is_number(view: View, name: str) -> bool:
    known, released = view.targets.get_column(name).dtype, view.release.table.column(name).dtype
    numeric = all(kind.is_numeric() or kind.is_temporal() for kind in (known, released))
    return numeric and view.release.table.column(name).null_count() < view.release.table.rows


def _as_numbers(series: Any, name: str) -> Floats:
    values = numbers(series)
    if values is None:
        raise NotApplicable(f"Column `{name}` holds no numbers.", columns=(name,))
    return values


def _same_codes(known: pl.Series, released: pl.Series) -> tuple[Floats, Floats]:
    """Both columns as numeric codes that are equal where the values are; NaN where the known value is missing."""
    left, right = canonical(known), canonical(released)
    values = pl.concat([left, right]).unique().drop_nulls().sort().to_list()
    codes = {value: float(code) for code, value in enumerate(values)}

    def coded(series: pl.Series) -> Floats:
        return series.replace_strict(codes, default=np.nan, return_dtype=pl.Float64).fill_null(np.nan).to_numpy()

    # A released blank matches no target: it was blank in the original.
    return coded(left), np.nan_to_num(coded(right), nan=-1.0)


def windows(targets: Floats, released: Floats, percent: float) -> tuple[Floats, Floats]:
    """The smallest and the largest released value that may be the masked version of each known value.

    A value that is not in the release (an external file, rounded) has the rank of its position. A missing value has an
    infinite window.
    """
    low, high = np.full(targets.shape, -np.inf), np.full(targets.shape, np.inf)
    for column in range(targets.shape[1]):
        known = np.sort(released[np.isfinite(released[:, column]), column])
        count = len(known)
        if count == 0:
            continue
        reach = max(1, int(count * percent / 100 + 1e-9))
        value = targets[:, column]
        finite = np.isfinite(value)
        first = np.searchsorted(known, value[finite], side="left")
        last = np.maximum(np.searchsorted(known, value[finite], side="right") - 1, first)
        low[finite, column] = known[np.clip(first - reach, 0, count - 1)]
        high[finite, column] = known[np.clip(last + reach, 0, count - 1)]
    return low, high


@kernel()
def _link(
    targets: Floats, released: Floats, low: Floats, high: Floats, blank: npt.NDArray[np.bool_], seeds: Ints
) -> tuple[Ints, Ints, Ints]:  # pragma: no cover - compiled
    """Nearest row inside each target's windows; ``released`` is sorted by its first column, missing values last.

    ``blank`` marks columns in which a later step may have suppressed cells, so that a missing value may match anybody.
    """
    rows, width = released.shape
    nearest = np.full(len(targets), -1, dtype=np.int64)
    size = np.zeros(len(targets), dtype=np.int64)
    ties = np.zeros(len(targets), dtype=np.int64)
    first = released[:, 0].copy()
    last = rows - int(np.isnan(first).sum())
    for index in range(len(targets)):
        state = np.uint64(seeds[index])
        best = np.inf
        start = np.searchsorted(first, low[index, 0])
        row = start - 1
        while row + 1 < rows:
            row += 1
            if first[row] > high[index, 0]:
                if not blank[0]:
                    break
                row = last  # continue with missing values
                if row >= rows:
                    break
            inside = True
            total = 0.0
            for axis in range(width):
                value = released[row, axis]
                # A missing value does not match a known one, unless a step suppressed cells.
                if (
                    high[index, axis] < np.inf
                    and not (low[index, axis] <= value <= high[index, axis])
                    and not (blank[axis] and value != value)
                ):
                    inside = False
                    break
                gap = value - targets[index, axis]
                if gap == gap:  # a missing value adds nothing
                    total += gap * gap
                elif blank[axis] and high[index, axis] < np.inf:  # a suppressed one is anywhere in the window
                    total += (high[index, axis] - low[index, axis]) ** 2 / 12
            if not inside:
                continue
            size[index] += 1
            if total < best:
                best = total
                nearest[index] = row
                ties[index] = 1
            elif total == best:
                ties[index] += 1
                state, chance = next_random(state)
                if chance * ties[index] < 1.0:
                    nearest[index] = row
    return nearest, size, ties
