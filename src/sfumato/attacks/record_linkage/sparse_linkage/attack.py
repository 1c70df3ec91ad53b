"""Record linkage of sparse event data (the Netflix attack)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Guesses, UnitLinking, View
from sfumato.attacks.normalize import canonical, canonical_codes
from sfumato.attacks.record_linkage.sparse_linkage.scores import Events, Scratch, find
from sfumato.data.row_codes import first_rows, value_codes
from sfumato.deadline import batches
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

Ints = npt.NDArray[np.int64]
_SMALL = (pl.Int8, pl.UInt8, pl.Int16, pl.UInt16)


class SparseLinkage(UnitLinking):
    """An attacker who knows a few events of a person, perhaps with rough ratings and dates, looks for their pseudonym.

    For tables with one row per event and a column that identifies the person (the privacy unit): ratings, purchases,
    searches, visits. Everybody who shares some of the known events is scored; rare events count more. The best match is
    named only if its score exceeds the second best by ``threshold`` standard deviations of all scores, so the attack
    abstains when it is not sure. Ratings and dates known to the attacker are off by up to ``rating_error`` and
    ``date_error``.
    """

    examples = ({"item": "film", "rating": "stars", "date": "day"}, {"item": "film", "events": 6})
    reference: ClassVar[str] = (
        "Narayanan, A., Shmatikov, V. (2008). Robust de-anonymization of large sparse datasets. IEEE Symposium on "
        "Security and Privacy. doi:10.1109/SP.2008.33"
    )

    item: str
    """Column with the item of an event: the film, the product, the place."""
    rating: str | None = None
    """Column with a numeric rating of the item, known approximately."""
    date: str | None = None
    """Column with the date of the event, known approximately."""
    events: Annotated[int, Field(ge=1, le=1000)] = 8
    """Number of events of a person that the attacker knows."""
    rating_error: Annotated[float, Field(ge=0)] = 0.0
    """Maximum error of the known ratings."""
    date_error: Annotated[int, Field(ge=0)] = 0
    """Maximum error of the known dates, in days."""
    threshold: Annotated[float, Field(ge=0)] = 1.5
    """Minimum eccentricity of the best match: the gap to the second best in standard deviations of all scores."""

    @property
    def event_columns(self) -> tuple[str, ...]:
        return tuple(name for name in (self.item, self.rating, self.date) if name is not None)

    def known_events(self, original: pl.DataFrame, owner: Ints, people: Ints, rng: Rng) -> pl.DataFrame:
        """A few random events per person, with errors in the ratings and dates."""
        draw = rng.generator
        asked = np.zeros(int(owner.max(initial=0)) + 1, dtype=np.bool_)
        asked[people] = True
        shuffle = draw.permutation(np.flatnonzero(asked[owner]))
        order = shuffle[np.argsort(owner[shuffle], kind="stable")]
        starts = np.searchsorted(owner[order], people)
        stops = np.searchsorted(owner[order], people, side="right")
        chosen = [order[start : min(stop, start + self.events)] for start, stop in zip(starts, stops, strict=True)]
        rows = np.concatenate(chosen)
        frame = original[rows].select(self.event_columns)
        if self.rating is not None:
            error = draw.uniform(-self.rating_error, self.rating_error, len(rows))
            frame = frame.with_columns(pl.col(self.rating).cast(pl.Float64) + error)
        if self.date is not None:
            days = frame[self.date]
            number = days.cast(pl.Date).cast(pl.Int32) if days.dtype.is_temporal() else days
            shift = draw.integers(-self.date_error, self.date_error + 1, len(rows))
            frame = frame.with_columns((number.cast(pl.Float64) + shift).alias(self.date))
        person = pl.Series("\x00person", np.repeat(np.arange(len(people)), [len(part) for part in chosen]))
        frame = frame.with_columns(canonical(frame[self.item]), person)
        return frame.group_by(person.name, maintain_order=True).agg(pl.all()).drop(person.name)

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        table = view.release.table
        unit, first = _codes(table.column(view.secret))
        coded, index = canonical_codes(table.column(self.item))
        names = {name: code for code, name in enumerate(index.to_list())}
        rating, low, step = _ratings(table.column(self.rating)) if self.rating else (_none(table.rows), 0.0, 1.0)
        day, origin = _days(table.column(self.date)) if self.date else (np.zeros(table.rows, np.int16), 0.0)
        item, present = coded.astype(np.int32), coded >= 0
        del coded  # a hundred million events are 0.8 GB
        if not present.all():
            unit, item, rating, day = unit[present], item[present], rating[present], day[present]
        events = Events.of(person=unit, item=item, rating=rating, day=day, people=len(first), items=len(index))
        del unit, item, rating, day
        row = np.full(view.targets.height, -1, dtype=np.int64)
        confidence = np.zeros(view.targets.height)
        scratch = Scratch(events.people)
        done = 0
        people = view.targets.iter_rows(named=True)
        for part, target in zip(batches(progress, "sparse linkage", view.targets.height), people, strict=False):
            known = np.array([names.get(value, -1) for value in target[self.item]], dtype=np.int32)
            stars = _known(target.get(self.rating) if self.rating else None, len(known), low, step)
            days = _known(target.get(self.date) if self.date else None, len(known), origin, 1.0)
            best = find(events, known, stars, days, rating_scale=1.5 / step, day_scale=30.0, scratch=scratch)
            if best.person >= 0 and best.eccentricity >= self.threshold:
                row[part] = first[best.person]
                confidence[part] = min(1.0, best.eccentricity / (best.eccentricity + 1.0))
            done = part.stop
        detail = {"people": len(first), "items": len(index), "events": self.events}
        return Guesses.of_rows(row, confidence, detail, tried=done)


def _codes(series: pl.Series) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Number of each value, and the first row of each number."""
    codes, values = value_codes(series)
    return codes.astype(np.int32), first_rows(codes, len(values)).astype(np.int64)


