"""Summary statistics of groups, and regression coefficients: exact, or with differential privacy.

With differential privacy all figures come from noisy sums of numbers that are scaled to -1 .. 1 by public bounds: the
number of rows, the sum and the sum of squares of every group, or all second moments of a regression (AnalyzeGauss,
Dwork, Talwar, Thakurta, Zhang 2014, doi:10.1145/2591796.2591883). Noise is exact discrete Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod, sqrt

import numpy as np
import polars as pl

from sfumato.arrays import Floats, Ints
from sfumato.dataset import RangeDomain, ValuesDomain
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.receipt import Receipt
from sfumato.secret import MeasuredNumbers, SecretValue

_STEPS = 1 << 12
"""Grid steps from 0 to 1 of a scaled number."""


@dataclass(frozen=True, kw_only=True)
class SummaryFigure:
    """One published figure."""

    group: str
    """The values that the rows have in common; empty for all rows."""
    name: str
    """``count``, ``total``, ``mean``, ``variance``, ``intercept`` or the column of a coefficient."""
    value: float | None
    """None if it is suppressed, or lost in the noise."""
    deviation: float | None = None
    """Standard deviation of the noise, where it does not depend on the data."""


def _steps(domain: RangeDomain, values: Floats) -> Ints:
    """Values as whole grid steps of -1 .. 1; values beyond the bounds are moved to the nearer one."""
    scaled: Ints = np.rint(np.clip((values - domain.middle) / domain.half, -1, 1) * _STEPS).astype(np.int64)
    return scaled


def group_name(by: Sequence[str], values: Sequence[object]) -> str:
    """The values that the rows of a group have in common, in words."""
    return ", ".join(f"{name} = {value}" for name, value in zip(by, values, strict=True))


def exact_groups(frame: pl.DataFrame, of: str, by: Sequence[str], hidden: frozenset[str]) -> list[SummaryFigure]:
    """Count, total, mean and variance of every group; those of hidden groups are None."""
    y = pl.col(of).cast(pl.Float64)
    every = [pl.len().alias("count"), y.sum().alias("total"), y.mean().alias("mean"), y.var(ddof=0).alias("variance")]
    table = frame.group_by(*by).agg(every).sort(*by) if by else frame.select(every)
    found = []
    for row in table.iter_rows(named=True):
        group = group_name(by, [row[name] for name in by])
        for name in ("count", "total", "mean", "variance"):
            found.append(SummaryFigure(group=group, name=name, value=None if group in hidden else float(row[name])))
    return found


def exact_regression(frame: pl.DataFrame, of: str, on: Sequence[str]) -> list[SummaryFigure]:
    """Least squares coefficients with an intercept."""
    design = np.column_stack([frame[name].cast(pl.Float64).to_numpy() for name in on] + [np.ones(frame.height)])
    weights = np.linalg.lstsq(design, frame[of].cast(pl.Float64).to_numpy(), rcond=None)[0]
    return [SummaryFigure(group="", name=n, value=float(w)) for n, w in zip((*on, "intercept"), weights, strict=True)]


def private_groups(
    frame: pl.DataFrame,
    of: str,
    by: Mapping[str, ValuesDomain],
    bounds: RangeDomain,
    *,
    rho: Fraction,
    receipt: Receipt,
) -> list[SummaryFigure]:
    """Noisy count, total, mean and variance of every declared group. Rows with other or missing values are left out."""
    frame = frame.drop_nulls(of)
    code = np.zeros(frame.height, dtype=np.int64)
    for name, domain in by.items():
        own = domain.codes(frame[name])
        code = np.where((own < 0) | (code < 0), -1, code * domain.size + own)
    steps, inside = _steps(bounds, frame[of].cast(pl.Float64).to_numpy()), code >= 0
    sums = np.zeros((prod(domain.size for domain in by.values()), 3), dtype=np.int64)
    np.add.at(sums, code[inside], np.column_stack([np.full(len(steps), _STEPS**2), steps * _STEPS, steps**2])[inside])
    # One row changes the three sums of one group by at most the square of the steps each.
    noisy, spread = _measured(sums, norm=3, rho=rho, receipt=receipt)
    found = []
    for values, (count, first, second) in zip(product(*(domain.values for domain in by.values())), noisy, strict=True):
        group = group_name(list(by), values)
        found.append(SummaryFigure(group=group, name="count", value=float(count), deviation=spread))
        total = bounds.middle * count + bounds.half * first
        deviation = spread * sqrt(bounds.middle**2 + bounds.half**2)
        found.append(SummaryFigure(group=group, name="total", value=float(total), deviation=deviation))
        mean = variance = None
        if count > 2 * spread:
            center = float(np.clip(first / count, -1, 1))
            mean = bounds.middle + bounds.half * center
            variance = bounds.half**2 * float(np.clip(second / count - center**2, 0, 1))
        found += [
            SummaryFigure(group=group, name="mean", value=mean),
            SummaryFigure(group=group, name="variance", value=variance),
        ]
    return found


def private_regression(
    frame: pl.DataFrame,
    of: str,
    on: Mapping[str, RangeDomain],
    bounds: RangeDomain,
    *,
    rho: Fraction,
    receipt: Receipt,
) -> list[SummaryFigure]:
    """Ridge regression on noisy second moments; the penalty is as large as the noise of their matrix.

    Rows with a missing value are left out.
    """
    frame = frame.drop_nulls([of, *on])
    columns = [_steps(scale, frame[name].cast(pl.Float64).to_numpy()) for name, scale in on.items()]
    target = _steps(bounds, frame[of].cast(pl.Float64).to_numpy())
    design = np.column_stack([*columns, np.full(frame.height, _STEPS), target])
    upper = np.triu_indices(design.shape[1])
    noisy, spread = _measured((design.T @ design)[upper], norm=len(upper[0]), rho=rho, receipt=receipt)
    moments = np.zeros((design.shape[1],) * 2)
    moments[upper] = noisy
    moments = moments + np.triu(moments, 1).T
    values, directions = np.linalg.eigh(moments[:-1, :-1])
    damped = np.maximum(values, 0) + spread * sqrt(len(values))
    weights = directions @ ((directions.T @ moments[:-1, -1]) / damped)
    slopes = [bounds.half * w / scale.half for w, scale in zip(weights, on.values(), strict=False)]
    start = bounds.middle + bounds.half * weights[-1]
    start -= sum(slope * scale.middle for slope, scale in zip(slopes, on.values(), strict=True))
    return [
        SummaryFigure(group="", name=name, value=float(v))
        for name, v in zip((*on, "intercept"), (*slopes, start), strict=True)
    ]


def _measured(sums: Ints, *, norm: int, rho: Fraction, receipt: Receipt) -> tuple[Floats, float]:
    """Noisy sums in rows, and the standard deviation of their noise. ``norm`` is the squared norm of one row's part."""
    distance = norm * _STEPS**4
    mechanism = Gaussian(variance=Fraction(distance) / (2 * rho))
    measured = MeasuredNumbers(kind="vectors", numbers={"norm": distance})
    noisy = mechanism.release_at(SecretValue(sums.ravel(), measured=measured), receipt=receipt, distance=distance)
    return np.asarray(noisy, dtype=np.float64).reshape(sums.shape) / _STEPS**2, sqrt(norm / (2 * float(rho)))
