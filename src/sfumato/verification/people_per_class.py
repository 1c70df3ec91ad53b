"""Equivalence classes of people who have several rows: a class of k rows may belong to fewer than k people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.masking.model import PrivacyModel
from sfumato.release import Lineage, State, Verdict
from sfumato.schema import Dataset

__all__ = ["PEOPLE", "people_verdict"]

PEOPLE = "people per equivalence class"
"""The name of the verdict."""


def people_verdict(
    original: Dataset, release: Table, models: Sequence[PrivacyModel], *, lineage: Lineage
) -> tuple[Verdict, ...]:
    """A failed verdict if some equivalence class holds fewer than k people of the privacy unit; else nothing.

    ``k`` is the largest of the models that have one. Rows that came from no person do not count.
    """
    unit = original.schema.unit
    wanted = max((int(k) for model in models if isinstance(k := getattr(model, "k", None), int)), default=None)
    quasi = [name for name in original.quasi if name in release.columns]
    rows = np.flatnonzero(lineage.rows >= 0)
    if unit is None or wanted is None or not quasi or not len(rows):
        return ()
    table = pl.DataFrame([release.column(name)[rows].alias(f"q{i}") for i, name in enumerate(quasi)])
    people = original.table.column(unit)[lineage.rows[rows]].alias("person")
    classes = table.with_columns(people).group_by([f"q{i}" for i in range(len(quasi))]).agg(pl.col("person").n_unique())
    fewest = int(classes["person"].min() or 0)  # type: ignore[arg-type]
    if fewest >= wanted:
        return ()
    reason = (
        f"An equivalence class holds the rows of {fewest} {'person' if fewest == 1 else 'people'} (`unit: {unit}`),"
        f" and {wanted} are required. Keep one row per person, or generalize further (`lowest` of `generalize`)."
    )
    return (Verdict(model=PEOPLE, state=State.FAILS, worst=fewest, wanted=wanted, reason=reason),)
