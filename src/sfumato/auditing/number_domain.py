"""Domain of a numeric secret: the possible numbers that its owner declared, as whole multiples of a step.

What a sum or an extreme tells depends on which numbers are possible: a sum of 0 over wages from 0 on tells every wage,
and a sum of 20 over two of 0, 10 and 25 tells both. The auditors decide on exactly the declared numbers, and no sum or
extreme of a column without declared numbers is answered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.dataset import Domain, RangeDomain, ValuesDomain
from sfumato.errors import BadParameter

_CHANCE = 1e-6
"""Values on a coarser grid than the declared one are no coincidence below this probability."""


@dataclass(frozen=True, kw_only=True)
class NumberDomain:
    """The possible numbers of a column: ``low + step * place`` for every place, in ascending order."""

    low: Fraction
    step: Fraction
    places: range | tuple[int, ...]
    """Multiples of the step, ascending, from 0."""

    def __len__(self) -> int:
        return len(self.places)

    @classmethod
    def declared(cls, domain: Domain | None, *, whole: bool) -> NumberDomain | None:
        """The numbers that a domain lists, or those in steps between its bounds.

        Whole numbers have a step of 1 unless another one is declared. None without a list and without bounds and step.
        """
        if isinstance(domain, ValuesDomain):
            listed = [exact(value) for value in domain.values if _numeric(value)]
            return cls.listed([value for value in listed if value.denominator == 1 or not whole])
        if not isinstance(domain, RangeDomain) or (domain.step is None and not whole):
            return None
        ends = exact(domain.low), exact(domain.high)
        step = Fraction(1) if domain.step is None else exact(domain.step)
        # Whole numbers between 0.5 and 9.5 start at 1; declared steps are counted from the lower bound.
        low = Fraction(math.ceil(ends[0])) if domain.step is None else ends[0]
        if whole and not low.denominator == step.denominator == 1:
            raise BadParameter("whole numbers need a whole `step`, from a whole `low` on.")
        return cls(low=low, step=step, places=range((ends[1] - low) // step + 1)) if low <= ends[1] else None

    @classmethod
    def listed(cls, numbers: Sequence[Fraction]) -> NumberDomain | None:
        """These numbers, in steps of their greatest common divisor."""
        if not numbers:
            return None
        low, above = min(numbers), sorted(set(numbers))
        step = reduce(_divisor, (number - low for number in above), Fraction(0)) or Fraction(1)
        return cls(low=low, step=step, places=tuple(int((number - low) / step) for number in above))

    @property
    def labels(self) -> list[int | float]:
        """The numbers themselves."""
        return [self.total(place, 1) for place in self.places]

    @property
    def steps(self) -> Ints:
        """The place of each number."""
        return np.array(self.places, np.int64)

    def codes(self, series: pl.Series) -> Ints | None:
        """The position of each value among the numbers; None if a value is missing or none of them."""
        if series.null_count() or not series.dtype.is_numeric():
            return None
        position = {place: code for code, place in enumerate(self.places)} if isinstance(self.places, tuple) else None
        found = {}
        for value in series.unique().to_list():
            if not math.isfinite(value):
                return None
            place = (exact(value) - self.low) / self.step
            nearest = round(place)
            # A float such as 0.1 + 0.2 is taken for the number that it was meant to be.
            if abs(place - nearest) > Fraction(1, 10**6):
                return None
            code = position.get(nearest) if position is not None else nearest if nearest in self.places else None
            if code is None:
                return None
            found[value] = code
        return np.array([found[value] for value in series.to_list()], np.int64)

    def coarser(self, codes: Ints) -> NumberDomain | None:
        """The coarser grid on which all of so many values lie that this is no coincidence, if there is one.

        Wages in thousands that are declared in steps of 1: an adversary who knows it excludes 999 of 1,000 numbers. d
        different values lie on a grid of every g-th step by chance with probability g^(1 - d).
        """
        different = np.unique(codes)
        grid = int(np.gcd.reduce(different - different[0]))
        if grid < 2 or (len(different) - 1) * math.log(grid) <= -math.log(_CHANCE):
            return None
        first = int(different[0]) % grid
        places = range((len(self) - 1 - first) // grid + 1)
        return NumberDomain(low=self.low + first * self.step, step=self.step * grid, places=places)

    def total(self, steps: int, people: int) -> int | float:
        """The sum of ``people`` numbers that are together so many steps above the lowest, exact up to one rounding."""
        value = people * self.low + int(steps) * self.step
        return int(value) if self.low.denominator == self.step.denominator == 1 else float(value)

    def mean(self, steps: int, people: int) -> float:
        """The mean of numbers, as :meth:`total` gives their sum."""
        return float(self.low + Fraction(int(steps), people) * self.step)


def exact(number: Any) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def _numeric(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _divisor(one: Fraction, other: Fraction) -> Fraction:
    return Fraction(
        math.gcd(one.numerator * other.denominator, other.numerator * one.denominator),
        one.denominator * other.denominator,
    )
