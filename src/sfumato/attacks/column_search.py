"""Search for the few columns that identify most people: branch and bound over sets of at most three columns.

The success of an attacker who knows a set of columns is the expected number of people they find by looking up the
known combination. It is counted by one pass over the rows with a hash table. A set of columns cannot find more people
than it has combinations of codes, so most sets are skipped without being counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, fsum

import numpy as np
import numpy.typing as npt

from sfumato.attacks.column_codes import CodedPeople, ColumnCodes
from sfumato.data.row_codes import row_keys
from sfumato.deadline import check_deadline
from sfumato.kernels import kernel
from sfumato.progress import SILENT, Progress

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NEARLY_ALL = 0.9
"""A set that finds this share ends the search: a larger set cannot add much, and the smaller one is easier to know."""
_ROW_VISITS = 120_000_000
"""Rows visited at most, over all sets; two or three seconds."""
_LISTED = 200_000
"""Sets of three columns that are listed at most; from more columns, only the best pairs are extended."""
_EXTENDED = 50
_KEPT = 5
_MULTIPLIER = 0x9E3779B97F4A7C1
"""Odd, for multiplicative hashing."""


@dataclass(frozen=True, kw_only=True)
class ColumnSet:
    """A set of columns and the expected share of people whom an attacker who knows them finds."""

    columns: tuple[str, ...]
    share: float


@dataclass(frozen=True, kw_only=True)
class ColumnSearch:
    """The result of a search."""

    best: ColumnSet
    others: tuple[ColumnSet, ...]
    """The next best sets, none of which contains a better one."""
    of_size: tuple[ColumnSet, ...]
    """The best set of each size. Bins undercount larger sets of perturbed numbers, so these deserve a trial too."""
    searched: str
    """What was searched, in words."""


@kernel()
def _count(released: Ints, known: Ints, sizes: Ints, keys: Ints, counts: Ints) -> int:  # pragma: no cover - compiled
    """For each known key the number of released rows with the same key; returns the number of distinct keys."""
    mask = len(keys) - 1
    keys[:] = -1
    distinct = 0
    for key in released:
        place = ((key * _MULTIPLIER) >> 20) & mask
        while keys[place] != key:
            if keys[place] == -1:
                keys[place] = key
                counts[place] = 0
                distinct += 1
                break
            place = (place + 1) & mask
        counts[place] += 1
    for index in range(len(known)):
        key = known[index]
        sizes[index] = 0
        if key < 0:
            continue
        place = ((key * _MULTIPLIER) >> 20) & mask
        while keys[place] != -1:
            if keys[place] == key:
                sizes[index] = counts[place]
                break
            place = (place + 1) & mask
    return distinct


def class_sizes(people: CodedPeople, columns: Sequence[ColumnCodes]) -> Ints:
    """For each person the number of release rows with the codes that the known values point to; 0 if there is none, or
    if their own row is not among them.

    Without row correspondence it is the number of people with these codes where they are more than the rows: of n
    people with r rows each is in the release with probability r/n, and their row is then guessed with probability 1/r.
    """
    return _Counter(people).sizes(columns)[0]


class _Counter:
    """Counts the people whom sets of columns find. The hash table is allocated once."""

    def __init__(self, people: CodedPeople) -> None:
        self.people, self.visits = people, 0
        most = max(people.released_rows, len(people.rows) if people.own is None else 0, 1)
        slots = 1 << max(4, int(2 * most - 1).bit_length())
        self._keys, self._counts = np.empty(slots, dtype=np.int64), np.empty(slots, dtype=np.int64)

    def sizes(self, columns: Sequence[ColumnCodes]) -> tuple[Ints, int]:
        """Class size per person (0 where their row is not found), and the number of classes."""
        people = self.people
        released, known, own = [c.released for c in columns], [c.known for c in columns], people.own
        widths = [column.size for column in columns]
        correct = np.logical_and.reduce([people.correct(column) for column in columns])
        if own is not None:
            key, _ = row_keys(released, widths)
            points = np.where(correct, key[own], -1)
        else:
            joined = [np.concatenate([a, np.maximum(b, 0)]) for a, b in zip(released, known, strict=True)]
            both, _ = row_keys(joined, widths)
            key, points = both[: people.released_rows], np.where(correct, both[people.released_rows :], -1)
        sizes = np.empty(len(points), dtype=np.int64)
        self.visits += len(key) + len(points)
        classes = int(_count(key, points, sizes, self._keys, self._counts))
        if own is None:
            alike = np.empty_like(sizes)
            _count(points[points >= 0], points, alike, self._keys, self._counts)
            sizes = np.where(sizes > 0, np.maximum(sizes, alike), 0)
        return sizes, classes

    def count(self, columns: Sequence[ColumnCodes]) -> tuple[float, int]:
        """The expected share of people found, and the number of classes."""
        sizes, classes = self.sizes(columns)
        return fsum(1 / sizes[sizes > 0]) / max(1, len(sizes)), classes


def search_columns(people: CodedPeople, most: int, progress: Progress = SILENT) -> ColumnSearch:
    """The set of at most ``most`` columns that finds most people; fewer columns where they find as many."""
    counter = _Counter(people)
    columns = people.columns
    persons = max(1, len(people.rows))
    shares: dict[tuple[int, ...], float] = {}
    classes: dict[tuple[int, ...], int] = {}
    best: tuple[int, ...] = ()
    remarks: list[str] = []

    def consider(chosen: tuple[int, ...]) -> None:
        nonlocal best
        shares[chosen], classes[chosen] = counter.count([columns[index] for index in chosen])
        if not best or shares[chosen] > shares[best] + 1e-12:
            best = chosen

    for index in range(len(columns)):
        check_deadline(progress)
        consider((index,))
    remarks.append(f"{len(columns)} {'columns' if len(columns) > 1 else 'column'} one by one")
    # Columns with more information first: good sets are met early and the bound excludes more of the others.
    information = np.array([_information(column, people) for column in columns])
    for size in range(2, min(most, len(columns)) + 1):
        if shares[best] >= _NEARLY_ALL:
            break
        listed, whole = _sets(len(columns), size, shares)
        order: Ints = np.argsort(-information[np.array(listed)].sum(axis=1), kind="stable")
        # Half of the work is left for the larger sets.
        allowed = _ROW_VISITS if size == most else _ROW_VISITS // 2
        how = "all {}" if whole else "the most promising of {}"
        for number, place in enumerate(order):
            chosen = listed[place]
            if _bound(chosen, classes, persons) <= shares[best]:
                continue
            if counter.visits > allowed:
                how = "the most promising of {}"
                break
            if number % 20 == 0:
                check_deadline(progress)
            consider(chosen)
            if shares[best] >= _NEARLY_ALL:
                how = f"{{}}, until one found at least {_NEARLY_ALL:.0%}"
                break
        remarks.append(how.format(f"{comb(len(columns), size):,} {'pairs' if size == 2 else 'triples'}"))
    found = sorted(shares, key=lambda chosen: (-shares[chosen], len(chosen), chosen))
    others = [chosen for chosen in found if chosen != best and not set(best) <= set(chosen)]
    minimal = [chosen for chosen in others if not any(set(less) < set(chosen) for less in others[:_KEPT])]

    def as_set(chosen: tuple[int, ...]) -> ColumnSet:
        return ColumnSet(columns=tuple(columns[index].name for index in chosen), share=shares[chosen])

    sizes = sorted({len(chosen) for chosen in found})
    return ColumnSearch(
        best=as_set(best),
        others=tuple(as_set(chosen) for chosen in minimal[:_KEPT]),
        of_size=tuple(as_set(next(chosen for chosen in found if len(chosen) == size)) for size in sizes),
        searched="; ".join(remarks),
    )


def _sets(columns: int, size: int, shares: dict[tuple[int, ...], float]) -> tuple[list[tuple[int, ...]], bool]:
    """The sets of this size to consider, and whether these are all."""
    if comb(columns, size) <= _LISTED:
        return list(combinations(range(columns), size)), True
    smaller = sorted((chosen for chosen in shares if len(chosen) == size - 1), key=lambda chosen: -shares[chosen])
    extended = {
        tuple(sorted((*chosen, index)))
        for chosen in smaller[:_EXTENDED]
        for index in range(columns)
        if index not in chosen
    }
    return sorted(extended), False


def _bound(chosen: tuple[int, ...], classes: dict[tuple[int, ...], int], persons: int) -> float:
    """No set finds more people than it has classes."""
    bound = float(np.prod([float(classes[(index,)]) for index in chosen]))
    for index in chosen if len(chosen) > 2 else ():
        rest = tuple(other for other in chosen if other != index)
        if rest in classes:
            bound = min(bound, float(classes[rest]) * classes[(index,)])
    return min(1.0, bound / persons)


def _information(column: ColumnCodes, people: CodedPeople) -> float:
    """Entropy of the released codes, times the share of people whose known value points to the right code."""
    counts = np.bincount(column.released)
    shares = counts[counts > 0] / len(column.released)
    return float(-(shares * np.log(shares)).sum() * people.correct(column).mean())
