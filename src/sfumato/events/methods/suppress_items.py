"""Suppression of rare items and rare item sets (k^m-anonymity)."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.dataset import Data
from sfumato.events.item_set_step import ItemSetStep
from sfumato.events.item_sets import ItemSets, event_codes, unit_column
from sfumato.events.supported_items import supported_items
from sfumato.masking.base import Context
from sfumato.release import Change


class SuppressItems(ItemSetStep):
    """Remove items until every set of at most ``m`` items occurs in no unit or in at least ``k`` (k^m-anonymity).

    An attacker who knows up to ``m`` items of a person finds at least ``k`` people with them. With ``m = 1`` this is
    the removal of rare items. Items are removed for everybody; common ones are kept first, and no removed item could
    be put back. One row is kept per person and item: how often somebody has an item would be known beside it. Truthful.
    Attackers who know more than ``m`` items, or dates and ratings, are not covered: coarsen or remove those columns.
    Long-tailed data such as search logs loses most items for ``m`` above 1; ``generalize-items`` keeps more if the
    items have a taxonomy.

    Rows without an item stay as they are. ``sfumato check`` counts the item sets of the release again.
    """

    report_phrase = "items removed until {m} known items fit at least {k} people"
    keeps_rows = False
    examples = (
        {"item": "diagnosis", "person": "household", "k": 2, "m": 2},
        {"item": "diagnosis", "person": "household", "k": 3, "m": 1},
    )

    def apply(self, data: Data, context: Context) -> Change:
        unit = unit_column(data, self.person, self.part_name())
        data.table.require([self.item])
        units, codes, items = event_codes(data.table.frame, unit, self.item)
        kept = np.ones(data.rows, dtype=np.bool_)
        removed = 0
        if len(items):
            sets = ItemSets.of(units, codes, count=len(items))
            keep = supported_items(sets, k=self.k, m=self.m, progress=context.progress)[sets.rank_of]
            first = pl.DataFrame({"unit": units, "item": codes}).select(pl.struct(pl.all()).is_first_distinct())
            kept = (codes < 0) | (keep[np.maximum(codes, 0)] & first.to_series().to_numpy())
            removed = int((~keep).sum())
        rows = np.flatnonzero(kept).astype(np.int64)
        return Change(
            table=data.table.with_frame(data.table.frame[rows]),
            rows=rows,
            public={"columns": [self.item], "unit": unit},
            private={"items_removed": removed, "rows_removed": data.rows - len(rows)},
        )
