"""Level-wise search for minimal column combinations that single people out, from one column to four.

A combination that contains another one above the threshold is not minimal and is skipped. An upper bound from the
counts of its pairs skips combinations that cannot be reported. The others are counted exactly if that is affordable;
otherwise they are screened on a sample of rows, and the reported ones are then counted exactly.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.profiling.partitions import CAP, Encoded, Partition, divide
from sfumato.profiling.screening import Screen
from sfumato.rng import Rng

Bools = npt.NDArray[np.bool_]
Key = tuple[int, ...]

_NEGLIGIBLE = 0.01
_SAMPLE = 1000
_NORMAL_99 = 2.5758
_PAIR_VISITS = 20
"""Factor on the effort allowed for pairs: their counts rule out thousands of larger combinations."""
_RECHECKED = 40
_MOST_COMBINATIONS = 150_000
_OTHERS = 3


class Search:
    """State of one search: counts so far and combinations to report."""

    def __init__(self, data: Encoded, *, threshold: float, show: int, exact_visits: int) -> None:
        self.data = data
        self.threshold = threshold
        self.show = show
        self.exact_visits = exact_visits
        self.minimal: list[Key] = []
        self.others: list[Key] = []
        self.more = self.size = self.examined = self.ruled_out = self.sampled = 0
        self._counted: dict[Key, Partition] = {}
        self._pairs_counted = False
        self._screen: Screen | None = None

    @property
    def margin(self) -> float:
        """Half the width of the widest 99 % interval of a screened share."""
        return _NORMAL_99 * 0.5 / self.sampled**0.5 if self.sampled else 0.0

    def share(self, combination: Key) -> float:
        """The exact share of rows that are unique under these columns."""
        self._count([combination])
        return self._counted[combination].unique / self.data.rows

    def levels(self, max_size: int) -> Iterator[int]:
        """Run the search; yields the size after each level."""
        # A constant column distinguishes no rows.
        columns = np.flatnonzero(self.data.sizes > 1)
        members = columns.reshape(-1, 1)
        for size in range(1, max_size + 1):
            if len(members) > _MOST_COMBINATIONS:  # `size` reports how far the search went
                return
            self.size = size
            bound, shares = self._bound(members), np.zeros(len(members))
            worth = bound >= self.threshold
            shares[worth] = self._shares(members[worth], last=size == max_size)
            # Below the threshold only the best few are reported; combinations that cannot be among them are skipped.
            below = np.sort(shares[worth & (shares < self.threshold)])[::-1]
            enough = max(below[_OTHERS - 1], _NEGLIGIBLE) if len(below) >= _OTHERS else _NEGLIGIBLE
            second = ~worth & (bound > enough)
            shares[second] = self._shares(members[second], last=size == max_size)
            worth |= second
            self.examined += int(worth.sum())
            self.ruled_out += int((~worth).sum())
            self._report(members[worth], shares[worth])
            reached = shares >= self.threshold
            if size < max_size:
                members = self._extend(members, reached, columns)
            yield size

    # --- counting -------------------------------------------------------------------------------------------------

    def _count(self, combinations: Iterable[Key]) -> None:
        missing = [c for c in dict.fromkeys(combinations) if c not in self._counted]
        if len(missing) == 1:
            self._counted[missing[0]] = divide(self.data, missing[0])
        elif missing:
            self._count_in_threads(missing)

    def _count_in_threads(self, missing: list[Key]) -> None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self._counted.update(zip(missing, pool.map(lambda c: divide(self.data, c), missing), strict=True))

    def _shares(self, members: Ints, *, last: bool) -> Floats:
        """Share of unique rows per combination: exact, or screened and then recounted near the threshold."""
        if len(members) == 0:
            return np.empty(0)
        size = members.shape[1]
        affordable = self.exact_visits * (_PAIR_VISITS if size == 2 else 1)
        if size == 1 or len(members) * self.data.rows <= affordable:
            keys = _keys(members)
            self._count(keys)
            self._pairs_counted |= size == 2
            return np.array([self.share(key) for key in keys])
        return self._screened(members, last=last)

    def _screened(self, members: Ints, *, last: bool) -> Floats:
        if self._screen is None:
            self._screen = Screen(self.data)
        self.sampled = min(_SAMPLE, self.data.rows)
        rows = Rng(0).child("screening").generator.choice(self.data.rows, self.sampled, replace=False)
        shares = self._screen.alone(members, np.sort(rows)) / self.sampled
        if last:
            return shares
        # Estimates near the threshold decide what is extended, so the nearest ones are counted exactly.
        nearest = np.argsort(np.abs(shares - self.threshold), kind="stable")[:_RECHECKED]
        doubtful = nearest[np.abs(shares[nearest] - self.threshold) <= self.margin]
        keys = _keys(members[doubtful])
        self._count(keys)
        shares[doubtful] = [self.share(key) for key in keys]
        return shares

    # --- leaving out ----------------------------------------------------------------------------------------------

    def _bound(self, members: Ints) -> Floats:
        """An upper bound on the share of unique rows, from the counts of single columns and pairs.

        One part splits each group of the other part into at most as many pieces as it has groups itself.
        """
        bound = np.ones(len(members))
        if members.shape[1] < 3 or len(members) == 0 or not self._pairs_counted:
            return bound
        small = [key for key in self._counted if len(key) <= 2]
        # Single columns are on the diagonal, pairs beside it.
        place = np.zeros((len(self.data.names), len(self.data.names)), dtype=np.int64)
        for number, key in enumerate(small):
            place[key[0], key[-1]] = number
        pieces = np.array([self._counted[key].at_most() for key in small], dtype=np.int32)
        groups = np.array([self._counted[key].groups for key in small])
        for part, rest in _splits(members.shape[1]):
            parts = place[members[:, part[0]], members[:, part[-1]]]
            cuts = groups[place[members[:, rest[0]], members[:, rest[-1]]]]
            most = pieces[parts, np.minimum(cuts, CAP)] / self.data.rows
            bound = np.where(cuts > CAP, bound, np.minimum(bound, most))
        return bound

    def _extend(self, members: Ints, reached: Bools, columns: Ints) -> Ints:
        """Combinations of one column more, none of which contains one that reached the threshold."""
        done, base = set(_keys(members[reached])), members[~reached]
        size = members.shape[1]
        following = [columns[columns > last] for last in base[:, -1]]
        total = sum(map(len, following))
        if total > 4 * _MOST_COMBINATIONS:
            return np.empty((total, 0), dtype=np.int64)
        larger = np.column_stack(
            (np.repeat(base, [len(f) for f in following], axis=0), np.concatenate(following or [columns[:0]]))
        )
        keep = np.ones(len(larger), dtype=bool)
        for dropped in range(size if done else 0):
            subset = _keys(np.delete(larger, dropped, axis=1))
            keep &= np.fromiter((key not in done for key in subset), dtype=bool, count=len(subset))
        return larger[keep]

    # --- showing --------------------------------------------------------------------------------------------------

    def _report(self, members: Ints, shares: Floats) -> None:
        """Choose the combinations of a level to report and count them exactly."""
        order = np.argsort(-shares, kind="stable")
        ranked = _keys(members[order])
        reaching = int((shares >= self.threshold).sum())
        room = max(0, self.show - len(self.minimal))
        first = ranked[: min(room, reaching)]
        # A screened combination is reported as minimal only if exact counts of it and its parts confirm it.
        self._count(first)
        self._count(part for key in first for part in _parts(key))
        confirmed = [key for key in first if self._is_minimal(key)]
        self.minimal += sorted(confirmed, key=lambda key: -self.share(key))
        self.more += reaching - len(first)
        below: list[Key] = []
        for key in ranked[reaching : reaching + _RECHECKED]:
            if len(below) == _OTHERS:
                break
            # The exact share of an estimate just below the threshold may be above it.
            if self.share(key) < self.threshold:
                below.append(key)
            else:
                self.more += 1
        self.others += sorted(below, key=lambda key: -self.share(key))

    def _is_minimal(self, key: Key) -> bool:
        return self.share(key) >= self.threshold and all(self.share(part) < self.threshold for part in _parts(key))


def _keys(members: Ints) -> list[Key]:
    return list(map(tuple, members.tolist()))


def _parts(key: Key) -> list[Key]:
    """The combinations of one column less."""
    return [key[:i] + key[i + 1 :] for i in range(len(key))] if len(key) > 1 else []


def _splits(size: int) -> list[tuple[list[int], list[int]]]:
    """Ways to cut a combination into two of one or two columns each."""
    if size == 3:
        halves = [([0, 1], [2]), ([0, 2], [1]), ([1, 2], [0])]
    else:
        halves = [([0, 1], [2, 3]), ([0, 2], [1, 3]), ([0, 3], [1, 2])]
    return [split for a, b in halves for split in ((a, b), (b, a))]
