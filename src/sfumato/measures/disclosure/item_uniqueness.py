"""Unicity: people who are unique by a few of their events."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.attacks.evaluation.intervals import wilson
from sfumato.attacks.normalize import canonical
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["ItemUniqueness"]


class ItemUniqueness(Measure):
    """The share of people who are the only ones to have done some few random things that they did.

    For tables with a row per event and a privacy unit: films, purchases, places. The value is for ``events`` things,
    which are drawn at random among those of the person; ``detail`` has the share for every smaller number. Dates and
    ratings are not used: knowing them too makes more people unique (see sparse linkage). People with fewer things are
    asked about all they have.
    """

    about: ClassVar[About] = About.DISCLOSURE
    examples: ClassVar = ({"item": "zip", "events": 3},)
    reference: ClassVar[str] = (
        "de Montjoye, Y.-A. et al. (2013). Unique in the crowd: the privacy bounds of human mobility. Scientific "
        "Reports 3:1376. doi:10.1038/srep01376"
    )

    item: str
    """Column that says what was done."""
    events: Annotated[int, Field(ge=1, le=100)]
    """How many things are known."""
    people: Annotated[int, Field(ge=1)] = 1000
    """How many people are drawn."""

    def of(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        unit = pair.original.schema.unit
        if unit is None or unit not in pair.release.table.columns:
            raise NotApplicable(
                "Things can only be counted per person where a released column says whose row it is.",
                fix="Declare that column as `unit`.",
            )
        pair.release.table.require([self.item])
        whose = pair.masked[unit].rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
        label = canonical(pair.masked[self.item])
        events = pl.DataFrame({"person": whose, "item": label.rank("dense").cast(pl.Int64)}).drop_nulls().unique()
        person, item = events.sort("person", "item").select("person", "item").to_numpy().T
        if len(person) == 0:
            raise NotApplicable(f"The released column `{self.item}` is empty.")
        by_item = np.lexsort((person, item))
        holders, edges = person[by_item], np.searchsorted(item[by_item], np.arange(int(item.max()) + 2))
        draw = rng.generator
        known = np.unique(person)
        chosen = draw.choice(known, min(self.people, len(known)), replace=False)
        unique = np.zeros((len(chosen), self.events), dtype=np.bool_)
        with progress.task("item uniqueness", len(chosen)) as tick:
            for number, who in enumerate(chosen):
                own = item[np.searchsorted(person, who) : np.searchsorted(person, who, side="right")]
                left = None
                for step, thing in enumerate(draw.permutation(own)[: self.events]):
                    fits = holders[edges[thing] : edges[thing + 1]]
                    left = fits if left is None else left[np.isin(left, fits, assume_unique=True)]
                    unique[number, step:] = len(left) == 1
                tick(1)
        shares = unique.mean(axis=0)
        low, high = wilson(int(unique[:, -1].sum()), len(chosen))
        return MeasureResult(
            measure=self.part_name(),
            value=float(shares[-1]),
            low=low,
            high=high,
            detail={"by_events": {str(count + 1): float(share) for count, share in enumerate(shares)}},
        )
