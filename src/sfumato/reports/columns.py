"""Each released column before and after masking, as a few comparable bars.

A generalized column cannot be compared with its original directly: ``02141`` never equals ``0214*``. The original is
generalized along the column's hierarchy to the level of the release, and further if there would be more than twenty
bars. Numbers and dates without a hierarchy are binned into common ranges. Labels and ranges are chosen from the
released values alone, so that the choice discloses nothing about the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.value_parser import bounds
from sfumato.data.table import Table
from sfumato.dataset import ROOT, BoundHierarchy, Column, Hierarchy, Kind, Role
from sfumato.dataset.hierarchy import with_missing
from sfumato.errors import SfumatoError
from sfumato.reports.column_table import is_nothing_left
from sfumato.reports.report_data import Bar, ColumnPicture

MISSING = "(missing)"
OTHER = "(other values)"
BELOW, ABOVE = "(below these)", "(above these)"

Counts = dict[str, float]
Floats = npt.NDArray[np.float64]


def column_pictures(
    original: Table, release: Table, manifest: Mapping[str, Any], *, most: int = 20
) -> tuple[ColumnPicture, ...]:
    """One picture per released column, in the release's order. Pseudonyms, weights and households have none.

    A column that the original lacks has no "before". Shares are of all rows, missing cells included.
    """
    pictures: list[ColumnPicture] = []
    for name in release.columns:
        declared = Column.model_validate(manifest.get("columns", {}).get(name, {"role": "plain"}))
        if declared.role in (Role.IDENTIFIER, Role.DROP, Role.WEIGHT, Role.HOUSEHOLD):
            continue
        before = original.column(name) if name in original.columns else None
        bars, note = _bars(declared, before, release.column(name), most)
        kind = declared.kind or Kind.of((release.column(name) if before is None else before).dtype)
        left = is_nothing_left(release.column(name))
        picture = ColumnPicture(column=name, role=str(declared.role), kind=str(kind), bars=bars, note=note)
        pictures.append(replace(picture, nothing_left=left))
    return tuple(pictures)


def _bars(declared: Column, before: pl.Series | None, after: pl.Series, most: int) -> tuple[tuple[Bar, ...], str]:
    if before is not None and declared.hierarchy is not None:
        hierarchy = _bound_hierarchy(declared.hierarchy, before)
        lifted = _lift(hierarchy, before, after, most) if hierarchy is not None else None
        if lifted is not None:
            return lifted
    if before is not None and (before.dtype.is_temporal() or before.dtype.is_numeric()):
        typed = _as_type(after, before.dtype)
        ranged = _ranges(before, typed, most) if typed is not None else _spread(before, after, most)
        if ranged is not None:
            return ranged
    return _categories(None if before is None else _counts(before), _counts(after), most), ""


# --- along the hierarchy ------------------------------------------------------------------------------------------


def _bound_hierarchy(hierarchy: Hierarchy, before: pl.Series) -> BoundHierarchy | None:
    try:
        bound = hierarchy.bind(before.name, before.drop_nulls().unique().sort())
    except SfumatoError:  # the hierarchy is not one of these values; they are then shown as they are
        return None
    return with_missing(bound) if before.null_count() else bound


def _lift(
    hierarchy: BoundHierarchy, before: pl.Series, after: pl.Series, most: int
) -> tuple[tuple[Bar, ...], str] | None:
    """Both sides at the lowest level that holds every released label; None if the hierarchy lacks some label."""
    released = _counts(after)
    place = _places(hierarchy)
    if not all(label in place for label in released if label not in (ROOT, MISSING)):
        return None
    ground = max((place[label][0] for label in released if label not in (ROOT, MISSING)), default=hierarchy.height)
    leaves = np.array([place[label][1] for label in released if label in place], dtype=np.int64)
    shown = _enough(hierarchy, ground, leaves, most)
    level = hierarchy.levels[shown]
    names = [MISSING if label is None else str(label) for label in level.labels.cast(pl.String).to_list()]
    # A cell that was recoded to the root, or suppressed, stays a bar of its own below the root.
    up = {label: names[level.codes[leaf]] for label, (_, leaf) in place.items()}
    sides: list[Counts] = []
    for counts in (_counts(before), released):
        side: Counts = {}
        for label, count in counts.items():
            target = up.get(label, label) if label != ROOT else ROOT
            side[target] = side.get(target, 0) + count
        sides.append(side)
    order = _label_order(hierarchy, shown, names)
    note = "" if shown == 0 else f"Shown at level {shown} of the column's hierarchy"
    if shown > ground:
        note += f"; the release itself is finer (level {ground})"
    return _categories(sides[0], sides[1], most, order=order), note + ("." if note else "")


def _places(hierarchy: BoundHierarchy) -> dict[str, tuple[int, int]]:
    """For each label the lowest level it stands on, and one leaf under it."""
    place: dict[str, tuple[int, int]] = {}
    for number, level in enumerate(hierarchy.levels):
        leaf = np.zeros(level.size, dtype=np.int64)
        leaf[level.codes] = np.arange(len(level.codes))
        for code, label in enumerate(level.labels.cast(pl.String).to_list()):
            place.setdefault(MISSING if label is None else label, (number, int(leaf[code])))
    return place


def _enough(hierarchy: BoundHierarchy, ground: int, leaves: npt.NDArray[np.int64], most: int) -> int:
    """The lowest level from ``ground`` up on which the released labels form few enough groups, but not one."""
    for number in range(ground, hierarchy.height + 1):
        groups = len(np.unique(hierarchy.levels[number].codes[leaves]))
        if groups <= most:
            return number if groups > 1 or number == ground else number - 1
    return ground


def _label_order(hierarchy: BoundHierarchy, shown: int, names: list[str]) -> list[str] | None:
    level = hierarchy.levels[shown]
    if level.low is not None:
        return [names[i] for i in np.argsort(level.low, kind="stable")]
    if hierarchy.leaves.dtype.is_numeric() or hierarchy.leaves.dtype.is_temporal():
        first = np.full(level.size, len(hierarchy.leaves), dtype=np.int64)
        np.minimum.at(first, level.codes, hierarchy.leaves.rank("ordinal").fill_null(0).to_numpy().astype(np.int64))
        return [names[i] for i in np.argsort(first, kind="stable")]
    return None


# --- ranges of numbers and dates ----------------------------------------------------------------------------------


def _as_type(series: pl.Series, dtype: pl.DataType) -> pl.Series | None:
    """The released values as numbers or dates again, or None where they no longer are."""
    if series.dtype.is_numeric() and dtype.is_numeric():
        return series
    if series.dtype == dtype:
        return series
    cast = series.cast(dtype, strict=False) if series.dtype != pl.String or dtype.is_numeric() else None
    if cast is None and dtype == pl.Date:
        cast = series.str.to_date(strict=False)
    return cast if cast is not None and cast.null_count() == series.null_count() else None


def _ranges(before: pl.Series, after: pl.Series, most: int) -> tuple[tuple[Bar, ...], str] | None:
    if after.drop_nulls().is_empty():
        return None
    if before.dtype.is_temporal():
        return _periods(before, after, most)
    known = after.drop_nulls().cast(pl.Float64)
    known = known.filter(known.is_finite())
    if known.is_empty():
        return None
    whole = [_whole(series) for series in (before, after)]
    if whole[0] is not None and whole[1] is not None and known.n_unique() <= most:
        order = [str(value) for value in whole[1].drop_nulls().unique().sort().to_list()]
        return _categories(_counts(whole[0]), _counts(whole[1]), most, order=order), ""
    edges, labels, note = _edges(float(known.min()), float(known.max()), whole[0] is not None, most)  # type: ignore[arg-type]
    sides = [_binned(series.cast(pl.Float64), edges, labels) for series in (before, after)]
    return _categories(sides[0], sides[1], most + 3, order=[BELOW, *labels, ABOVE]), note


def _whole(series: pl.Series) -> pl.Series | None:
    """The numbers as integers, if all of them are whole; codes are often stored as 1.0 and 2.0."""
    if series.dtype.is_integer():
        return series
    values = series.cast(pl.Float64).fill_nan(None)
    known = values.drop_nulls()
    return values.cast(pl.Int64) if bool(((known.floor() == known) & (known.abs() < 2**53)).all()) else None


def _edges(low: float, high: float, whole: bool, most: int) -> tuple[Floats, list[str], str]:
    """Borders of round ranges from ``low`` to ``high``, their labels, and a note on their width."""
    step = _nice((high - low) / min(most - 4, 16) or 1.0)
    if whole:
        step = max(1.0, math.ceil(step))
    edges: Floats = np.arange(math.floor(low / step), math.floor(high / step) + 2, dtype=np.float64) * step
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    labels = [f"{edge:,.{digits}f} to <{edge + step:,.{digits}f}" for edge in edges[:-1]]
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if step >= size:  # written out, such numbers leave no room for the picture
            labels = [f"{edge / size:,.0f} to <{(edge + step) / size:,.0f} {word}" for edge in edges[:-1]]
            break
    return edges, labels, f"Shown in ranges of {step:,.{digits}f}."


def _binned(series: pl.Series, edges: Floats, labels: list[str]) -> Counts:
    series = series.fill_nan(None)
    values = series.drop_nulls().to_numpy()
    place = np.clip(np.searchsorted(edges, values, side="right"), 0, len(edges))
    names = [BELOW, *labels, ABOVE]
    counts: Counts = {names[i]: int(n) for i, n in enumerate(np.bincount(place, minlength=len(names))) if n}
    if series.null_count():
        counts[MISSING] = series.null_count()
    return counts


def _spread(before: pl.Series, after: pl.Series, most: int) -> tuple[tuple[Bar, ...], str] | None:
    """Released ranges of numbers (``20-29``, ``[20, 30)``), which may overlap: each counts evenly for all it covers."""
    if not before.dtype.is_numeric() or after.dtype != pl.String:
        return None
    released = _counts(after)
    ends = {label: _ends(label, whole=before.dtype.is_integer()) for label in released if label not in (ROOT, MISSING)}
    known = [pair for pair in ends.values() if pair is not None and np.isfinite(pair).all()]
    if not known or any(pair is None for pair in ends.values()):
        return None
    low, high = min(pair[0] for pair in known), max(pair[1] for pair in known)
    edges, labels, note = _edges(low, max(low, high - 1e-9), before.dtype.is_integer(), most)
    side: Counts = {}
    for label, count in released.items():
        pair = ends.get(label)
        if pair is None:
            side[label] = side.get(label, 0) + count
            continue
        first, last = max(pair[0], edges[0]), min(pair[1], edges[-1])
        cover = np.clip(np.minimum(edges[1:], last) - np.maximum(edges[:-1], first), 0, None)
        if cover.sum() == 0:  # a single number
            cover[min(len(cover) - 1, int(np.searchsorted(edges, first, side="right")) - 1)] = 1
        for place in np.flatnonzero(cover):
            side[labels[place]] = side.get(labels[place], 0) + count * float(cover[place] / cover.sum())
    first_side = _binned(before.cast(pl.Float64), edges, labels)
    bars = _categories(first_side, side, most + 3, order=[BELOW, *labels, ABOVE])
    return bars, note + " A released range counts evenly for all it covers."


def _ends(label: str, *, whole: bool) -> tuple[float, float] | None:
    """First number of a range and the one after its last; a whole number is a range of one."""
    try:
        low = high = float(label)
    except ValueError:
        found = bounds(label)
        if found is None:
            return None
        low, high = found
    # "20-29" names its last whole number, "[20, 30)" the first that is outside.
    return (low, high + 1) if whole and not label.strip().endswith((")", "[")) else (low, high)


def _nice(step: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= step * (1 - 1e-9))


def _periods(before: pl.Series, after: pl.Series, most: int) -> tuple[tuple[Bar, ...], str] | None:
    if before.dtype == pl.Time or before.dtype == pl.Duration:
        return None
    ways: tuple[tuple[str, Callable[[pl.Series], pl.Series]], ...] = (
        ("day", lambda s: s.dt.strftime("%Y-%m-%d")),
        ("month", lambda s: s.dt.strftime("%Y-%m")),
        ("year", lambda s: s.dt.strftime("%Y")),
        ("five years", lambda s: (s.dt.year() // 5 * 5).cast(pl.String)),
        ("decade", lambda s: (s.dt.year() // 10 * 10).cast(pl.String) + "s"),
    )
    for word, way in ways:
        released = way(after)
        if released.drop_nulls().n_unique() <= most or word == "decade":
            sides = [_counts(way(before)), _counts(released)]
            return _categories(sides[0], sides[1], most, order=sorted({*sides[0], *sides[1]})), f"Shown by {word}."
    return None


# --- categories ---------------------------------------------------------------------------------------------------


def _counts(series: pl.Series) -> Counts:
    table = series.cast(pl.String).fill_null(MISSING).alias("label").value_counts(name="count")
    return dict(zip(table["label"].to_list(), table["count"].to_list(), strict=True))


def _categories(
    before: Counts | None, after: Counts, most: int, *, order: Iterable[str] | None = None
) -> tuple[Bar, ...]:
    """At most ``most`` bars; the rest is one bar. Chosen by released counts; the original has no say in it."""
    keep = sorted(after, key=lambda label: (-after[label], label))
    if len(keep) > most:
        keep = keep[: most - 1]
    else:
        gone = sorted((label for label in before or () if label not in after), key=lambda label: -(before or {})[label])
        keep = [*keep, *gone[: most - len(keep)]]
    sides = [_folded(side, set(keep)) for side in (before or {}, after)]
    wanted = list(order) if order is not None else _by_name(keep)
    rank = {label: number for number, label in enumerate(wanted)}
    last = {ROOT: 1, MISSING: 2, OTHER: 3}
    labels = sorted({*sides[0], *sides[1]}, key=lambda label: (last.get(label, 0), rank.get(label, len(rank)), label))
    totals = [max(1, sum(side.values())) for side in sides]
    return tuple(
        Bar(
            label=label,
            before=None if before is None else sides[0].get(label, 0) / totals[0],
            after=sides[1].get(label, 0) / totals[1],
        )
        for label in labels
    )


def _folded(counts: Counts, keep: set[str]) -> Counts:
    side: Counts = {}
    for label, count in counts.items():
        target = label if label in keep else OTHER
        side[target] = side.get(target, 0) + count
    return side


def _by_name(keep: list[str]) -> list[str]:
    """Codes and years read best in their own order; words by how common they are."""
    return sorted(keep) if sum(label[:1].isdigit() or label[:1] in "[(" for label in keep) * 2 > len(keep) else keep
