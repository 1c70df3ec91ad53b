"""Numbers in steps: whole numbers, halves, tenths. An adversary may know the step, so such numbers are audited exactly.

Sums of numbers in steps of 1/d are sums of whole numbers after multiplication by d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.query.auditing.atoms import Ints

__all__ = ["StepScale", "steps_per_unit", "to_steps"]

_DENOMINATORS = (1, 2, 3, 4, 5, 8, 10, 20, 25, 50, 100)


@dataclass(frozen=True, kw_only=True)
class StepScale:
    """A short range of numbers in equal steps: each of them is a possible value."""

    first: int
    last: int
    """First and last number, in steps."""
    per: int
    """Steps per unit: 2 for halves."""

    @property
    def labels(self) -> list[int] | list[float]:
        """The numbers themselves."""
        steps = range(self.first, self.last + 1)
        return list(steps) if self.per == 1 else [step / self.per for step in steps]


def steps_per_unit(series: pl.Series) -> int | None:
    """The smallest d such that all values are multiples of 1/d; None for real numbers and for columns with gaps.

    >>> steps_per_unit(pl.Series([1.0, 2.5])), steps_per_unit(pl.Series([0.1, 0.3])), steps_per_unit(pl.Series([0.123]))
    (2, 10, None)
    """
    if not series.dtype.is_numeric() or series.null_count() or not series.is_finite().all():
        return None
    if series.dtype.is_integer():
        return 1
    values = series.to_numpy().astype(np.float64)
    if np.abs(values).max(initial=0.0) > 2**40:
        return 1 if bool((values == np.rint(values)).all()) else None
    for per in _DENOMINATORS:
        scaled = values * per
        if (np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))).all():
            return per
    return None


def to_steps(series: pl.Series, per: int) -> Ints:
    """The values in steps."""
    if series.dtype.is_integer() and per == 1:
        return np.asarray(series.to_numpy(), np.int64)
    steps: Ints = np.rint(series.to_numpy().astype(np.float64) * per).astype(np.int64)
    return steps
