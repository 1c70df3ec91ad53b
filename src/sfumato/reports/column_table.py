"""The table of columns in a report: role and its reason, what was done in words, an example, distinct values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import ROOT, Column, Role
from sfumato.masking.base import method_of
from sfumato.release import Lineage
from sfumato.reports.report_data import ColumnSummary

_EXAMPLE_LENGTH = 60
"""Characters of an example; longer ones would squeeze the other columns of the table."""
_EXAMPLE_ROWS = 20_000
"""Released rows among which the example of a column is chosen."""


def column_summaries(
    manifest: Mapping[str, Any],
    *,
    original: Table | None = None,
    release: Table | None = None,
    lineage: Lineage | None = None,
) -> tuple[ColumnSummary, ...]:
    """One entry per declared or released column, in the order of the original. Without tables there are no counts."""
    declared = {**manifest.get("recipe", {}).get("columns", {}), **manifest.get("columns", {})}
    released = tuple(manifest.get("columns", ())) if release is None else release.columns
    order = released if original is None else original.columns
    names = dict.fromkeys((*(name for name in order if name in declared or name in released), *declared, *released))
    return tuple(
        _summary(name, declared.get(name), manifest, original, release, lineage, released=name in released)
        for name in names
    )


def _summary(
    name: str,
    entry: Mapping[str, Any] | None,
    manifest: Mapping[str, Any],
    original: Table | None,
    release: Table | None,
    lineage: Lineage | None,
    *,
    released: bool,
) -> ColumnSummary:
    declared = Column.model_validate(entry or {"role": "plain"})
    before = original.column(name) if original is not None and name in original.columns else None
    after = release.column(name) if release is not None and released else None
    words = done_in_words(manifest, name, declared)
    compared = manifest.get("unchanged")
    unchanged = released and (not words if compared is None else name in compared)
    changed = bool(words) and released and declared.role is not Role.IDENTIFIER
    example = _example(before, after, lineage) if changed and before is not None and after is not None else None
    return ColumnSummary(
        column=name,
        role=str(declared.role) if entry is not None else "not declared",
        decided_by=str((entry or {}).get("decided_by") or ""),
        reason=str((entry or {}).get("reason") or ""),
        done=_done(words, released=released, unchanged=unchanged),
        released=released,
        unchanged=unchanged,
        nothing_left=after is not None and is_nothing_left(after),
        example_before=None if example is None else example[0],
        example_after=None if example is None else example[1],
        distinct_before=None if before is None else before.drop_nulls().n_unique(),
        distinct_after=None if after is None else after.drop_nulls().n_unique(),
    )


def _done(words: str, *, released: bool, unchanged: bool) -> str:
    """What a step did, or that it left every value as it was."""
    if not released:
        return words or "removed"
    return f"{words}, which left every value as it was" if words and unchanged else words


def done_in_words(manifest: Mapping[str, Any], name: str, declared: Column) -> str:
    """What all steps did to a column, in their own words; empty if none changed it."""
    steps = manifest.get("steps", ())
    words = [method_of(step).column_in_words(step, name, declared) for step in steps]
    return "; then ".join(dict.fromkeys(word for word in words if word))


def is_nothing_left(released: pl.Series) -> bool:
    """Whether every released value is empty or fully masked (``*``), so that the column tells nothing.

    >>> is_nothing_left(pl.Series(["*", "*", None])), is_nothing_left(pl.Series(["0214*", "*"]))
    (True, False)
    """
    values = released.drop_nulls().unique().cast(pl.String).to_list() if len(released) else ["some"]
    return all(value and not value.strip(ROOT) for value in values)


def _example(before: pl.Series, after: pl.Series, lineage: Lineage | None) -> tuple[str, str] | None:
    """The most frequent pair of an original value and what it became; None if rows cannot be matched."""
    if lineage is None or len(lineage.rows) != len(after):
        return None
    rows = lineage.rows[:_EXAMPLE_ROWS]
    kept = rows >= 0
    if not kept.any():
        return None
    shown = after.head(_EXAMPLE_ROWS).cast(pl.String).filter(pl.Series(kept))
    pairs = pl.DataFrame([before[rows[kept]].cast(pl.String).alias("before"), shown.alias("after")]).drop_nulls()
    moved = pairs.filter(pl.col("before") != pl.col("after"))
    if moved.is_empty():
        return None
    common = moved.group_by("before", "after", maintain_order=True).len().sort("len", descending=True)
    return excerpts(common["before"][0], common["after"][0])


def excerpts(before: str, after: str) -> tuple[str, str]:
    """Two texts, cut to the place where they begin to differ if they are long.

    >>> excerpts("x" * 50 + " Anna came in the morning", "x" * 50 + " [PERSON 3] came in the morning")
    ('…xxxxxxxxx Anna came in the morning', '…xxxxxxxxx [PERSON 3] came in the morning')
    """
    if max(len(before), len(after)) <= _EXAMPLE_LENGTH:
        return before, after
    same = (one == other for one, other in zip(before, after, strict=False))
    start = max(0, sum(takewhile(bool, same)) - 10)

    def cut(text: str) -> str:
        end = start + _EXAMPLE_LENGTH
        return ("…" if start else "") + text[start:end] + ("…" if len(text) > end else "")

    return cut(before), cut(after)
