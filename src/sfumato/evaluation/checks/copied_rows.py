"""Copied rows of a synthetic release: rows that repeat the whole record of one person."""

from __future__ import annotations

import polars as pl

from sfumato.data.table import Table
from sfumato.evaluation.check import Check, Need, Subject
from sfumato.release import Lineage, State, Verdict


class CopiedRows(Check):
    """No row of a synthetic release is a copy of a person's record.

    Only records count that have a number nobody else has, in a column in which most people have such a number: other
    records may recur by coincidence. There is no verdict if no column is like that.
    """

    needs = frozenset({Need.ORIGINAL, Need.LINEAGE})

    @classmethod
    def verdict_name(cls) -> str:
        return COPIED

    def applies(self, subject: Subject) -> bool:
        return subject.synthetic

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        original, release, lineage = subject.pair
        return copied_verdict(original.table, release, lineage)


COPIED = "copied rows"
"""The name of the verdict."""
_MOSTLY_UNIQUE = 0.9
"""Share of the values of a column that occur once, from which an equal value is no coincidence."""


def copied_rows(original: Table, release: Table) -> int | None:
    """The number of released rows that equal an original record in all columns they share.

    Only records count that have a number nobody else has, in a column in which most people have such a number: other
    records may recur by coincidence. None if no column is like that, so that nothing can be told.
    """
    names = [
        name
        for name in release.columns
        if name in original.columns and original.column(name).dtype == release.column(name).dtype
    ]
    telling = [original.column(name) for name in names if _mostly_unique(original.column(name))]
    if not telling:
        return None
    alone = pl.DataFrame([values.is_unique() & values.is_not_null() for values in telling])
    records = original.frame.select(names).filter(alone.select(pl.any_horizontal(pl.all())).to_series())
    return release.frame.join(records, on=names, how="semi", nulls_equal=True).height


def copied_verdict(original: Table, release: Table, lineage: Lineage | None) -> tuple[Verdict, ...]:
    """Whether no row of a synthetic release is a copy of a person's record; no verdict on other releases."""
    if lineage is None or len(lineage.rows) == 0 or (lineage.rows >= 0).any():
        return ()
    count = copied_rows(original, release)
    if count is None:
        return ()
    if count == 0:
        return (Verdict(model=COPIED, state=State.HOLDS, worst=0, wanted=0),)
    reason = (
        f"{count} of {release.rows} synthetic rows are copies of a person's record. Synthesize without `keep_values`, "
        "or with larger leaves."
    )
    return (Verdict(model=COPIED, state=State.FAILS, worst=count, wanted=0, failing=count, reason=reason),)


def _mostly_unique(values: pl.Series) -> bool:
    if not values.dtype.is_numeric():
        return False
    present = values.drop_nulls()
    return len(present) > 0 and int(present.is_unique().sum()) >= _MOSTLY_UNIQUE * len(values)
