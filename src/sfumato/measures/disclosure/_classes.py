"""Equivalence classes of a table: how many rows share each row's quasi-identifiers, missing values included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Ints
from sfumato.data.row_codes import first_rows, number_rows, value_codes
from sfumato.dataset import Data
from sfumato.errors import NotApplicable
from sfumato.masking.evaluate import rows_without_values
from sfumato.masking.wildcard_matching import wildcard_sums
from sfumato.measures.base import ReleasePair


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


def quasi_of(data: Data) -> tuple[str, ...]:
    """The quasi-identifiers present; without any, nothing about classes can be said."""
    if not data.quasi:
        raise NotApplicable(
            "No column of the table is declared quasi-identifier.", fix="Give columns the role `quasi` in the recipe."
        )
    return data.quasi


def released_classes(pair: ReleasePair) -> ReleasedClasses:
    """Classes of the release over its quasi-identifiers."""
    released = Data(table=pair.release.table, schema=pair.original.schema)
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
    shown = ~rows_without_values(frame, names, missing)
    codes = [value_codes(frame.get_column(name))[0][shown] for name in names]
    number, count = number_rows(codes)
    label = np.full(frame.height, -1, dtype=np.int64)
    label[shown] = number
    fit = np.bincount(number, minlength=count).astype(np.int64)
    mass = weights[shown] if weights is not None else np.ones(len(number))
    total = np.bincount(number, weights=mass, minlength=count).astype(np.float64)
    wildcard = [name for name in names if missing.get(name, "category") != "category" and frame[name].null_count()]
    if wildcard:
        first = first_rows(number, count)
        blank = [frame[name].is_null().to_numpy()[shown][first] & (name in wildcard) for name in names]
        widths = [int(code.max(initial=0)) + 1 for code in codes]
        matching = np.column_stack([code[first] for code in codes])
        fit, total = wildcard_sums(matching, widths, np.column_stack(blank), [fit, total])
    return ReleasedClasses(label=label, fit=fit, weight=total)
