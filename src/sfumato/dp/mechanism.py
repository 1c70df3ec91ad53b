"""Base class of differential privacy mechanisms: privacy loss, error bound, noise model, and a release under a receipt.

A mechanism works on integers: counts, or fixed-point numbers in steps of a grid. Noise is drawn on the same integers
and the sum is converted to a float last, so the low-order bits of the result carry no information about the data.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field

from sfumato.arrays import Array
from sfumato.dp.loss import PrivacyLoss
from sfumato.dp.receipt import Receipt, require
from sfumato.dp.spending import Draw
from sfumato.errors import BadParameter, NoReceipt
from sfumato.params import Part
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

Exact = Annotated[Fraction, BeforeValidator(rational)]
"""A number taken as written: 0.1 is one tenth."""
Positive = Annotated[Fraction, BeforeValidator(rational), Field(gt=0)]
Chance = Annotated[Fraction, BeforeValidator(rational), Field(ge=0, le=1)]

Ints = Array


@dataclass(frozen=True, kw_only=True)
class NoiseModel:
    """Symmetric noise on a grid: a Laplace variable of ``scale`` or a normal variable of ``variance``, rounded.

    It lies within one grid step of the continuous variable with the same quantile.
    """

    scale: Fraction = Fraction(0)
    """Scale of the Laplace variable; 0 for normal noise."""
    variance: Fraction = Fraction(0)
    """Variance of the normal variable; 0 for Laplace noise."""
    grid: Fraction = Fraction(1)
    """Width of one step."""


@dataclass(frozen=True, kw_only=True)
class ContributionBounds:
    """Bounds that an engine enforces on one privacy unit's contribution to a mechanism's input."""

    groups: int
    """Number of groups the unit contributes to, at most."""
    change: Fraction
    """How far the unit moves the input of one group, at most: in the answer's own unit, summed over its parts."""
    parts: int = 1
    """Number of values per group that move together."""


class Mechanism(Part):
    """A randomized answer with a proven bound on the privacy loss of one unit."""

    protection = "computation-driven"

    proof: ClassVar[str] = ""
    """The theorem that proves the loss, with its place in the literature."""

    specimen: ClassVar[Any] = None
    """A valid input, for the contract tests and the documentation."""

    @abstractmethod
    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        """The privacy loss when one unit changes the input by at most ``sensitivity``."""

    def loss_at(self, distance: Number) -> PrivacyLoss:
        """The privacy loss for a distance as a plan states it: the sensitivity, or its square for an L2 norm.

        The square of an L2 sensitivity is rational where the sensitivity itself is not.
        """
        return self.loss(distance)

    @abstractmethod
    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        """The loss over all groups, derived from enforced contribution bounds and the output distribution.

        This is the second computation of the loss. It must not call :meth:`loss` or :meth:`loss_at`: a plan is refused
        when the two computations differ, which detects an error in either.
        """

    @abstractmethod
    def error(self, *, confidence: Number, outputs: int = 1) -> float:
        """A bound that all of ``outputs`` answers satisfy with at least that confidence; it does not use the data.

        The class docstring says what the bound is about.
        """

    @abstractmethod
    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        """Charge the receipt, open the value, and return the randomized answer."""

    def release_at(self, value: SecretValue[Any], *, receipt: Receipt, distance: Number) -> Any:
        """:meth:`release` for a distance in the sense of :meth:`loss_at`."""
        return self.release(value, receipt=receipt, sensitivity=distance)

    @property
    def noise(self) -> NoiseModel | None:
        """The noise added to each number, or None where the answer is a choice and has no symmetric error.

        Confidence intervals and the errors of weighted sums are computed from it.
        """
        return None

    @property
    def mean_square(self) -> float | None:
        """Mean of the squared noise, at most; None where :attr:`noise` is None."""
        return None

    def check_drawable(self) -> None:
        """Refuse parameters whose noise the sampler cannot draw. Called before budget is reserved."""
        return

    def key_threshold(self, confidence: Number) -> float | None:
        """The count from which a private key is reported with at least that probability.

        None for mechanisms that do not select keys.
        """
        return None

    def _open(self, value: SecretValue[Any], receipt: Receipt, distance: Number) -> Any:
        """The value, after the receipt was used for the loss at a distance in the sense of :meth:`loss_at`."""
        if not isinstance(value, SecretValue):
            raise NoReceipt("A mechanism takes secret values only.", fix="Wrap the true value: `SecretValue(value)`.")
        draw = Draw(mechanism=self, loss=self.loss_at(distance), measured=value.measured)
        return value.open(require(receipt, draw.loss, draw))


def tail(confidence: Number, outputs: int) -> Fraction:
    """The probability that one of ``outputs`` answers exceeds its bound: (1 - confidence) / outputs."""
    level = rational(confidence)
    if not 0 < level < 1:
        raise BadParameter("a confidence lies between 0 and 1, for example 0.95.")
    if outputs < 1:
        raise BadParameter("the number of outputs must be at least 1.")
    return (1 - level) / outputs


def sensitivity_of(value: Number) -> Fraction:
    """A sensitivity as a rational; negative ones are refused."""
    number = rational(value)
    if number < 0:
        raise BadParameter("a sensitivity cannot be negative.")
    return number


def as_integers(value: object) -> Ints:
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

    Apply this to each record *before* summing: integers add up to the same sum in any order. A clipped record moves a
    sum by at most max(abs(low), abs(high)) / grid steps, because both bounds must lie on the grid.
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
