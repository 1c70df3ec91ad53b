"""Original and release as numbers and codes that a statistic can use, coarse values included.

A released number is taken as it is. A coarse value (``20-29``, ``*``) is the mean of the original's values it may
stand for where numbers are needed, and one of them drawn at random where categories are: what a careful reader would
do who has nothing but the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.arrays import Floats, Ints
from sfumato.dataset import Kind
from sfumato.errors import NotApplicable
from sfumato.extras import missing_extra
from sfumato.measures.base import ReleasePair
from sfumato.measures.utility._spread import comparable, spread

_LARGEST = 1e150
"""Numbers up to this can be squared and summed up."""

_NUMBERS = frozenset({Kind.INTEGER, Kind.NUMBER})
_ORDERED = _NUMBERS | {Kind.DATE, Kind.DATETIME}


def number_columns(pair: ReleasePair, *, at_least: int = 1, dates: bool = False) -> tuple[str, ...]:
    """Columns of numbers that both tables have; refuses as not applicable when there are fewer than asked for."""
    kinds = _ORDERED if dates else _NUMBERS
    names = tuple(name for name in comparable(pair) if pair.original.kind(name) in kinds)
    usable = tuple(name for name in names if pair.original.table.column(name).drop_nulls().n_unique() > 1)
    if len(usable) < at_least:
        raise NotApplicable(f"The tables share {len(usable)} columns of numbers that vary; {at_least} are needed.")
    return usable


def numbers(pair: ReleasePair, name: str) -> tuple[Floats, Floats]:
    """A column of both tables as numbers, NaN where there is none."""
    before, after = pair.original.table.column(name), pair.release.table.column(name)
    if before.dtype.is_temporal() and after.dtype == before.dtype:
        before, after = before.to_physical(), after.to_physical()
    if before.dtype.is_numeric() and after.dtype.is_numeric():
        return _floats(before), _floats(after)
    laid = spread(pair, name, 200)
    values = _floats(before.to_physical() if before.dtype.is_temporal() else before)
    known = ~np.isnan(values)
    count = np.bincount(laid.original[known], minlength=laid.cells)
    total = np.bincount(laid.original[known], values[known], minlength=laid.cells)
    with np.errstate(invalid="ignore"):
        centre = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    usable = ~np.isnan(centre)
    mass = np.asarray(laid.matrix[:, usable].sum(axis=1)).ravel()
    sums = np.asarray(laid.matrix[:, usable] @ centre[usable]).ravel()
    with np.errstate(invalid="ignore", divide="ignore"):
        labels = np.where(mass > 0, sums / mass, np.nan)
    released: Floats = labels[laid.released]
    return values, released


def _floats(series: pl.Series) -> Floats:
    values = series.cast(pl.Float64).to_numpy().copy()
    values[~np.isfinite(values)] = np.nan
    if (np.abs(values) > _LARGEST).any():
        raise NotApplicable(
            f"Column `{series.name}` holds numbers beyond {_LARGEST:g}, whose squares a computer cannot hold.",
            fix="Divide it by a power of ten in both tables.",
        )
    return values


def number_matrix(pair: ReleasePair, names: tuple[str, ...]) -> tuple[Floats, Floats]:
    """The columns side by side, only the rows without gaps."""
    both = [numbers(pair, name) for name in names]
    before, after = np.column_stack([b for b, _ in both]), np.column_stack([a for _, a in both])
    before, after = before[~np.isnan(before).any(axis=1)], after[~np.isnan(after).any(axis=1)]
    if len(before) < 3 or len(after) < 3:
        raise NotApplicable("Fewer than 3 rows have a value in every column of numbers.")
    return before, after


@dataclass(frozen=True, kw_only=True)
class CodedValues:
    """A column of both tables in the same codes."""

    before: Ints
    after: Ints
    size: int


def coded(pair: ReleasePair, name: str, cells: int, random: np.random.Generator) -> CodedValues:
    """Codes of a column; a coarse released value becomes one of the cells it may stand for, at random."""
    laid = spread(pair, name, cells)
    cumulative = (
        np.asarray(laid.matrix.todense()).cumsum(axis=1) if laid.matrix.shape[0] * laid.cells < 5_000_000 else None
    )
    if cumulative is None:
        after = np.asarray(laid.matrix.argmax(axis=1)).ravel()[laid.released]
    else:
        fixed = np.asarray((laid.matrix > 0.999999).sum(axis=1)).ravel() > 0
        only = np.asarray(laid.matrix.argmax(axis=1)).ravel()
        after = only[laid.released]
        open_ = np.flatnonzero(~fixed[laid.released])
        if len(open_):
            marks = random.random(len(open_))[:, None]
            after[open_] = (cumulative[laid.released[open_]] <= marks).sum(axis=1).clip(max=laid.cells - 1)
    return CodedValues(before=laid.original, after=after.astype(np.int64), size=laid.cells)


def features(
    pair: ReleasePair, names: tuple[str, ...], random: np.random.Generator, *, one_hot: bool, cells: int = 20
) -> tuple[Floats, Floats]:
    """Both tables as a matrix for a model: numbers standardized by the original (gaps: its mean and an indicator),
    categories as indicators (``one_hot``) or as their code, most frequent first."""
    left: list[Floats] = []
    right: list[Floats] = []
    for name in names:
        if pair.original.kind(name) in _ORDERED:
            before, after = numbers(pair, name)
            held = before[np.isfinite(before)]
            mean, scale = (held.mean(), held.std()) if len(held) and held.std() > 0 else (held[:1].sum(), 1.0)
            for side, values in ((left, before), (right, after)):
                side.append(np.nan_to_num((values - mean) / scale))
            if np.isnan(before).any() or np.isnan(after).any():
                left.append(np.isnan(before).astype(np.float64))
                right.append(np.isnan(after).astype(np.float64))
            continue
        found = coded(pair, name, cells, random)
        order = np.argsort(-np.bincount(found.before, minlength=found.size), kind="stable")
        if one_hot:
            for code in order[: found.size - 1] if found.size > 1 else order[:0]:
                left.append((found.before == code).astype(np.float64))
                right.append((found.after == code).astype(np.float64))
        else:
            place = np.argsort(order)
            left.append(place[found.before].astype(np.float64))
            right.append(place[found.after].astype(np.float64))
    if not left:
        raise NotApplicable("The tables share no column that a model could use.")
    return np.column_stack(left), np.column_stack(right)


def aligned(pair: ReleasePair) -> tuple[Ints, Ints]:
    """Rows of the original and of the release that are the same person's; not applicable without the row map."""
    if pair.lineage is None:
        raise NotApplicable("This needs the row map of the release, which only its owner has.")
    known = np.flatnonzero(pair.lineage.rows >= 0)
    if not len(known):
        raise NotApplicable("No row of the release comes from a row of the original.")
    return pair.lineage.rows[known], known


@contextmanager
def modest_threads(rows: int) -> Iterator[None]:
    """One thread for small tables: waking more costs longer than the work, above all on a busy machine."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1 if rows < 50_000 else None):
        yield


def need_sklearn(part: str) -> None:
    """Refuse, with the way out, when scikit-learn is not there."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise missing_extra("learning", "scikit-learn", needed_by=part) from None
