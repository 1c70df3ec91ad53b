"""Equivalence classes of a table: how many rows share each row's quasi-identifiers, missing values included."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Ints, Mask
from sfumato.data.row_codes import first_rows, number_rows, value_codes
from sfumato.dataset import Data, Role, Schema
from sfumato.dataset.rows import Rows
from sfumato.errors import NotApplicable
from sfumato.masking.evaluate import rows_without_values
from sfumato.masking.wildcard_matching import wildcard_sums
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


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
    def suppressed(self) -> int:
        return int((self.label < 0).sum())

    @property
    def rows(self) -> int:
        """Rows that are not suppressed."""
        return int((self.label >= 0).sum())


@dataclass(frozen=True, kw_only=True)
class ClassCounts:
    """The sizes of the equivalence classes of a table, counted where its rows lie."""

    fit: Ints
    """Per class, how many rows fit it. More than its own rows where missing cells match everything."""
    own: Ints
    """Per class, its own rows."""
    suppressed: int
    """Rows without any value, which belong to no class."""

    @classmethod
    def of(cls, table: Rows, schema: Schema) -> ClassCounts:
        """Count the classes over the quasi-identifiers of a schema that the table has."""
        names = tuple(name for name in table.columns if schema.column(name).role is Role.QUASI)
        if not names:
            raise _no_quasi()
        groups = table.group(names)
        found = classes(groups.values, names, {name: schema.column(name).missing for name in names}, groups.rows)
        shown = found.label >= 0
        own = np.bincount(found.label[shown], weights=groups.rows[shown], minlength=len(found.fit))
        return cls(
            fit=found.weight.astype(np.int64),
            own=own.astype(np.int64),
            suppressed=int(groups.rows[~shown].sum()),
        )

    @property
    def rows(self) -> int:
        """Rows that are not suppressed."""
        return int(self.own.sum())

    def share(self, classes: Mask) -> float:
        """The share of the rows that is in these classes."""
        return int(self.own[classes].sum()) / self.rows

    @property
    def expected(self) -> float:
        """How many people an adversary finds who knows their quasi-identifiers: the sum of 1 / class size."""
        sizes, position = np.unique(self.fit, return_inverse=True)  # in one order, whatever that of the classes is
        return float((np.bincount(position, weights=self.own) / sizes).sum())


class ClassMeasure(Measure):
    """A measure that follows from the sizes of equivalence classes, in memory and of any file in an engine."""

    about: ClassVar[About] = About.DISCLOSURE

    @abstractmethod
    def of_classes(self, released: ClassCounts, before: ClassCounts | None) -> MeasureResult:
        """The value, from the classes of the release, of which there is at least one, and of the original."""

    def of_counts(self, counts: tuple[ClassCounts, ClassCounts | None]) -> MeasureResult:
        """The measure from the counts of both tables; a reason if every row is suppressed."""
        released, before = counts
        if not len(released.fit):
            return MeasureResult(measure=self.part_name(), value=None, reason="Every row of the release is suppressed.")
        return self.of_classes(released, before)

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        return self.of_counts(pair.class_counts)


def class_counts(release: Rows, original: Rows | None, schema: Schema) -> tuple[ClassCounts, ClassCounts | None]:
    """The classes of both tables. An original with more combinations of values than can be counted is left out."""
    released, before = ClassCounts.of(release, schema), None
    if original is not None:
        with suppress(NotApplicable):
            before = ClassCounts.of(original, schema)
    return released, before


def _no_quasi() -> NotApplicable:
    return NotApplicable(
        "No column of the table is declared quasi-identifier.", fix="Give columns the role `quasi` in the recipe."
    )


def quasi_of(data: Data) -> tuple[str, ...]:
    """The quasi-identifiers present; without any, nothing about classes can be said."""
    if not data.quasi:
        raise _no_quasi()
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
    weights: npt.NDArray[np.float64] | Ints | None = None,
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
