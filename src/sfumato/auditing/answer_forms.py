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

from sfumato.arrays import Ints
from sfumato.auditing.atoms import AnswerConstraint, Sense
from sfumato.auditing.number_domain import NumberDomain


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

    domain: NumberDomain
    mean: bool = False

    def of(self, counts: Ints) -> AnswerConstraint:
        return AnswerConstraint.total(counts, self.domain.steps)

    def value(self, counts: Ints) -> int | float:
        steps, people = int(self.domain.steps @ counts), int(counts.sum())
        return self.domain.mean(steps, people) if self.mean else self.domain.total(steps, people)

    def candidates(self, people: int) -> int:
        return people * self.domain.places[-1] + 1

    def possible(self, people: int) -> Iterator[AnswerConstraint]:
        weights = self.domain.steps[None, :]
        for total in range(self.candidates(people)):
            yield AnswerConstraint(weights=weights, totals=np.array([total]), senses=(Sense.EQUAL,))


@dataclass(frozen=True)
class ExtremeForm(AnswerForm):
    """The largest or smallest number."""

    domain: NumberDomain
    largest: bool

    def of(self, counts: Ints) -> AnswerConstraint:
        return AnswerConstraint.extreme(counts, self.domain.steps, largest=self.largest)

    def value(self, counts: Ints) -> int | float:
        held = self.domain.steps[counts > 0]
        return self.domain.total(int(held.max() if self.largest else held.min()), 1)

    def candidates(self, people: int) -> int:
        return len(self.domain)

    def possible(self, people: int) -> Iterator[AnswerConstraint]:
        for value in range(len(self.domain)):
            yield self.of(np.where(np.arange(len(self.domain)) == value, people, 0))
