"""Equivalence classes of a table: how many rows share each row's quasi-identifiers, missing values included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.errors import NotApplicable
from sfumato.masking.wildcard_matching import wildcard_sums
from sfumato.measures.base import ReleasePair
from sfumato.schema import ROOT, Dataset

__all__ = ["ReleasedClasses", "classes", "quasi_of", "released_classes"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ReleasedClasses:
    """Class of each row that takes part, and how many rows fit it."""

    label: Ints
    """Per row the number of its class; -1 for a suppressed row."""
    fit: Ints
    """Per class, how many rows fit it. More than its own rows where missing cells match everything."""
    weight: npt.NDArray[np.float64]
    """Per class, the sum of the sampling weights of the rows that fit it (the rows themselves without weights)."""

    @property
    def own(self) -> Ints:
        """Per class, its own rows."""
        return np.bincount(self.label[self.label >= 0], minlength=len(self.fit)).astype(np.int64)

    @property
    def size(self) -> Ints:
        """Per row that is not suppressed, how many rows fit it."""
        return self.fit[self.label[self.label >= 0]]

    @property
    def suppressed(self) -> int:
        return int((self.label < 0).sum())

    @property
    def rows(self) -> int:
        """Rows that are not suppressed."""
        return int((self.label >= 0).sum())


def quasi_of(data: Dataset) -> tuple[str, ...]:
    """The quasi-identifiers present; without any, nothing about classes can be said."""
    if not data.quasi:
        raise NotApplicable(
            "No column of the table is declared quasi-identifier.", fix="Give columns the role `quasi` in the recipe."
        )
    return data.quasi


def released_classes(pair: ReleasePair) -> ReleasedClasses:
    """Classes of the release over its quasi-identifiers."""
    released = Dataset(table=pair.release.table, schema=pair.original.schema)
    names = quasi_of(released)
    return classes(pair.masked, names, {name: pair.original.schema.column(name).missing for name in names})


def classes(
    frame: pl.DataFrame,
    names: tuple[str, ...],
    missing: Mapping[str, str] | None = None,
    weights: npt.NDArray[np.float64] | None = None,
) -> ReleasedClasses:
    """Classes over ``names``.

    A row whose every cell is ``*`` or a suppressed blank says nothing and belongs to no class. In a column whose
    missing values are "wildcard" or "suppressed", a blank fits every value, and its row is counted in every class it
    fits.
    """
    missing = missing or {}
    joker = [name for name in names if missing.get(name, "category") != "category" and frame[name].null_count()]
    suppressed = np.ones(frame.height, dtype=np.bool_)
    for name in names:
        starred = (
            (frame[name] == ROOT) if frame.schema[name] == pl.String else pl.repeat(False, frame.height, eager=True)
        )
        suppressed &= starred.fill_null(name in joker).to_numpy() | (frame[name].is_null().to_numpy() & (name in joker))
    # Columns go by number here: a column may be called anything, "class" included.
    keys = {f"c{number}": name for number, name in enumerate(names)}
    cells = pl.DataFrame([frame.get_column(name).alias(key) for key, name in keys.items()])
    held_cells = cells.filter(pl.Series(~suppressed))
    distinct = held_cells.unique(maintain_order=True).with_row_index("class")
    joined = held_cells.join(distinct, on=list(keys), how="left", nulls_equal=True, maintain_order="left")
    label = np.full(frame.height, -1, dtype=np.int64)
    label[~suppressed] = joined["class"].to_numpy()
    held = label >= 0
    count = np.bincount(label[held], minlength=distinct.height).astype(np.int64)
    mass = weights[held] if weights is not None else np.ones(int(held.sum()))
    total = np.bincount(label[held], weights=mass, minlength=distinct.height).astype(np.float64)
    if joker:
        count, total = _with_jokers(distinct.select(list(keys)).rename(keys), joker, count, total)
    return ReleasedClasses(label=label, fit=count, weight=total)


def _with_jokers(
    distinct: pl.DataFrame, joker: list[str], count: Ints, total: npt.NDArray[np.float64]
) -> tuple[Ints, npt.NDArray[np.float64]]:
    """Add to each class the rows of the classes it is compatible with."""
    codes = [column.rank("dense").fill_null(0).cast(pl.Int64).to_numpy() for column in distinct.iter_columns()]
    blank = [distinct[name].is_null().to_numpy() & (name in joker) for name in distinct.columns]
    widths = [int(code.max(initial=0)) + 1 for code in codes]
    fit, mass = wildcard_sums(np.column_stack(codes), widths, np.column_stack(blank), [count, total])
    return fit, mass
