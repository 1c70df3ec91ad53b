"""Tallies of reports that can be merged, and estimates with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.errors import BadParameter, NotComparable


def two_sided(confidence: float, outputs: int = 1) -> float:
    """Quantile of the normal distribution for intervals that hold together with this confidence (Bonferroni)."""
    from scipy.special import ndtri

    if not 0 < confidence < 1:
        raise BadParameter("`confidence` must lie between 0 and 1.")
    return -float(ndtri((1 - confidence) / (2 * outputs)))


@dataclass(frozen=True, kw_only=True)
class ReportSums:
    """Sums over reports. The sums of parts of the reports add up to those of all."""

    design: str
    """Protocol and parameters of the reports; sums of different designs cannot be added."""
    reports: int

    def __add__(self, other: Self) -> Self:
        if self.design != other.design:
            raise NotComparable("Tallies of different protocols or parameters cannot be added.")
        summed = [one.name for one in fields(self) if one.name != "design"]
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in summed})

    def to_dict(self) -> dict[str, object]:
        return {name: own.tolist() if isinstance(own, np.ndarray) else own for name, own in vars(self).items()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> Self:
        """The inverse of :meth:`to_dict`."""
        return cls(**{one.name: _READ[str(one.type)](stored[one.name]) for one in fields(cls)})


_READ: dict[str, Callable[..., Any]] = {
    "str": str, "int": int, "float": float, "Ints": lambda own: np.asarray(own, dtype=np.int64),
}  # fmt: skip
"""How the fields of sums are read, by type."""


@dataclass(frozen=True, kw_only=True)
class Tally(ReportSums):
    """How many reports support each value."""

    support: Ints


@dataclass(frozen=True, kw_only=True)
class NumberTally(ReportSums):
    """Sums of the unbiased estimates behind reports of numbers, and a histogram of the reports if one is needed."""

    total: float
    squares: float
    bins: Ints


@dataclass(frozen=True, kw_only=True)
class FrequencyEstimate:
    """Estimated number of respondents with each value."""

    reports: int
    counts: Floats
    """Unbiased; may be negative or exceed the number of reports."""
    low: Floats
    high: Floats
    """Interval of each value at ``confidence``, for the respondents whose reports were counted."""
    confidence: float

    @property
    def consistent(self) -> Floats:
        """Counts projected on the simplex: none is negative and they add up to the number of reports."""
        return project_to_simplex(self.counts, float(self.reports))

    @property
    def shares(self) -> Floats:
        """Consistent shares of the respondents."""
        return self.consistent / max(1, self.reports)


@dataclass(frozen=True, kw_only=True)
class MeanEstimate:
    """Estimated mean of a number over all respondents."""

    reports: int
    mean: float
    low: float
    high: float
    confidence: float


def project_to_simplex(counts: Floats, total: float) -> Floats:
    """The nearest counts (least squares) that are not negative and add up to ``total``, also known as norm-sub.

    >>> project_to_simplex(np.array([5.0, 3.0, -2.0]), 6.0)
    array([4., 2., 0.])
    """
    if len(counts) == 0:
        return counts
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    kept = int(np.flatnonzero(ordered > excess)[-1]) if total > 0 else 0
    return np.maximum(counts - excess[kept], 0.0) if total > 0 else np.zeros_like(counts)


def score_interval(
    support: Floats, reports: int, p: float, q: float, extra: Floats | float, z: float
) -> tuple[Floats, Floats]:
    """All counts x for which the support deviates by at most z standard deviations of its distribution at x.

    The support of a value is a sum of x Bernoulli(p) and reports - x Bernoulli(q) variables; ``extra`` is further
    variance of the support. Solving for x keeps the coverage where few people have a value.
    """
    gain = p - q
    centre = (support - reports * q) / gain
    slope = (p * (1 - p) - q * (1 - q)) / gain**2
    base = (reports * q * (1 - q) + np.asarray(extra)) / gain**2
    # (centre - x)^2 = z^2 (base + slope x)
    half = centre + z**2 * slope / 2
    root = np.sqrt(np.maximum(half**2 - centre**2 + z**2 * base, 0.0))
    return np.clip(half - root, 0.0, reports), np.clip(half + root, 0.0, reports)
