"""Unicity: people who are unique by a few of their events."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.attacks.normalize import canonical_codes
from sfumato.data.row_codes import number_rows, value_codes
from sfumato.errors import NotApplicable
from sfumato.events.item_sets import distinct_sorted
from sfumato.measures.base import About, Measure, MeasureResult, Picture, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.stats import wilson


class ItemUniqueness(Measure):
    """Unicity: the share of people who are the only ones with some few random events of theirs.

    For tables with a row per event and a privacy unit: films, purchases, searches, points of a trajectory. An event is
    the item, together with ``columns`` if they are named (its time, its place). The value is for ``events`` events,
    drawn at random among those of the person; ``detail`` has the share for every smaller number, and the same for the
    original. People with fewer events are asked about all they have.
    """

    about: ClassVar[About] = About.DISCLOSURE
    label: ClassVar[str] = "unique by a few events"
    percentage: ClassVar[bool] = True
    picture: ClassVar[Picture] = Picture.CURVE
    examples = ({"item": "zip", "events": 3}, {"item": "zip", "columns": ["age"], "events": 2})
    reference: ClassVar[str] = (
        "de Montjoye, Y.-A. et al. (2013). Unique in the crowd: the privacy bounds of human mobility. Scientific "
        "Reports 3:1376. doi:10.1038/srep01376"
    )

    item: str
    """Column that says what was done."""
    events: Annotated[int, Field(ge=1, le=100)]
    """How many events are known."""
    columns: tuple[str, ...] = ()
    """Further columns of an event that are known, such as its time and place."""
    people: Annotated[int, Field(ge=1)] = 1000
    """How many people are drawn."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        unit = pair.original.schema.unit
        if unit is None or unit not in pair.release.table.columns:
            raise NotApplicable(
                "Things can only be counted per person where a released column says whose row it is.",
                fix="Declare that column as `unit`.",
            )
        pair.release.table.require([self.item])
        unique = self._unique(pair.masked, unit, rng.generator, progress)
        shares = unique.mean(axis=0)
        before = self._unique(pair.original.table.frame, unit, rng.child("original").generator, progress).mean(axis=0)
        low, high = wilson(int(unique[:, -1].sum()), len(unique))
        return MeasureResult(
            measure=self.part_name(),
            value=float(shares[-1]),
            low=low,
            high=high,
            detail={
                "by_events": {str(count + 1): float(share) for count, share in enumerate(shares)},
                "before": float(before[-1]),
                "by_events_before": {str(count + 1): float(share) for count, share in enumerate(before)},
            },
        )

    def _unique(
        self, frame: pl.DataFrame, unit: str, draw: np.random.Generator, progress: Progress
    ) -> npt.NDArray[np.bool_]:
        """For each person drawn and each number of known events whether they are alone with them."""
        whose, _ = value_codes(frame[unit])
        names = [self.item, *(name for name in self.columns if name in frame.columns)]
        codes = [canonical_codes(frame[name])[0] for name in names]
        present = codes[0] >= 0
        if not present.any():
            raise NotApplicable(f"The column `{self.item}` is empty.")
        point = number_rows([one[present] + 1 for one in codes])[0] if len(codes) > 1 else codes[0][present]
        whose = whose[present]
        width, people = int(point.max()) + 1, int(whose.max()) + 1
        # keys by item: the holders of each item in ascending order
        keys = distinct_sorted(point * people + whose)
        edges = np.searchsorted(keys, np.arange(width + 1) * people)
        holders = (keys % people).astype(np.int32)
        known = np.flatnonzero(np.bincount(whose, minlength=people))
        chosen = draw.choice(known, min(self.people, len(known)), replace=False)
        begins, things = _events_of(chosen, whose, point, people, width)
        unique = np.zeros((len(chosen), self.events), dtype=np.bool_)
        with progress.task("item uniqueness", len(chosen)) as tick:
            for number in range(len(chosen)):
                own = things[begins[number] : begins[number + 1]]
                left = None
                for step, thing in enumerate(draw.permutation(own)[: self.events]):
                    fits = holders[edges[thing] : edges[thing + 1]]
                    left = fits if left is None else left[np.isin(left, fits, assume_unique=True)]
                    unique[number, step:] = len(left) == 1
                tick(1)
        return unique


def _events_of(chosen: Ints, whose: Ints, point: Ints, people: int, width: int) -> tuple[Ints, Ints]:
    """The distinct events of some people, one person after the other, and where each begins."""
    number = np.full(people, -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    own = number[whose]
    keys = distinct_sorted(own[own >= 0] * width + point[own >= 0])
    return np.searchsorted(keys, np.arange(len(chosen) + 1) * width), keys % width
