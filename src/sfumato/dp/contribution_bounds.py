"""Contribution bounding of data frames: at most so many rows or items of one privacy unit, drawn at random.

A loss that a mechanism has for one row is one for a person only if no person has more rows than a bound. Only the
functions of this module, which cut at the bound, make :class:`Enforced`; what a caller merely states is
:class:`Promised`. Questions in SQL are bounded within their statements (:mod:`sfumato.engines.contribution_bounding`),
graphs by projection (:mod:`sfumato.graphs.private_statistics`).

What a unit keeps depends on its own rows and on random numbers alone, never on other units: adding or removing one
unit changes nothing else, so the bounded tables of neighbours differ by the rows of that unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.dp.os_random import words
from sfumato.errors import BadParameter

if TYPE_CHECKING:
    from sfumato.dataset.plan import PlannedTable

_CUTTER = object()


class Enforced:
    """Proof that a run cut every unit at a bound. Made by the functions of this module alone."""

    __slots__ = ("rows", "unit")

    def __init__(self, unit: str, rows: int, *, cutter: object = None) -> None:
        if cutter is not _CUTTER:
            raise BadParameter(
                "a bound is enforced by cutting at it, not by saying so.", fix="Call `bound_rows`, or use `Promised`."
            )
        self.unit, self.rows = unit, rows

    def __str__(self) -> str:
        return f"cut at {self.rows} per {self.unit}"


@dataclass(frozen=True, kw_only=True)
class Promised:
    """A bound that nobody enforced: ``by`` says who states that no unit exceeds it."""

    unit: str
    rows: int
    by: str

    def __str__(self) -> str:
        return f"{self.by} states at most {self.rows} per {self.unit}; not cut"


Bounds: TypeAlias = Enforced | Promised


def bound_table(frame: pl.DataFrame, table: PlannedTable) -> tuple[pl.DataFrame, Enforced | None]:
    """The rows that a plan uses, without the column of the person: of each, so many as the document says."""
    if table.unit is None:
        return frame, None
    kept, bounds = bound_rows(frame, table.unit, table.max_rows, named=table.privacy_unit)
    return kept.drop(table.unit), bounds


def bound_rows(frame: pl.DataFrame, unit: str, rows: int, *, named: str | None = None) -> tuple[pl.DataFrame, Enforced]:
    """At most ``rows`` rows of every unit, drawn at random; rows without a unit are left out.

    ``unit`` is the column that tells units apart, ``named`` what the ledger calls the unit (default: as the column).

    >>> frame, bounds = bound_rows(pl.DataFrame({"who": ["a"] * 5 + ["b", None], "x": range(7)}), "who", 2)
    >>> frame.height, str(bounds)
    (3, 'cut at 2 per who')
    """
    _check(rows)
    # A row without a unit counts for nobody: to refuse it would tell that there is one.
    keyed = frame.filter(pl.col(unit).is_not_null())
    kept = keyed[np.argsort(words(keyed.height))].filter(pl.int_range(pl.len()).over(unit) < rows)
    return kept, Enforced(named or unit, rows, cutter=_CUTTER)


def bound_items(units: Ints, items: Ints, *, count: int, most: int, unit: str) -> tuple[Ints, Enforced]:
    """Number of units per item; of every unit at most ``most`` different items, drawn at random, are counted.

    ``items`` are numbers from 0 to ``count`` - 1; negative ones are left out.
    """
    _check(most)
    known = items >= 0
    pairs = np.unique(units[known] * max(1, count) + items[known])
    # Random order, then a stable sort by unit: the pairs of a unit stand together, in random order.
    pairs = pairs[np.argsort(words(len(pairs)), kind="stable")]
    pairs = pairs[np.argsort(pairs // max(1, count), kind="stable")]
    owner = pairs // max(1, count)
    drawn = pairs[np.arange(len(pairs)) - np.searchsorted(owner, owner) < most]
    return np.bincount(drawn % max(1, count), minlength=count).astype(np.int64), Enforced(unit, most, cutter=_CUTTER)


def _check(most: int) -> None:
    if most < 1:
        raise BadParameter("a bound on the contribution of a unit is at least 1.")