def _none(rows: int) -> npt.NDArray[np.uint8]:
    return np.zeros(rows, dtype=np.uint8)


def _ratings(series: pl.Series) -> tuple[npt.NDArray[np.uint8], float, float]:
    """Ratings as steps of a scale of at most 255, with its lowest value and the size of a step."""
    if not series.dtype.is_numeric():
        raise NotApplicable(f"Ratings must be numbers, and column `{series.name}` does not hold any.")
    level = series.cast(pl.Float32 if series.dtype in _SMALL else pl.Float64).fill_null(np.nan).to_numpy()
    low, high = float(np.nanmin(level)), float(np.nanmax(level))
    step = 1.0 if high - low <= 250 else (high - low) / 250
    if high - low < 20 and not np.allclose(np.nan_to_num(level % 1), 0):
        step = max(0.1, (high - low) / 250)
    return np.nan_to_num((level - low) / step).round().astype(np.uint8), low, step


def _days(series: pl.Series) -> tuple[npt.NDArray[np.int16], float]:
    """Days since the first, as small integers."""
    kind = series.dtype
    if not (kind.is_temporal() or kind.is_numeric()):
        raise NotApplicable(f"Column `{series.name}` holds no dates.")
    number = series.cast(pl.Date).cast(pl.Int32) if kind.is_temporal() else series
    level = number.cast(pl.Float64).fill_null(np.nan).to_numpy()
    origin = float(np.nanmin(level))
    return np.clip(np.nan_to_num(level - origin), 0, 32_000).astype(np.int16), origin


def _known(values: Any, count: int, low: float, step: float) -> npt.NDArray[np.float64]:
    if values is None:
        return np.full(count, np.nan)
    plain = [np.nan if value is None else float(value) for value in values]
    return (np.array(plain, dtype=np.float64) - low) / step
