"""Numeric columns of original and release, aligned by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats
from sfumato.attacks.features import numbers
from sfumato.dataset import Role
from sfumato.errors import NotApplicable
from sfumato.measures.base import ReleasePair


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Columns of numbers that both tables have; row i of both is the same person."""

    names: tuple[str, ...]
    original: Floats
    released: Floats


def beside(pair: ReleasePair, columns: tuple[str, ...] | None) -> Beside:
    """The number columns of quasi-identifiers and sensitive columns, aligned by the row map."""
    if pair.lineage is None:
        raise NotApplicable(
            "Nobody knows which row of the release is whose, so masked and true values cannot be compared.",
            fix="Give the row map (`lineage`) that was written with the release.",
        )
    if columns is not None:
        pair.original.table.require(columns)
        pair.release.table.require(columns)
    design = (Role.IDENTIFIER, Role.DROP, Role.WEIGHT, Role.HOUSEHOLD)
    wanted = columns or tuple(name for name in pair.common if pair.original.schema.column(name).role not in design)
    kept = pair.lineage.rows >= 0
    names, before, after = [], [], []
    for name in wanted:
        if not pair.original.table.column(name).dtype.is_numeric():
            continue
        masked, true = numbers(pair.release.table.column(name)), numbers(pair.original.table.column(name))
        if masked is None or true is None:
            continue
        names.append(name)
        before.append(true[pair.lineage.rows[kept]])
        after.append(masked[kept])
    if not names:
        raise NotApplicable("The release and the original share no column of numbers.")
    original, released = np.column_stack(before), np.column_stack(after)
    whole = np.isfinite(original).all(axis=1) & np.isfinite(released).all(axis=1)
    if not whole.any():
        raise NotApplicable("No row has all its numbers in both tables.")
    return Beside(names=tuple(names), original=original[whole], released=released[whole])
