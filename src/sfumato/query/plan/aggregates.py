"""Aggregates that are measured."""

from sfumato.query.plan.aggregate import Aggregate, bounds_problem, clipped, present
from sfumato.query.plan.counts import Count, DistinctCount, FittingUnits
from sfumato.query.plan.selections import (
    BinCounts,
    ValueCounts,
    bin_counts_aggregate,
    value_counts_aggregate,
)
from sfumato.query.plan.sums import (
    MOST_SUMMED,
    BernsteinSum,
    FixedPoint,
    Moments,
    Sum,
    bernstein_weights,
    fixed_point,
    moments_aggregate,
    sum_aggregate,
)

__all__ = [
    "MOST_SUMMED",
    "Aggregate",
    "BernsteinSum",
    "BinCounts",
    "Count",
    "DistinctCount",
    "FittingUnits",
    "FixedPoint",
    "Moments",
    "Sum",
    "ValueCounts",
    "bernstein_weights",
    "bin_counts_aggregate",
    "bounds_problem",
    "clipped",
    "fixed_point",
    "moments_aggregate",
    "present",
    "sum_aggregate",
    "value_counts_aggregate",
]
