"""Channels of masking methods: log P(released value | original value), from the published parameters.

A masking method is a public random map from original to released values. An adversary who knows the method and its
parameters can compute how likely each released value is for a person whose values are known. A method states this map
as channels (:meth:`sfumato.masking.base.Step.channels`), in one of three forms:

| form | for | log P(released \\| original) |
|---|---|---|
| :class:`PointChannel` | additive, correlated and multiplicative noise | Gaussian density of the difference |
| :class:`TableChannel` | PRAM, rank swapping, fuzzy memberships, random rounding | entry of a table |
| :class:`EqualChannel` | every deterministic method, offsets per person | 0 if equal, else impossible |

Methods whose released values are true (``truthful``) need none: a released label represents the values it contains.
The channels of a method are tested against its own draws (:func:`sfumato.testing.steps.check_channels`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import polars.selectors as cs

from sfumato.arrays import Floats, Ints
from sfumato.data.row_codes import number_rows, value_codes

IMPOSSIBLE = -60.0
"""Log-probability that stands for zero: more than all other evidence, but finite, because known values may be wrong."""


@dataclass(frozen=True, kw_only=True)
class PublicKnowledge:
    """What an adversary knows who computes a channel."""

    targets: pl.DataFrame
    """Known values of the people who are looked for, one row each."""
    people: pl.DataFrame
    """Known values of all people, in the same columns; the targets are among them."""
    target_rows: Ints
    """The row of each target in ``people``."""
    released: pl.DataFrame
    complete: bool
    """Whether the people are those of the release, all of them and nobody else."""
    persons: tuple[Ints, Ints] | None = None
    """The person of each target and of each released row, where a released column groups the rows of a person. The
    numbers of the two files are not comparable."""


@dataclass(frozen=True, kw_only=True)
class StepChannel:
    """The likelihood of released values in some columns, for every pair of a target and a released row."""

    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PointChannel(StepChannel):
    """Gaussian perturbation: the difference of the points of a target and of its row is standard normal.

    A missing coordinate is NaN. ``spread`` is the standard deviation of each target's difference where it differs
    between people; one if it is None.
    """

    known: Floats
    released: Floats
    spread: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class TableChannel(StepChannel):
    """A table: ``log[known[i], released[j]]`` is the log-probability of row j's value for target i."""

    known: Ints
    released: Ints
    log: Floats
    weight: Floats
    """The share of people in each row of the table, for the probability of a released value for anybody."""


@dataclass(frozen=True, kw_only=True)
class EqualChannel(StepChannel):
    """A deterministic map: the row of a target has the same code as the target."""

    known: Ints
    released: Ints


def as_numbers(series: pl.Series) -> Floats:
    """Numbers, and dates as days, NaN where missing."""
    if isinstance(series.dtype, pl.Datetime):
        return (series.dt.epoch("s").cast(pl.Float64) / 86_400).fill_null(np.nan).to_numpy()
    if series.dtype == pl.Date:
        series = series.cast(pl.Int32)
    return series.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def rounded(values: Floats) -> Floats:
    """Numbers to ten significant digits: sums in another order differ in the last ones."""
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = np.where(values == 0, 1.0, 10.0 ** (9 - np.floor(np.log10(np.abs(values)))))
    return np.asarray(np.round(values * digits) / digits)


def image(columns: tuple[str, ...], masked: pl.DataFrame, released: pl.DataFrame) -> EqualChannel:
    """The channel of a deterministic method: ``masked`` has the values that the method gives each target."""
    both = masked.select(columns).vstack(
        released.select(pl.col(name).cast(masked.schema[name], strict=False) for name in columns)
    )
    # Sums in another order differ in the last digits.
    both = both.with_columns(cs.float().round_sig_figs(10))
    number = number_rows([value_codes(both[name])[0] for name in columns])[0].astype(np.int64)
    return EqualChannel(columns=columns, known=number[: masked.height], released=number[masked.height :])


def same_values(first: pl.DataFrame, second: pl.DataFrame) -> bool:
    """Whether two tables have the same rows in any order, numbers up to rounding; where the second has fewer rows,
    whether its values occur in the first."""
    if first.height < second.height or first.columns != second.columns:
        return False
    part = second.height < first.height
    for name in first.columns:
        left, right = first[name], second[name]
        if left.dtype.is_numeric() and right.dtype.is_numeric():
            a, b = (np.sort(side.cast(pl.Float64).fill_null(np.nan).to_numpy()) for side in (left, right))
            if part:
                a, b = np.unique(rounded(a)), np.unique(rounded(b))
                a = a[np.minimum(np.searchsorted(a, b), len(a) - 1)]
            if not np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True):
                return False
        elif left.dtype != right.dtype:
            return False
        elif part:
            if not set(right.unique().to_list()) <= set(left.unique().to_list()):
                return False
        elif not left.sort().equals(right.sort()):
            return False
    return True
