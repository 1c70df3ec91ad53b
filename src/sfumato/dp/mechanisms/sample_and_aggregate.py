"""Sample and aggregate: a private median of any function over random blocks of the units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import ContributionBounds, Exact, Mechanism, Positive, on_grid
from sfumato.dp.mechanisms.quantile import Quantile
from sfumato.dp.os_random import below
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue


class SampleAndAggregate(Mechanism):
    """Evaluate a function on disjoint random blocks of units and report a private median of the values.

    The input is one value per block; :meth:`evaluate` splits the units and computes them. One unit lies in one block
    and changes one value arbitrarily, which moves a rank utility by at most 1, so the function needs no sensitivity
    analysis. The answer is useful if the values on blocks are close to the value on all units. A block on which the
    function fails counts as ``low``. ``error`` bounds the distance in rank among the blocks.

    >>> from sfumato.dp import SecretValue, pure
    >>> from sfumato.ledger import Charge, Ledger
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(100), dataset="wages")
    >>> mean = SampleAndAggregate.for_epsilon(20, blocks=50, low=0, high=100, grid=1)
    >>> charge = Charge(loss=mean.loss(), unit="row", what="mean wage")
    >>> receipt = ledger.charge(charge, dataset="wages", analyst="ana")
    >>> values = mean.evaluate(lambda block: sum(block) / len(block), [30, 40, 50] * 1000)
    >>> 35 <= mean.release(values, receipt=receipt) <= 45
    True
    """

    examples = ({"blocks": 4, "rate": 1, "low": 0, "high": 10, "grid": "1/2"},)
    reference = "Nissim, Raskhodnikova, Smith (2007), doi:10.1145/1250790.1250803"
    proof = "Nissim, Raskhodnikova, Smith 2007, section 4; median by McSherry, Talwar 2007, Theorem 6"
    specimen = [1.0, 4.5, 4.0, 5.0]

    blocks: Annotated[int, Field(ge=2)]
    """Number of blocks."""
    rate: Positive
    """Decrease of the log-probability per block of rank error; the loss is 2·rate for a unit in one block."""
    low: Exact
    """Smallest value of the function; public. Smaller values are clipped."""
    high: Exact
    """Largest value of the function; public. Larger values are clipped."""
    grid: Positive
    """Distance between two candidate answers; ``low`` and ``high`` are whole multiples of it."""

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        low, high = self.low / self.grid, self.high / self.grid
        if self.low > self.high or low.denominator != 1 or high.denominator != 1:
            raise ValueError("low and high must be whole multiples of the grid")
        return self

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, blocks: int, low: Number, high: Number, grid: Number) -> Self:
        """The largest rate whose loss is ``epsilon`` for a unit in one block."""
        return cls(
            blocks=blocks, rate=rational(epsilon) / 2, low=rational(low), high=rational(high), grid=rational(grid)
        )

    def _median(self) -> Quantile:
        return Quantile(rank=Fraction(1, 2), rate=self.rate, low=self.low, high=self.high, grid=self.grid)

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        # Replacing a block's value removes one row and adds one: twice the half row that Quantile charges for each.
        return self._median().loss(2 * rational(sensitivity))

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # A replaced value moves from one side of a candidate to the other: abs(below - above) / 2 moves by 1.
        before, after = Fraction(0 - 1, 2), Fraction(1 - 0, 2)
        return pure(bounds.groups * bounds.change * 2 * self.rate * (after - before))

    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        return self._median().error(confidence=confidence, outputs=outputs)

    def split(self, units: Sequence[Any]) -> list[list[Any]]:
        """Assign each unit to a random block, independently of all others."""
        places = below(self.blocks, len(units))
        return [[units[int(i)] for i in np.flatnonzero(places == block)] for block in range(self.blocks)]

    def evaluate(self, function: Callable[[list[Any]], float], units: Sequence[object]) -> SecretValue[list[float]]:
        """The function's value on each block; a failure or NaN counts as ``low``."""
        values: list[float] = []
        for block in self.split(units):
            try:
                values.append(float(function(block)))
            except Exception:
                values.append(float(self.low))
        return SecretValue(values)

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Fraction:
        """The private median of the block values."""
        opened = self._open(value, receipt, sensitivity)
        if len(opened) != self.blocks:
            raise BadParameter(f"the input must hold one value for each of the {self.blocks} blocks.")
        steps = on_grid(opened, grid=self.grid, low=self.low, high=self.high) - int(self.low / self.grid)
        median = self._median()
        return median.draw(np.bincount(steps, minlength=median.cells))
