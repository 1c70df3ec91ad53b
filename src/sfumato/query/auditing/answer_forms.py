"""Forms of an answer about a column with known possible values: what a query tells about a set of people.

Each form makes the constraint and the published value of an answer from the number of people with each value, and
lists every answer that a set of people could have, which simulatable decisions need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from sfumato.query.auditing.atoms import AnswerConstraint, Ints, Sense

__all__ = ["AnswerForm", "CountForm", "ExtremeForm", "ListForm", "SumForm"]


class AnswerForm(ABC):
    """What a query tells about the values of a set of people."""

    @abstractmethod
    def of(self, counts: Ints) -> AnswerConstraint:
        """The constraint of the answer, for the number of people with each value."""

    @abstractmethod
    def value(self, counts: Ints) -> Any:
        """The answer as published."""

    @abstractmethod
    def candidates(self, people: int) -> int:
        """How many different answers a set of this size could have."""

    @abstractmethod
    def possible(self, people: int) -> Iterator[AnswerConstraint]:
        """All answers that a set of this size could have."""


@dataclass(frozen=True)
class ListForm(AnswerForm):
    """The values themselves, sorted, so that the order does not reveal who has which value."""

    labels: Sequence[Any]

    def of(self, counts: Ints) -> AnswerConstraint:
        return AnswerConstraint.plain(counts)

    def value(self, counts: Ints) -> list[Any]:
        return [label for label, count in zip(self.labels, counts.tolist(), strict=True) for _ in range(count)]

    def candidates(self, people: int) -> int:
        return comb(people + len(self.labels) - 1, len(self.labels) - 1)

    def possible(self, people: int) -> Iterator[AnswerConstraint]:
        parts = len(self.labels)
        for bars in combinations(range(people + parts - 1), parts - 1):
            yield AnswerConstraint.plain(np.diff(np.array([-1, *bars, people + parts - 1])) - 1)


@dataclass(frozen=True)
class CountForm(AnswerForm):
    """How many people have one of some values."""

    meets: Sequence[bool]
    """Per value, whether it is counted."""

    def of(self, counts: Ints) -> AnswerConstraint:
        return AnswerConstraint.grouped(counts, [int(met) for met in self.meets])

    def value(self, counts: Ints) -> int:
        return int(counts[np.asarray(self.meets, np.bool_)].sum())

    def candidates(self, people: int) -> int:
        return people + 1 if 0 < sum(self.meets) < len(self.meets) else 1

    def possible(self, people: int) -> Iterator[AnswerConstraint]:
        met = np.asarray(self.meets, np.bool_)
        if met.all() or not met.any():
            yield self.of(np.where(np.arange(len(met)) == 0, people, 0))
            return
        inside, outside = int(np.argmax(met)), int(np.argmin(met))
        for count in range(people + 1):
            counts = np.zeros(len(met), np.int64)
            counts[inside], counts[outside] = count, people - count
            yield self.of(counts)


@dataclass(frozen=True)
class SumForm(AnswerForm):
    """The sum of the numbers, or their mean (the number of people is known)."""

    numbers: Ints
    """The numbers in steps."""
    mean: bool = False
    per: int = 1
    """Steps per unit."""

    def of(self, counts: Ints) -> AnswerConstraint:
        return AnswerConstraint.total(counts, self.numbers)

    def value(self, counts: Ints) -> Any:
        total = int(self.numbers @ counts)
        if self.mean:
            return total / (self.per * int(counts.sum()))
        return total if self.per == 1 else total / self.per

    def candidates(self, people: int) -> int:
        return people * int(np.ptp(self.numbers)) + 1

    def possible(self, people: int) -> Iterator[AnswerConstraint]:
        weights = (self.numbers - self.numbers.min())[None, :]
        for total in range(self.candidates(people)):
            yield AnswerConstraint(weights=weights, totals=np.array([total]), senses=(Sense.EQUAL,))


@dataclass(frozen=True)
class ExtremeForm(AnswerForm):
    """The largest or smallest number."""

    numbers: Ints
    """The numbers in steps."""
    largest: bool
    per: int = 1
    """Steps per unit."""

    def of(self, counts: Ints) -> AnswerConstraint:
        return AnswerConstraint.extreme(counts, self.numbers, largest=self.largest)

    def value(self, counts: Ints) -> int | float:
        held = self.numbers[counts > 0]
        best = int(held.max() if self.largest else held.min())
        return best if self.per == 1 else best / self.per

    def candidates(self, people: int) -> int:
        return len(self.numbers)

    def possible(self, people: int) -> Iterator[AnswerConstraint]:
        for value in range(len(self.numbers)):
            yield self.of(np.where(np.arange(len(self.numbers)) == value, people, 0))
