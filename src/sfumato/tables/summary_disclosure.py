"""Attribute disclosure by count, total, mean and variance of a group: small frequencies, dominance, equal values.

A group may be large and still disclose values: all have the same one, all but a few have, or a single contribution is
almost the whole total. Readers may be members of the group and subtract what they contributed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats, Ints


@dataclass(frozen=True, kw_only=True)
class GroupRules:
    """Rules for groups whose count, total, mean and variance are published."""

    threshold: int
    """The smallest number of people behind a figure."""
    dominance: tuple[int, float] | None = None
    """(n, k): the n largest contributions are at most k percent of the total."""
    p_percent: float | None = None
    """Nobody estimates the largest contribution to within p percent of it."""

    @property
    def dominated(self) -> bool:
        """Whether a rule looks at the size of single contributions."""
        return self.dominance is not None or self.p_percent is not None

    def broken(self, values: Floats, units: Ints, *, distinct: int, variance: bool = True) -> bool:
        """Whether the figures of a group disclose values of people.

        ``units`` are the people behind the rows, ``distinct`` is the number of values of the column in all data. Count
        and total determine how many rows have each of two values, and with the ``variance`` each of three: such
        frequencies are published, and the threshold holds for each.
        """
        names, people = np.unique(units, return_inverse=True)
        if len(names) < self.threshold or (values == values[0]).all():
            return True
        if distinct <= (3 if variance else 2):
            return any(len(np.unique(people[values == one])) < self.threshold for one in np.unique(values))
        sizes = np.sort(np.bincount(people, weights=np.abs(values)))[::-1]
        if self.dominance is not None:
            count, percent = self.dominance
            if sizes[:count].sum() > percent / 100 * sizes.sum():
                return True
        if self.p_percent is not None and sizes[2:].sum() < self.p_percent / 100 * sizes[0]:
            return True
        return variance and self._bounded(values, people)

    def _bounded(self, values: Floats, people: Ints) -> bool:
        """Whether mean and variance bound the largest or smallest value closely.

        Of n values with mean m and standard deviation s, none is farther from m than s times the root of n - 1
        (Samuelson 1968, How deviant can you be?, J. Amer. Statist. Assoc. 63, 1522). The bound is taken for readers and
        for every person, who subtracts the own values. Without a rule about dominance it must not be reached; with
        ``p_percent`` it must be that far away.
        """
        center = values.mean()
        y = values - center
        count = np.bincount(people)
        left = np.concatenate([[len(y)], len(y) - count])
        total = np.concatenate([[0.0], -np.bincount(people, weights=y)])
        squares = (y**2).sum() - np.concatenate([[0.0], np.bincount(people, weights=y**2)])
        mean = total / left
        reach = np.sqrt(np.maximum(squares / left - mean**2, 0) * (left - 1))
        share = (self.p_percent or 0.0) / 100
        for sign in (1.0, -1.0):
            extreme = np.full(len(count), -np.inf)
            np.maximum.at(extreme, people, sign * y)
            order = np.argsort(extreme)
            others = np.full(len(left), extreme[order[-1]])  # the largest value of somebody else
            others[1 + order[-1]] = extreme[order[-2]]
            room = sign * mean + reach - others
            needed = share * np.abs(sign * others + center) + 1e-9 * np.abs(y).max()
            if (room <= needed).any():
                return True
        return False
