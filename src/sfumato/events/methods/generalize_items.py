"""Generalization of items in a taxonomy (k^m-anonymity)."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.dataset import Data
from sfumato.dataset.bound_hierarchy import BoundHierarchy
from sfumato.errors import NotApplicable
from sfumato.events.item_set_step import ItemSetStep
from sfumato.events.item_sets import ItemSets, distinct_sorted, unit_column
from sfumato.events.supported_items import supported_items
from sfumato.masking.base import Context
from sfumato.progress import SILENT, Progress
from sfumato.release import Change
from sfumato.wording import counted


class GeneralizeItems(ItemSetStep):
    """Generalize items in their taxonomy until every set of at most ``m`` occurs in no unit or in at least ``k``.

    This is k^m-anonymity: an attacker who knows up to ``m`` items of a person finds at least ``k`` people with them.
    The taxonomy is the ``hierarchy`` of the column; without one, a rare item becomes ``*``. An item is generalized for
    everybody and together with all items under the same label, so labels never overlap. Rare items are raised first.
    Truthful. One row is kept per person and label: how often somebody bought something of a group would be one more
    thing to know. Attackers who know more than ``m`` items, dates or ratings are not covered.

    Rows without an item stay as they are. ``sfumato check`` counts the item sets of the release again.
    """

    report_phrase = "generalized until {m} known items fit at least {k} people"
    coarsens = True
    keeps_rows = False
    examples = (
        {"item": "diagnosis", "person": "household", "k": 2, "m": 2},
        {"item": "zip", "person": "household", "k": 3, "m": 1},
    )

    def apply(self, data: Data, context: Context) -> Change:
        unit = unit_column(data, self.person, self.part_name())
        data.table.require([self.item])
        frame = data.table.frame
        series = frame.get_column(self.item)
        present = series.is_not_null().to_numpy()
        if not present.any():
            return Change(table=data.table, public={"columns": [self.item], "unit": unit})
        hierarchy = data.bound_hierarchy(self.item)
        leaf = np.full(data.rows, -1, dtype=np.int64)
        leaf[present] = hierarchy.encode(series.filter(pl.Series(present)))
        units = frame.get_column(unit).rank("dense").cast(pl.Int64).to_numpy() - 1
        level = _levels(units, leaf, hierarchy, k=self.k, m=self.m, progress=context.progress)
        labels = _labels(series, leaf, hierarchy, level)
        fresh = pl.DataFrame({"unit": units, "label": labels.cast(pl.String)})
        first = fresh.select(pl.struct("unit", "label").is_first_distinct()).to_series().to_numpy()
        rows = np.flatnonzero(~present | first)
        masked = frame.with_columns(labels.alias(self.item))[rows]
        used = level[np.unique(leaf[present])]
        return Change(
            table=data.table.with_frame(masked),
            rows=rows.astype(np.int64),
            public={"columns": [self.item], "unit": unit},
            private={
                "items_by_level": {str(n): int(count) for n, count in enumerate(np.bincount(used)) if count},
                "repeated_rows_removed": data.rows - len(rows),
            },
        )


def _levels(units: Ints, leaf: Ints, hierarchy: BoundHierarchy, *, k: int, m: int, progress: Progress = SILENT) -> Ints:
    """The level of each leaf. Labels that have a rare set with more frequent labels are raised, until none has."""
    pairs = distinct_sorted(units[leaf >= 0] * len(hierarchy.leaves) + leaf[leaf >= 0])
    units, leaf = pairs // len(hierarchy.leaves), pairs % len(hierarchy.leaves)
    people = len(distinct_sorted(units))
    if people < k:
        raise NotApplicable(
            f"generalize-items: {counted(people, 'unit')} with items cannot be made {k} alike.",
            fix="Use a smaller k.",
            k=k,
        )
    paths = np.stack([level.codes.astype(np.int64) for level in hierarchy.levels])
    sizes = np.array([one.size for one in hierarchy.levels])
    below = np.concatenate([[0], np.cumsum(sizes)])
    nodes = paths + below[:-1, None]  # a number for each label of each level
    level = np.zeros(paths.shape[1], dtype=np.int64)
    occurring = np.zeros(paths.shape[1], dtype=np.bool_)
    occurring[leaf] = True
    top, everything = hierarchy.height, np.arange(paths.shape[1])
    for known in range(1, m + 1):
        while True:
            node = nodes[level, everything]
            shown = np.zeros(below[-1], dtype=np.bool_)
            shown[node[leaf]] = True
            distinct, codes = np.flatnonzero(shown), (np.cumsum(shown) - 1)[node[leaf]]
            root = np.flatnonzero(distinct == below[top]) if sizes[top] == 1 else np.array([], np.int64)
            sets = ItemSets.of(units, codes, count=len(distinct), first=int(root[0]) if len(root) else None)
            keep = supported_items(sets, k=k, m=known, progress=progress)[sets.rank_of]
            if len(root) and not keep[root[0]]:
                # too few people show the root alone: the rarest other label joins it
                keep[root[0]] = True
                others = np.flatnonzero(np.arange(len(distinct)) != root[0])
                keep[others[np.argmax(sets.rank_of[others])]] = False
            if keep.all():
                break
            raised = distinct[~keep]
            hit = occurring & np.isin(node, raised)
            if (level[hit] >= top).all():
                raise NotApplicable(
                    "generalize-items: the top level of the hierarchy is not general enough.",
                    fix="Add a level `*` above all labels.",
                )
            # raising a label raises everything under its parent
            for at in np.unique(level[hit & (level < top)]):
                parents = np.unique(nodes[at + 1, hit & (level == at)])
                level = np.where(np.isin(nodes[at + 1], parents), np.maximum(level, at + 1), level)
    return level


def _labels(series: pl.Series, leaf: Ints, hierarchy: BoundHierarchy, level: Ints) -> pl.Series:
    if not level.any():
        return series
    texts = np.array([one.text.to_numpy() for one in hierarchy.levels], dtype=object)
    chosen = pl.Series(series.name, texts[level, np.arange(len(level))], dtype=pl.String)
    index = pl.Series(np.maximum(leaf, 0))
    return pl.select(pl.when(pl.Series(leaf >= 0)).then(chosen.gather(index))).to_series().alias(series.name)
