"""Independent check that units share all their released events with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.row_codes import number_rows, row_keys
from sfumato.release import State, Verdict
from sfumato.wording import counted

_LARGEST_KEY = 1 << 62
MODEL = "k-anonymity of units"


def unit_verdict(published: Mapping[str, Any], release: pl.DataFrame) -> Verdict:
    """Whether everybody shares all released events with at least k - 1 others, counted in the release alone."""
    try:
        k, unit = int(published["parameters"]["k"]), str(published["unit"])
        columns = [str(name) for name in published["columns"]]
    except (KeyError, TypeError, ValueError):
        return Verdict(model=MODEL, state=State.NOT_CHECKED, reason="Its published parameters are not valid.")
    if unit not in release.columns or not set(columns) & set(release.columns):
        return Verdict(model=MODEL, state=State.NOT_CHECKED, reason="The release lacks the unit or the items.")
    sizes = _shared_by(release, unit)
    smallest, few = min(sizes, default=0), sum(size for size in sizes if size < k)
    if not few:
        return Verdict(model=MODEL, state=State.HOLDS, worst=smallest, wanted=k)
    reason = f"{counted(few, 'unit')} share their events with fewer than {k - 1} others."
    return Verdict(model=MODEL, state=State.FAILS, worst=smallest, wanted=k, failing=few, reason=reason)


def _shared_by(release: pl.DataFrame, unit: str) -> list[int]:
    """For each multiset of events the number of units that have exactly it.

    Units are compared by their events in ascending order, value by value; nothing is hashed to fewer bits.
    """
    units = _numbered(release.get_column(unit))
    codes = [_numbered(release.get_column(name)) for name in release.columns if name != unit]
    sizes = [int(one.max(initial=0)) + 1 for one in codes]
    people = int(units.max(initial=-1)) + 1
    event, span = row_keys(codes, sizes)
    if span > _LARGEST_KEY // max(people, 1):
        event, span = number_rows(codes, sizes)
    key = units * np.int64(span)
    key += event
    key.sort()
    ends = np.searchsorted(key, np.arange(1, people + 1) * span)
    key %= span
    return list(Counter(own.tobytes() for own in np.split(key, ends[:-1]) if len(own)).values())


def _numbered(series: pl.Series) -> Any:
    text = series.cast(pl.String) if series.dtype in (pl.Categorical, pl.Enum) else series
    return text.rank("dense").cast(pl.Int32).fill_null(0).to_numpy()
