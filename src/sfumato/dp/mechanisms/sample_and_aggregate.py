"""Sample and aggregate: any function of the data, made private by splitting the people into blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from sfumato.dp.loss import PrivacyLoss
from sfumato.dp.mechanism import Exact, Mechanism, Positive, on_grid
from sfumato.dp.mechanisms.quantile import Quantile
from sfumato.dp.os_random import below
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

__all__ = ["SampleAndAggregate"]


class SampleAndAggregate(Mechanism):
    """Private median of a function's values on disjoint random blocks of people.

    The input is one value per block; :meth:`split` deals the units out. One unit lies in one block and so changes one
    value to anything: a substitution, which moves a rank utility by at most 1. The function need not be analysed; it
    is useful when blocks give values close to that of the whole. A block whose function fails counts as ``low``: a
    failure tells nothing more than a value would. ``error`` bounds the distance in rank among the blocks.
    """

    examples = ({"blocks": 4, "rate": 1, "low": 0, "high": 10, "grid": "1/2"},)
    reference = "Nissim, Raskhodnikova, Smith (2007), doi:10.1145/1250790.1250803"
    proof = "Nissim, Raskhodnikova, Smith 2007, section 4; median by McSherry, Talwar 2007, Theorem 6"
    specimen: ClassVar[Any] = [1.0, 4.5, 4.0, 5.0]

    blocks: Annotated[int, Field(ge=2)]
    """Number of blocks."""
    rate: Positive
    """How strongly a block of distance in rank is avoided; loss is 2·rate for a unit in one block."""
    low: Exact
    """Smallest value the function can be given as; public."""
    high: Exact
    """Largest value the function can be given as; public."""
    grid: Positive
    """Distance of two candidate answers; low and high are whole multiples of it."""

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        low, high = self.low / self.grid, self.high / self.grid
        if self.low > self.high or low.denominator != 1 or high.denominator != 1:
            raise ValueError("low and high must be whole multiples of the grid")
        return self

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, blocks: int, low: Number, high: Number, grid: Number) -> Self:
        """The sharpest choice that costs ``epsilon`` for a unit that lies in one block."""
        return cls(
            blocks=blocks, rate=rational(epsilon) / 2, low=rational(low), high=rational(high), grid=rational(grid)
        )

    def _median(self) -> Quantile:
        return Quantile(rank=Fraction(1, 2), rate=self.rate, low=self.low, high=self.high, grid=self.grid)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        # Replacing a block's value removes one row and adds one: twice the half-row that Quantile charges for either.
        return self._median().loss(2 * rational(sensitivity))

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        return self._median().error(confidence=confidence, outputs=outputs)

    def split(self, units: Sequence[Any]) -> list[list[Any]]:
        """Deal the units out to the blocks at random, each unit independently of all others."""
        places = below(self.blocks, len(units))
        return [[units[int(i)] for i in np.flatnonzero(places == block)] for block in range(self.blocks)]

    def evaluate(self, function: Callable[[list[Any]], float], units: Sequence[Any]) -> SecretValue[list[float]]:
        """The function's value on each block; a failure or a value that is no number counts as ``low``."""
        values: list[float] = []
        for block in self.split(units):
            try:
                values.append(float(function(block)))
            except Exception:
                values.append(float(self.low))
        return SecretValue(values)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Fraction:
        """The private median of the block values."""
        opened = self._open(value, receipt, self.loss(sensitivity))
        if len(opened) != self.blocks:
            raise BadParameter(f"one value per block is needed ({self.blocks}).")
        steps = on_grid(opened, grid=self.grid, low=self.low, high=self.high) - int(self.low / self.grid)
        median = self._median()
        return median.draw(np.bincount(steps, minlength=median.cells))
