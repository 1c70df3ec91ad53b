"""Original and release on the same cells: what a coarse value says about fine ones.

A reader of a release who meets ``20-29`` knows no more than that the value is one of those it may stand for. Its mass
is therefore spread evenly over the original's values that fit it. Numbers with many values are compared on bins, cut
so that the original has as many rows in each; columns with many categories keep the frequent ones and pool the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import sparse

from sfumato.arrays import Floats, Ints
from sfumato.attacks.value_coverage import coverage
from sfumato.dataset import Role
from sfumato.measures.base import ReleasePair


@dataclass(frozen=True, kw_only=True)
class Spread:
    """One column: the original's cell per row, and how each released value spreads over the cells."""

    original: Ints
    released: Ints
    """Per release row the number of its value."""
    matrix: sparse.csr_matrix
    """Released value to cell, rows summing to 1. The last cell takes what stands for no value of the original."""
    cells: int

    def original_share(self) -> Floats:
        return np.bincount(self.original, minlength=self.cells) / len(self.original)

    def released_share(self) -> Floats:
        count = np.bincount(self.released, minlength=self.matrix.shape[0])
        share: Floats = np.asarray(count @ self.matrix).ravel() / len(self.released)
        return share


def comparable(pair: ReleasePair) -> tuple[str, ...]:
    """Columns that both tables have and whose distribution means something: no identifiers, no weights."""
    skipped = {Role.IDENTIFIER, Role.DROP, Role.WEIGHT, Role.HOUSEHOLD}
    return tuple(name for name in pair.common if pair.original.schema.column(name).role not in skipped)


def distance(left: Floats, right: Floats) -> float:
    """Total variation distance: the largest difference in the share of any set of cells."""
    return float(np.abs(left - right).sum() / 2)


def spread(pair: ReleasePair, name: str, cells: int) -> Spread:
    """Lay one column of the release over at most ``cells`` cells of the original."""
    original, released = pair.original.table.column(name), pair.release.table.column(name)
    numbers = original.dtype.is_numeric() and released.dtype.is_numeric()
    if numbers and max(original.n_unique(), released.n_unique()) > cells:
        return _binned(original, released, cells)
    declared = pair.release.manifest.get("columns", {}).get(name, {}).get("hierarchy")
    if released.null_count() and original.null_count():
        # The original has blanks of its own: a released blank is one of them, not a suppressed value.
        blank = "\x00missing"
        original = original.cast(pl.String).fill_null(blank)
        released = released.cast(pl.String).fill_null(blank)
    found = coverage(original, released, declared)
    cell_of_value, count = _cells(original, found.known, found.values, cells)
    label, cell, common = found.by_cell(cell_of_value, count)
    unknown = np.flatnonzero(found.counts == 0)
    matrix = sparse.csr_matrix(
        (
            np.concatenate([common / found.counts[label], np.ones(len(unknown))]),
            (np.concatenate([label, unknown]), np.concatenate([cell, np.full(len(unknown), count)])),
        ),
        shape=(len(found.labels), count + 1),
    )
    return Spread(original=cell_of_value[found.known], released=found.released, matrix=matrix, cells=count + 1)


def _cells(original: pl.Series, known: Ints, values: pl.Series, cells: int) -> tuple[Ints, int]:
    """Cell of each distinct original value, and how many cells there are."""
    if len(values) <= cells:
        return np.arange(len(values)), len(values)
    if original.dtype.is_numeric() or original.dtype.is_temporal():
        order = values.rank("dense").fill_null(0).to_numpy().astype(np.int64)
        weight = np.bincount(order, weights=np.bincount(known, minlength=len(values)).astype(float))
        upto = np.cumsum(weight)
        cell = np.minimum((cells * (upto - weight / 2) / upto[-1]).astype(np.int64), cells - 1)
        return cell[order], cells
    frequent = np.argsort(-np.bincount(known, minlength=len(values)), kind="stable")
    cell = np.full(len(values), cells - 1, dtype=np.int64)
    cell[frequent[: cells - 1]] = np.arange(cells - 1)
    return cell, cells


def _binned(original: pl.Series, released: pl.Series, cells: int) -> Spread:
    before = original.cast(pl.Float64).fill_null(np.nan).to_numpy()
    after = released.cast(pl.Float64).fill_null(np.nan).to_numpy()
    present = before[~np.isnan(before)]
    edges = np.unique(np.quantile(present, np.arange(1, cells) / cells)) if len(present) else np.empty(0)
    missing = len(edges) + 1

    def place(values: Floats) -> Ints:
        return np.where(np.isnan(values), missing, np.searchsorted(edges, values, side="left")).astype(np.int64)

    return Spread(
        original=place(before),
        released=place(after),
        matrix=sparse.identity(missing + 1, format="csr"),
        cells=missing + 1,
    )
