"""Trails: people visit several sites, and the set of sites identifies them (Malin and Sweeney 2004, DNA trails).

Each site releases an identified list (discharge records, say) and a de-identified one (DNA samples). They share no
column, yet the sites at which a name occurs and the sites at which a sample occurs are the same: a trail that only
one name and only one sample have links the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter

Visits = npt.NDArray[np.bool_]
"""Rows are people or samples, columns are sites."""
_MOST_SITES = 63
_MOST_PAIRS = 400_000_000


@dataclass(frozen=True, kw_only=True)
class TrailMatches:
    """Pairs (row of the identified list, row of the samples) that no other assignment allows."""

    pairs: tuple[tuple[int, int], ...]

    def right(self, owners: Sequence[int]) -> int:
        """How many pairs are right; ``owners`` has the person of each sample."""
        return sum(owners[sample] == person for person, sample in self.pairs)


def _codes(visits: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    table = np.asarray(visits, dtype=np.bool_)
    if table.ndim != 2 or not 1 <= table.shape[1] <= _MOST_SITES:
        raise BadParameter(f"trails are a table of visits with 1 to {_MOST_SITES} sites.")
    weights = np.uint64(1) << np.arange(table.shape[1], dtype=np.uint64)
    codes: npt.NDArray[np.uint64] = (table * weights).sum(axis=1, dtype=np.uint64)
    return codes


def match_trails(identified: npt.ArrayLike, samples: npt.ArrayLike, *, complete: bool) -> TrailMatches:
    """Re-identification by trails (REIDIT).

    ``complete``: every visit is in both lists, so that trails must be equal. Otherwise a sample may lack visits, and
    fits every person whose trail contains its own; a sample that fits one person is linked, that person is removed, and
    the search repeats.

    >>> people = [[1, 1, 0], [1, 0, 0], [1, 0, 0], [0, 1, 1]]
    >>> match_trails(people, [[1, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 0]], complete=True).pairs
    ((0, 3), (3, 1))
    """
    people, found = _codes(identified), _codes(samples)
    if complete:
        names, first_person, persons = np.unique(people, return_index=True, return_counts=True)
        trails, first_sample, counts = np.unique(found, return_index=True, return_counts=True)
        once = dict(zip(names[persons == 1].tolist(), first_person[persons == 1].tolist(), strict=True))
        pairs = [
            (once[trail], row)
            for trail, row in zip(trails[counts == 1].tolist(), first_sample[counts == 1].tolist(), strict=True)
            if trail and trail in once
        ]
        return TrailMatches(pairs=tuple(sorted(pairs)))
    if len(people) * len(found) > _MOST_PAIRS:
        raise BadParameter(
            f"matching incomplete trails compares every person with every sample, {_MOST_PAIRS:,} pairs at most.",
            fix="Match complete trails, or a part of the lists.",
        )
    fits = (found[:, None] & ~people[None, :]) == 0
    fits[found == 0] = False
    pairs = []
    while True:
        single = np.flatnonzero(fits.sum(axis=1) == 1)
        person = fits[single].argmax(axis=1)
        # Two samples that fit the same single person contradict the assumption; neither is linked.
        _, place, count = np.unique(person, return_index=True, return_counts=True)
        new = [(int(person[i]), int(single[i])) for i in place[count == 1]]
        if not new:
            return TrailMatches(pairs=tuple(sorted(pairs)))
        pairs += new
        for one, sample in new:
            fits[:, one] = False
            fits[sample] = False


def rare_trails(visits: npt.ArrayLike, *, k: int) -> float:
    """Share of the rows with visits whose trail fewer than ``k`` rows have; with k = 2 the share of unique trails."""
    if k < 2:
        raise BadParameter("k is at least 2.")
    codes = _codes(visits)
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    present = codes != 0
    return float((counts[inverse.ravel()] < k)[present].mean()) if present.any() else 0.0


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """Which visits of the released list to leave out."""

    visits: Visits
    """The visits that remain."""
    suppressed: int
    rows_lost: int
    """Rows of which no visit remains."""


def suppress_visits(visits: npt.ArrayLike, *, k: int) -> Suppression:
    """Leave out visits so that every remaining trail is shared by at least ``k`` rows.

    Rows with the same trail can be exchanged in any assignment of samples to people. Each sample therefore fits at
    least k people, also for somebody who knows all true trails and matches by elimination.

    Greedy: the rarest trail joins the one with which it loses fewest visits. The number of suppressed visits is not
    always the smallest possible.
    """
    if k < 2:
        raise BadParameter("k is at least 2.")
    table = np.asarray(visits, dtype=np.bool_)
    codes = _codes(table)
    first, place = np.unique(codes, return_inverse=True)
    now, counts = first.copy(), np.bincount(place.ravel(), minlength=len(first))
    counts[first == 0] = 0
    never = np.iinfo(np.int64).max
    # `now` is the trail that rows of each first trail have left; entries that joined another have a count of 0.
    owner = np.arange(len(first))
    while True:
        rare = np.flatnonzero((counts > 0) & (counts < k))
        if not len(rare):
            break
        one = int(rare[np.lexsort((now[rare], -np.bitwise_count(now[rare]).astype(np.int64), counts[rare]))[0]])
        common = now & now[one]
        lost = np.bitwise_count(now[one] & ~common).astype(np.int64) * counts[one]
        lost += np.bitwise_count(now & ~common).astype(np.int64) * counts
        lost[(counts == 0) | (common == 0)] = never
        lost[one] = never
        best = int(lost.argmin())
        if lost[best] == never:
            now[one], counts[one] = 0, 0
            continue
        owner[owner == one] = best
        now[best], counts[best] = common[best], counts[best] + counts[one]
        counts[one] = 0
        if same := [int(i) for i in np.flatnonzero((now == now[best]) & (counts > 0)) if i != best]:
            owner[owner == same[0]] = best
            counts[best], counts[same[0]] = counts[best] + counts[same[0]], 0
    left = now[owner][place.ravel()]
    sites = np.arange(table.shape[1], dtype=np.uint64)
    kept: Visits = (left[:, None] >> sites & np.uint64(1)).astype(np.bool_)
    return Suppression(
        visits=kept,
        suppressed=int(table.sum() - kept.sum()),
        rows_lost=int(((codes != 0) & (left == 0)).sum()),
    )


@dataclass(frozen=True, kw_only=True)
class TrailTable:
    """Trails from a list with one line per visit."""

    rows: tuple[str, ...]
    """Who each trail belongs to: people, or samples."""
    sites: tuple[str, ...]
    visits: Visits

    @classmethod
    def of(cls, who: Sequence[str], sites: Sequence[str], *, all_sites: Sequence[str] | None = None) -> TrailTable:
        """Collect the visits of each person or sample. ``all_sites`` has the columns that two lists have in common."""
        rows, place = np.unique(np.asarray(who, dtype=np.str_), return_inverse=True)
        columns = sorted(set(sites) if all_sites is None else set(all_sites))
        if len(columns) > _MOST_SITES:
            raise BadParameter(f"trails have at most {_MOST_SITES} sites.", fix="Join sites, by region for example.")
        number = {site: index for index, site in enumerate(columns)}
        visits = np.zeros((len(rows), len(columns)), dtype=np.bool_)
        visits[place.ravel(), [number[site] for site in sites]] = True
        return cls(rows=tuple(rows.tolist()), sites=tuple(columns), visits=visits)
