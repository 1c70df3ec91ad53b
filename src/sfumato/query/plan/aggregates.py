"""Aggregates that are measured."""

from sfumato.query.plan.aggregate import (
    Added,
    Aggregate,
    Items,
    Selected,
    bounds_problem,
    clipped,
    column_of,
    present,
    whole_column,
)
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
    "Added",
    "Aggregate",
    "BernsteinSum",
    "BinCounts",
    "Count",
    "DistinctCount",
    "FittingUnits",
    "FixedPoint",
    "Items",
    "Moments",
    "Selected",
    "Sum",
    "ValueCounts",
    "bernstein_weights",
    "bin_counts_aggregate",
    "bounds_problem",
    "clipped",
    "column_of",
    "fixed_point",
    "moments_aggregate",
    "present",
    "sum_aggregate",
    "value_counts_aggregate",
    "whole_column",
]
