"""Suppression of items that reveal sensitive ones (rho-uncertainty)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.dataset import Data
from sfumato.errors import BadParameter
from sfumato.events.association_check import association_verdict
from sfumato.events.associations import harmless_items
from sfumato.events.item_sets import ItemSets, event_codes, unit_column
from sfumato.masking.base import Context, Step
from sfumato.rationals import rational
from sfumato.release import Change, Verdict
from sfumato.wording import counted


class SuppressAssociations(Step):
    """Remove items until no known items imply a sensitive item with confidence ``rho`` or more (rho-uncertainty).

    For every set of at most ``m`` items that occurs, less than the share ``rho`` of the people who have it also have
    any given sensitive item. Sensitive items may be known too, and imply each other. This limits what an attacker
    learns; it does not limit who can be recognized (see ``suppress-items``). Sensitive items are kept first, then the
    most common others; an item is removed for everybody. A sensitive item that the share ``rho`` of all people has is
    removed itself. Truthful. The published definition has no bound on the known items; here it is ``m``.

    Rows without an item stay as they are. ``sfumato check`` computes the largest confidence in the release again.
    """

    report_phrase = "items removed that imply a sensitive one with confidence {rho:g} or more"
    truthful = True
    keeps_rows = False
    simulable = False
    stronger = {"rho": "less", "m": "more"}
    exempt = {"no data value in public": "The sensitive items are a parameter, which is public."}
    examples = ({"item": "diagnosis", "person": "household", "sensitive": ["asthma"], "rho": 0.9, "m": 1},)
    reference = (
        "Cao, Karras, Raïssi, Tan: rho-uncertainty: inference-proof transaction anonymization (2010), "
        "doi:10.14778/1920841.1920971"
    )

    item: str
    """Column with the items: products, queries, films, places."""
    sensitive: Annotated[tuple[str, ...], Field(min_length=1)]
    """Items that nobody may learn about a person."""
    rho: Annotated[float, Field(gt=0, le=1)]
    """Bound on the confidence: less than this share of the people with some known items have a sensitive one."""
    m: Annotated[int, Field(ge=1, le=4)]
    """Number of items of a person that an attacker knows, at most."""
    person: str | None = None
    """Column that identifies a person. Default: the recipe's ``unit``."""

    def apply(self, data: Data, context: Context) -> Change:
        unit = unit_column(data, self.person, self.part_name())
        data.table.require([self.item])
        units, codes, items = event_codes(data.table.frame, unit, self.item)
        texts = items.cast(pl.String).to_list()
        unknown = len(set(self.sensitive) - set(texts))
        if unknown == len(set(self.sensitive)):
            raise BadParameter(
                f"suppress-associations: none of the {counted(unknown, 'sensitive item')} occurs in `{self.item}`.",
                fix="Write them as they stand in the data.",
                column=self.item,
            )
        sensitive = [code for code, text in enumerate(texts) if text in set(self.sensitive)]
        sets = ItemSets.of(units, codes, count=len(items))
        people = len(np.unique(units))
        while True:
            keep = harmless_items(sets, sensitive, rho=rational(self.rho), m=self.m, people=people)[sets.rank_of]
            kept = (codes < 0) | keep[np.maximum(codes, 0)]
            left = len(np.unique(units[kept]))
            if left >= people:
                break
            people = max(1, left)  # people without any item left are not in the release and not in its shares
            if not left:
                break
        rows = np.flatnonzero(kept).astype(np.int64)
        return Change(
            table=data.table.with_frame(data.table.frame[rows]),
            rows=rows,
            public={"columns": [self.item], "unit": unit},
            private={"items_removed": int((~keep).sum()), "rows_removed": data.rows - len(rows)},
        )

    @classmethod
    def verify_release(cls, published: Mapping[str, object], release: pl.DataFrame) -> tuple[Verdict, ...]:
        return (association_verdict(published, release),)
