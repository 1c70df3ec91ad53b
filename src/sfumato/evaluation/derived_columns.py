"""Derived columns of a release: released columns from which a masked or removed column can be computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Data, Role
from sfumato.profiling.derived import EXACT, Determination, find_determinations
from sfumato.release import Lineage
from sfumato.release.decisions import unchanged_columns

__all__ = ["derived_columns"]

_NOT_PROTECTED = (Role.WEIGHT, Role.HOUSEHOLD)


def derived_columns(
    original: Data, release: Table, *, lineage: Lineage | None, together: bool
) -> tuple[Determination, ...]:
    """Released columns from which a column of the original follows that was masked or removed.

    ``together`` says that a privacy model holds for all quasi-identifiers jointly. A derived column that is itself a
    quasi-identifier is then protected with the others, and is no finding. Pseudonyms are none either: they follow from
    a secret key. Without a row map, only columns that left unchanged are compared, on the rows of the original.
    """
    schema = original.schema
    hidden = (Role.IDENTIFIER, Role.QUASI) if together else (Role.IDENTIFIER,)
    if lineage is None:
        before, unchanged = original.table.frame, _same_counts(original.table, release)
        after, known = before, [name for name in unchanged if schema.column(name).role not in hidden]
        masked: dict[str, pl.Series] = {}
    else:
        rows = np.flatnonzero(lineage.rows >= 0)
        before, after = original.table.frame[lineage.rows[rows]], release.frame[rows]
        unchanged = unchanged_columns(original.table, release, lineage)
        known = [name for name in release.columns if schema.column(name).role not in hidden]
        masked = {name: after.get_column(name) for name in release.columns if name not in unchanged}
    targets = [
        name
        for name in original.table.columns
        if name not in unchanged and schema.column(name).role not in _NOT_PROTECTED
    ]
    if not known or not targets:
        return ()
    found = find_determinations(_some(after, known), _some(before, targets), masked=masked)
    return tuple(one for one in found if _counts_against(one, schema.column(one.target).role))


def _counts_against(found: Determination, role: Role) -> bool:
    """Whether a finding about a target of this role counts.

    An identifier must follow by order or arithmetic. A dropped column, which may only be superfluous, must also follow
    exactly.
    """
    match role:
        case Role.IDENTIFIER:
            return found.computable
        case Role.DROP:
            return found.computable and found.error < EXACT
        case _:
            return True


def _same_counts(original: Table, release: Table) -> list[str]:
    """Released columns in which no value is more frequent than in the original, as if rows were only left out."""
    same = []
    for name in release.columns:
        if name not in original.columns:
            continue
        before, after = original.column(name), release.column(name)
        if before.dtype != after.dtype:
            try:
                after = after.cast(before.dtype)
            except pl.exceptions.PolarsError:
                continue
        counts = _counts(after, "after").join(_counts(before, "before"), on="value", how="left", nulls_equal=True)
        if bool((counts["after"] <= counts["before"].fill_null(0)).all()):
            same.append(name)
    return same


def _counts(values: pl.Series, name: str) -> pl.DataFrame:
    return values.alias("value").to_frame().group_by("value").agg(pl.len().alias(name))


def _some(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """These columns. ``select`` would interpret a column name such as ``*`` as a pattern."""
    return pl.DataFrame([frame.get_column(name) for name in names])
