"""Scores of sparse linkage: who shares a few events, weighted by rarity.

Events are indexed by item: for each item the people, ratings and days. To score one target, only the lists of the known
items are read. Memory is seven bytes per event.

Reference: Narayanan, A., Shmatikov, V. (2008). Robust de-anonymization of large sparse datasets. IEEE Symposium on
Security and Privacy. doi:10.1109/SP.2008.33
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sfumato.kernels import kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Events:
    """Events indexed by item: person, rating (in steps) and day."""

    starts: Ints
    person: npt.NDArray[np.int32]
    rating: npt.NDArray[np.uint8]
    day: npt.NDArray[np.int16]
    people: int

    @classmethod
    def of(
        cls,
        *,
        person: npt.NDArray[np.int32],
        item: npt.NDArray[np.int32],
        rating: npt.NDArray[np.uint8],
        day: npt.NDArray[np.int16],
        people: int,
        items: int,
    ) -> Events:
        """Index events by item (counting sort)."""
        starts = np.zeros(items + 1, dtype=np.int64)
        _count(item, starts)
        np.cumsum(starts, out=starts)
        sorted_person = np.empty_like(person)
        sorted_rating, sorted_day = np.empty_like(rating), np.empty_like(day)
        _scatter(item, person, rating, day, starts.copy(), sorted_person, sorted_rating, sorted_day)
        return cls(starts=starts, person=sorted_person, rating=sorted_rating, day=sorted_day, people=people)

    @cached_property
    def days(self) -> int:
        """Number of days on the scale."""
        return int(self.day.max(initial=0)) + 1

    @property
    def support(self) -> Ints:
        """Number of events per item."""
        return np.diff(self.starts)


@dataclass(frozen=True, kw_only=True)
class SparseMatches:
    """The best candidate for one target."""

    person: int
    """-1 if nobody shares any of the known items."""
    score: float
    eccentricity: float
    """The difference to the second best score, in standard deviations of all scores."""


class Scratch:
    """Buffer for the scores of one search, reused between searches."""

    def __init__(self, people: int) -> None:
        self.score = np.zeros(people, dtype=np.float64)


def find(
    events: Events,
    item: npt.NDArray[np.int32],
    rating: npt.NDArray[np.float64],
    day: npt.NDArray[np.float64],
    *,
    rating_scale: float,
    day_scale: float,
    scratch: Scratch | None = None,
) -> SparseMatches:
    """Score everybody who shares at least one of the known items; NaN ratings and days are unknown.

    Each item has the weight 1 / log(number of its events), times the closeness of rating and day.
    """
    room = scratch if scratch is not None else Scratch(events.people)
    best, score, second, spread = _search(
        events.starts,
        events.person,
        events.rating,
        events.day,
        item,
        rating,
        day,
        rating_scale,
        day_scale,
        events.days,
        room.score,
    )
    gap = (score - second) / spread if spread > 0 else (np.inf if score > second else 0.0)
    return SparseMatches(person=int(best), score=float(score), eccentricity=float(gap))


@kernel()
def _count(item: npt.NDArray[np.int32], starts: Ints) -> None:  # pragma: no cover - compiled
    for value in item:
        starts[value + 1] += 1


@kernel()
def _scatter(
    item: npt.NDArray[np.int32],
    person: npt.NDArray[np.int32],
    rating: npt.NDArray[np.uint8],
    day: npt.NDArray[np.int16],
    place: Ints,
    to_person: npt.NDArray[np.int32],
    to_rating: npt.NDArray[np.uint8],
    to_day: npt.NDArray[np.int16],
) -> None:  # pragma: no cover - compiled
    for index in range(len(item)):
        where = place[item[index]]
        place[item[index]] = where + 1
        to_person[where] = person[index]
        to_rating[where] = rating[index]
        to_day[where] = day[index]


@kernel()
def _search(
    starts: Ints,
    person: npt.NDArray[np.int32],
    rating: npt.NDArray[np.uint8],
    day: npt.NDArray[np.int16],
    known_item: npt.NDArray[np.int32],
    known_rating: Floats,
    known_day: Floats,
    rating_scale: float,
    day_scale: float,
    days: int,
    score: Floats,
) -> tuple[int, float, float, float]:  # pragma: no cover - compiled
    people = len(score)
    by_rating, by_day = np.empty(256), np.empty(days)
    for place in range(len(known_item)):
        item = known_item[place]
        if item < 0:
            continue
        start, stop = starts[item], starts[item + 1]
        weight = 1.0 / np.log(max(2.0, float(stop - start) + 1.0))
        # Closeness of every possible rating and day, computed once per item instead of once per event.
        for step in range(len(by_rating)):
            by_rating[step] = 0.0
            if known_rating[place] == known_rating[place]:
                by_rating[step] = weight * np.exp(-abs(step - known_rating[place]) / rating_scale)
        for step in range(len(by_day)):
            by_day[step] = weight
            if known_day[place] == known_day[place]:
                by_day[step] += weight * np.exp(-abs(step - known_day[place]) / day_scale)
        for index in range(start, stop):
            score[person[index]] += by_rating[rating[index]] + by_day[day[index]]
    best, highest, second = -1, 0.0, 0.0
    total, squares = 0.0, 0.0
    # A second pass over the same lists finds the best score and clears the buffer.
    for place in range(len(known_item)):
        item = known_item[place]
        if item < 0:
            continue
        for index in range(starts[item], starts[item + 1]):
            value = score[person[index]]
            if value == 0.0:
                continue
            score[person[index]] = 0.0
            total += value
            squares += value * value
            if value > highest:
                second = highest
                highest = value
                best = person[index]
            elif value > second:
                second = value
    mean = total / people
    variance = max(0.0, squares / people - mean * mean)
    return best, highest, second, np.sqrt(variance)
