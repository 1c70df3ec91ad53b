"""Noise plan of a query: every use of a mechanism, its cost and its expected error."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sfumato.dp.loss import PrivacyLoss
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.top_keys import TopKeys
from sfumato.dp.noise_sums import combined_error
from sfumato.query.plan.aggregates import MOST_SUMMED, Aggregate
from sfumato.query.plan.outputs import LinearCombination, Ratio
from sfumato.query.plan.query import Query
from sfumato.query.plan.row_steps import step_outputs
from sfumato.rationals import Number

Bounding = Literal["row", "sample", "clip"]
"""How a unit's contributions are bounded: each row is a unit, groups and rows are sampled, or the norm is clipped."""

_FINE = 20
"""A unit's reach is kept in at least 2**19 steps before its vector is scaled down."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One use of a mechanism: on one aggregate over all groups, on the shares of one, or for partition selection."""

    aggregate: int | None
    """Which one, the first where there are several; None for the choice of keys."""
    mechanism: Mechanism
    sensitivity: Fraction
    """In the sense of the mechanism's ``loss_at``: L1 for Laplace, squared L2 for Gaussian, else rows or keys."""
    loss: PrivacyLoss
    """Privacy loss of this draw over all groups."""
    parts: int = 1
    """How many measurements it is of: the shares of one number, whose distances count together."""
    reservation: int = 0
    """Index of the part of the strategy's cost that covers this draw."""

    @property
    def covers(self) -> range:
        """Indices of the aggregates it measures."""
        return range(0) if self.aggregate is None else range(self.aggregate, self.aggregate + self.parts)

    @property
    def selects_keys(self) -> bool:
        """Whether the draw decides which private keys are reported."""
        return self.mechanism.key_threshold("0.5") is not None

    def error(self, confidence: Number) -> float:
        """Expected error bound of one number, in the answer's own unit (rows of rank for a quantile)."""
        return self.mechanism.error(confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class NoisePlan:
    """All noise of a query, with its contribution bounding and cost."""

    query: Query
    bounding: Bounding
    """"row" (each row is a unit), "sample" or "clip"."""
    rows: int
    groups: int
    measurements: tuple[Measurement, ...]
    parts: tuple[PrivacyLoss, ...]
    """What is reserved, in parts that each cover some draws: pure ones, then Gaussian ones, then the choice of keys."""
    cost: PrivacyLoss

    def of(self, aggregate: int) -> Measurement:
        return next(measurement for measurement in self.measurements if aggregate in measurement.covers)

    @property
    def fitting(self) -> Measurement | None:
        """The draw for the units that the contribution limits fit and cut."""
        return None if self.query.fitting is None else self.of(self.query.fitting)

    def is_fitting(self, measurement: Measurement) -> bool:
        return measurement.aggregate is not None and measurement.aggregate == self.query.fitting

    def error(self, value: int | LinearCombination, confidence: Number) -> float:
        """A bound on the noise of a measured number, or of a weighted sum of them."""
        if isinstance(value, LinearCombination):
            parts = [(weight, self.of(index).mechanism) for index, weight in value.terms]
            return combined_error(parts, confidence=confidence)
        return self.query.aggregates[value].error(self.of(value).mechanism, confidence)

    def rounding(self, value: int | LinearCombination) -> float:
        """The most that rounding rows to a grid changes a measured number of ``MOST_SUMMED`` rows."""
        if isinstance(value, LinearCombination):
            return float(value.rounding * MOST_SUMMED)
        return float(self.query.aggregates[value].rounding)

    def reported(self) -> tuple[int | LinearCombination, ...]:
        """The distinct measured numbers of the answer, in the order of the draws."""
        query = self.query
        outputs = [output for _, output in query.outputs] + [o for step in query.steps for o in step_outputs(step)]
        leaves = [leaf for output in outputs for leaf in output.leaves()]
        numbers = [n for leaf in leaves for n in ((leaf.total, leaf.count) if isinstance(leaf, Ratio) else (leaf,))]
        places = {index: place for place, measurement in enumerate(self.measurements) for index in measurement.covers}
        return tuple(
            sorted(
                dict.fromkeys(numbers), key=lambda n: places[n.terms[0][0] if isinstance(n, LinearCombination) else n]
            )
        )

    @property
    def threshold_selection(self) -> Measurement | None:
        """The draw whose noisy count decides which private keys are reported."""
        return next(
            (
                measurement
                for measurement in self.measurements
                if measurement.aggregate is not None and measurement.selects_keys
            ),
            None,
        )

    @property
    def partition_selection(self) -> Measurement | None:
        return next((measurement for measurement in self.measurements if measurement.aggregate is None), None)

    @property
    def top_keys(self) -> TopKeys | None:
        """The selection of the groups with the largest counts, where the plan measures no others."""
        choice = self.partition_selection
        return choice.mechanism if choice is not None and isinstance(choice.mechanism, TopKeys) else None

    @property
    def whole_counts(self) -> bool:
        """Whether the exact counts are integers; contributions scaled down to an L2 norm are not."""
        return self.bounding != "clip"

    def measures(self, aggregate: int) -> bool:
        """Whether an aggregate is measured; one that only decides the order of groups may not be."""
        return any(aggregate in measurement.covers for measurement in self.measurements)


def grid_of(aggregate: Aggregate, bounding: Bounding) -> Fraction:
    """Width of one whole step. Scaling a unit's vector down needs finer steps than counting, or it would all be cut."""
    return aggregate.step / refinement(aggregate) if bounding == "clip" else aggregate.step


def refinement(aggregate: Aggregate) -> int:
    """How many finer steps each step is split into before a vector is scaled down."""
    return 1 << max(0, _FINE - aggregate.sensitivity(1).bit_length())
