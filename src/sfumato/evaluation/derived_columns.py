"""Derived columns of a release: released columns from which a masked or removed column can be computed."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.dataset import Role, Schema
from sfumato.dataset.rows import Rows, some_columns
from sfumato.errors import NotApplicable
from sfumato.evaluation.check import paired_rows
from sfumato.profiling.derived import EXACT, Determination, find_determinations
from sfumato.release import Lineage
from sfumato.release.decisions import unchanged_columns
from sfumato.rng import Rng

_FEWEST_ROWS = 10_000
"""The least number of rows of a larger table that must fit into memory, so that a relation can be told."""
_NOT_PROTECTED = (Role.WEIGHT, Role.HOUSEHOLD)


def derived_columns(
    original: Rows, release: Rows, schema: Schema, *, lineage: Lineage | None, together: bool
) -> tuple[Determination, ...]:
    """Released columns from which a column of the original follows that was masked or removed.

    ``together`` says that a privacy model holds for all quasi-identifiers jointly. A derived column that is itself a
    quasi-identifier is then protected with the others, and is no finding. Pseudonyms are none either: they follow from
    a secret key. Without a row map, only columns that left unchanged are compared, on the rows of the original. Of rows
    in an engine a random part is compared: a relation that holds in all rows holds there, too.
    """
    hidden = (Role.IDENTIFIER, Role.QUASI) if together else (Role.IDENTIFIER,)
    limits = [rows.most_rows for rows in (original, release) if rows.most_rows is not None]
    if limits and min(limits) < min(_FEWEST_ROWS, original.rows):
        raise NotApplicable(
            f"{_FEWEST_ROWS:,} rows with all columns do not fit into memory.", fix="Raise `memory`.", option="memory"
        )
    if lineage is None:
        some = None
        if limits and original.rows > min(limits):
            some = np.sort(Rng(0).generator.choice(original.rows, min(limits), replace=False))
        before, unchanged = original.load(original.columns, some), _same_counts(original, release)
        after, known = before, [name for name in unchanged if schema.column(name).role not in hidden]
        masked: dict[str, pl.Series] = {}
    else:
        data, table, lineage = paired_rows(original, release, schema, lineage, most=min(limits, default=None))
        assert lineage is not None
        rows = np.flatnonzero(lineage.rows >= 0)
        before, after = data.table.frame[lineage.rows[rows]], table.frame[rows]
        unchanged = unchanged_columns(data.table, table, lineage)
        known = [name for name in release.columns if schema.column(name).role not in hidden]
        masked = {name: after.get_column(name) for name in release.columns if name not in unchanged}
    targets = [
        name for name in original.columns if name not in unchanged and schema.column(name).role not in _NOT_PROTECTED
    ]
    if not known or not targets:
        return ()
    found = find_determinations(some_columns(after, known), some_columns(before, targets), masked=masked)
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


def _same_counts(original: Rows, release: Rows) -> list[str]:
    """Released columns in which no value is more frequent than in the original, as if rows were only left out."""
    same = []
    for name in release.columns:
        if name not in original.columns:
            continue
        before, after = (
            pl.DataFrame([groups.values.to_series().alias("value"), pl.Series("rows", groups.rows)])
            for groups in (original.group([name]), release.group([name]))
        )
        try:
            after = after.group_by(pl.col("value").cast(before.schema["value"])).sum()
        except pl.exceptions.PolarsError:
            continue
        counts = after.join(before, on="value", how="left", nulls_equal=True, suffix="_before")
        if bool((counts["rows"] <= counts["rows_before"].fill_null(0)).all()):
            same.append(name)
    return same
