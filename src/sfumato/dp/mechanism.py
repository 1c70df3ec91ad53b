"""What every mechanism has: its loss for a sensitivity, its error before it is used, its proof, and a guarded release.

A mechanism works on integers: counts, or fixed-point numbers in steps of a grid. Noise is drawn on the same integers
and the sum is turned into a float last, so no bit of the result depends on the data except through the exact sum.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field

from sfumato.dp.loss import PrivacyLoss
from sfumato.dp.receipt import Receipt, require
from sfumato.errors import BadParameter, NoReceipt
from sfumato.params import Part
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

__all__ = ["Chance", "Exact", "Mechanism", "Positive", "as_integers", "on_grid", "sensitivity_of", "tail"]

Exact = Annotated[Fraction, BeforeValidator(rational)]
"""A number taken as it was written: 0.1 is one tenth."""
Positive = Annotated[Fraction, BeforeValidator(rational), Field(gt=0)]
Chance = Annotated[Fraction, BeforeValidator(rational), Field(ge=0, le=1)]

Ints = npt.NDArray[Any]


class Mechanism(Part):
    """A randomized answer with a proved bound on what it gives away about one privacy unit."""

    proof: ClassVar[str] = ""
    """The theorem the loss rests on, by name and place."""

    specimen: ClassVar[Any] = None
    """An input that works, for the contract tests and the docs."""

    @abstractmethod
    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        """The privacy loss when one unit changes the input by at most ``sensitivity``."""

    @abstractmethod
    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """A bound that all of ``outputs`` answers keep with at least that confidence, known before anything is spent.

        Each mechanism says in its docstring what it is a bound of.
        """

    @abstractmethod
    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        """Draw on the receipt, open the value, and give the randomized answer."""

    def _open(self, value: SecretValue[Any], receipt: Receipt, loss: PrivacyLoss) -> Any:
        if not isinstance(value, SecretValue):
            raise NoReceipt("A mechanism takes sealed values only.", fix="Wrap the true value: `SecretValue(value)`.")
        return value.open(require(receipt, loss))


def tail(confidence: Number, outputs: int) -> Fraction:
    """The chance that one of ``outputs`` answers may miss its bound: (1 - confidence) / outputs."""
    level = rational(confidence)
    if not 0 < level < 1:
        raise BadParameter("a confidence lies between 0 and 1, for example 0.95.")
    if outputs < 1:
        raise BadParameter("a bound is about at least one answer.")
    return (1 - level) / outputs


def sensitivity_of(value: Number) -> Fraction:
    """A sensitivity as a rational; negative ones are refused."""
    number = rational(value)
    if number < 0:
        raise BadParameter("a sensitivity cannot be negative.")
    return number


def as_integers(value: Any) -> Ints:
    """The opened input as an array of machine integers, or of Python integers where those do not fit."""
    array = np.atleast_1d(np.asarray(value))
    if array.dtype == object:
        if not all(isinstance(item, int) and not isinstance(item, bool) for item in array.flat):
            raise BadParameter("a mechanism takes whole numbers.", fix="Put real numbers on a grid first: `on_grid`.")
        largest = max((abs(item) for item in array.flat), default=0)
        return array if largest >= 1 << 61 else array.astype(np.int64)
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise BadParameter("a mechanism takes whole numbers.", fix="Put real numbers on a grid first: `on_grid`.")
    if int(array.max()) >= 1 << 61 or int(array.min()) <= -(1 << 61):
        return array.astype(object)
    return array.astype(np.int64)


def on_grid(values: npt.ArrayLike, *, grid: Number, low: Number, high: Number) -> npt.NDArray[np.int64]:
    """Clip to the bounds and round down to whole grid steps; NaN becomes the lower bound.

    Do this to each record *before* summing: integers add up the same in any order. A clipped record then moves a sum by
    at most max(abs(low), abs(high)) / grid steps when both bounds lie on the grid, which is required.
    """
    step, bottom, top = rational(grid), rational(low), rational(high)
    if step <= 0 or bottom > top or (bottom / step).denominator != 1 or (top / step).denominator != 1:
        raise BadParameter("the bounds must be whole numbers of grid steps, low not above high.")
    if max(abs(bottom), abs(top)) / step > 1 << 52:
        raise BadParameter("the grid is too fine for the bounds: more than 2**52 steps.", fix="Use a coarser grid.")
    numbers = np.asarray(values, dtype=np.float64)
    numbers = np.where(np.isnan(numbers), float(bottom), np.clip(numbers, float(bottom), float(top)))
    steps = np.floor(numbers / float(step)).astype(np.int64)
    return np.clip(steps, int(bottom / step), int(top / step))
