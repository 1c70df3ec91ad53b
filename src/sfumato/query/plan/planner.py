"""Planner: choose mechanisms and contribution bounding for a query at a given cost.

A plan depends on the query and the cost only; no data is read. There are two ways of contribution bounding:

* **sample**: of each unit, a few groups are kept (chosen by a keyed hash of unit and group), and within each group its
  part is clipped. Laplace noise then hides groups·reach in L1 norm; Gaussian noise hides sqrt(groups)·reach in L2.
* **clip**: all groups are kept, and each unit's whole vector over the groups is scaled down to the L2 norm
  sqrt(groups)·reach. Same Gaussian noise as sampling, and much less of the data is lost; it needs a delta.

The one with the smaller noise at 95 % is taken. Counts, sums and means of the same rows are measured together as
``shares``; what is measured by itself has an equal part of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

from sfumato.dp.analytic_gaussian import SMALLEST_DELTA, squared_for
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, approximate, sequential
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.partition_selection import PartitionSelection
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.mechanisms.thresholded_gaussian import ThresholdedGaussian
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.dp.rational_bounds import sqrt_up
from sfumato.dp.zcdp import rho_for
from sfumato.engines.expressions import TRUE
from sfumato.errors import BadParameter, QueryRefused
from sfumato.query.plan.aggregates import (
    Added,
    Aggregate,
    BernsteinSum,
    BinCounts,
    Count,
    FittingUnits,
    Moments,
    Selected,
)
from sfumato.query.plan.fitting import can_be_cut, with_fitting
from sfumato.query.plan.joint_measurement import combine_aggregates, joint_ranks
from sfumato.query.plan.loss_check import check_loss
from sfumato.query.plan.noise import Bounding, Measurement, NoisePlan, grid_of, refinement
from sfumato.query.plan.outputs import LinearCombination
from sfumato.query.plan.query import Query
from sfumato.query.plan.top_keys import top_plan
from sfumato.rationals import Number, rational

_MOST = 1_000_000
"""Rows and groups of one unit that count, at most: its sums then surely fit the engine's integers."""


def plan_query(
    query: Query,
    cost: PrivacyLoss,
    *,
    rows: int | None = None,
    groups: int | None = None,
    bounding: str | None = None,
    fit: Number = 0,
    select: bool = True,
    laplace: bool = False,
) -> NoisePlan:
    """The strategy with the smallest noise that keeps to ``cost``.

    ``rows`` and ``groups`` override the declared; ``bounding`` ("sample" or "clip") overrides the choice. The choice
    weighs the noise and, where the owner declared in how many groups a unit typically is, what either way would lose.
    ``fit`` is the share of the cost at which it is measured how many units the limits cut, where they can cut any.
    ``select`` allows a plan that selects the groups of ``ORDER BY count DESC LIMIT k`` and measures no others.
    ``laplace`` allows no other noise; private keys are then reported by the noisy count of their rows.
    """
    share = rational(fit)
    if not 0 <= share < 1:
        raise BadParameter("the share `fit` of the cost is at least 0 and below 1.")
    by_row = query.rows.by_row
    r = query.limits[0] if by_row or rows is None else rows
    g = query.limits[1] if by_row or groups is None else groups
    needs_rows = not all(m.once for m in query.aggregates)
    if not query.keys:
        g = 1
    if r is None and not needs_rows:
        r = 1
    if r is None or g is None:
        what = "rows" if r is None else "groups"
        raise QueryRefused(
            f"The limit `{what}` of one unit is not declared.",
            fix=f"Declare `{what}` in the metadata, or pass it as an option.",
        )
    for limit in (r, g):
        # A fraction would be rounded up where contributions are cut, and not where noise is sized.
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST:
            raise BadParameter(f"rows and groups are whole numbers from 1 to {_MOST:,}.")
    if query.groups is not None:
        g = min(g, query.groups)  # a unit cannot be in more groups than exist
    if cost.size <= 0:
        raise BadParameter("epsilon must be above 0.")
    query = replace(query, aggregates=tuple(aggregate.for_rows(r) for aggregate in query.aggregates))
    whole, measures_fit = cost, share > 0 and can_be_cut(query, g)
    if measures_fit:
        cost = replace(cost, size=cost.size * (1 - share))
    select_partitions = not query.public_keys
    if select_partitions and cost.delta == 0:
        raise QueryRefused(
            "The keys of GROUP BY are private, and selecting private keys requires a delta above 0.",
            fix="Declare the column's values, join a public table that lists them, or use a delta such as 1e-6.",
        )
    if select_partitions and by_row and r > 1:
        raise QueryRefused("Private keys are not supported over a UNION ALL of one table.", fix="Declare the values.")
    options = [_plan(query, cost, r, g, select_partitions, gaussian=False, by_count=laplace and select_partitions)]
    if not laplace and _additive(query) and (cost.delta > 0 or cost.measure is PrivacyMeasure.RHO):
        noisy = _plan(query, cost, r, g, select_partitions, gaussian=True)
        if noisy.bounding != "clip" or all(_squares_fit(noisy, i) for i in _additive(noisy.query)):
            options.append(noisy)
    if select_partitions and not laplace:
        noises = [] if cost.measure is PrivacyMeasure.RHO else [False]
        for gaussian in [*noises, True] if _additive(query) else noises:
            by_count = _plan(query, cost, r, g, select_partitions, gaussian=gaussian, by_count=True)
            options += _with_threshold_selection(options[0], by_count)
    selected = top_plan(query, cost, r, g) if select else None
    if selected is not None:
        options = [selected]
    if bounding is not None:
        options = [plan for plan in options if plan.bounding in (bounding, "row")]
        if not options:
            raise BadParameter(
                f"contributions cannot be bounded by `{bounding}` here.",
                fix="Use `sample`, or `clip` with a delta and public keys of more than one group.",
            )
    best = min(options, key=lambda plan: _noise(plan) / _retained_share(plan))
    if measures_fit:
        best = with_fitting(best, whole, share)
    check_loss(best)
    return best


def _with_threshold_selection(apart: NoisePlan, by_count: NoisePlan) -> list[NoisePlan]:
    """The plan with threshold selection by a noisy count, unless partition selection would report clearly smaller keys.

    Partition selection counts units, a count counts rows: a unit is assumed to have half of the rows that may count.
    """
    threshold_selection, partition_selection = by_count.threshold_selection, apart.partition_selection
    if threshold_selection is None or threshold_selection.aggregate is None or partition_selection is None:
        return []
    aggregate = by_count.query.aggregates[threshold_selection.aggregate]
    rows = (aggregate.sensitivity(by_count.rows) * grid_of(aggregate, "sample") + 1) / 2
    by_noise, by_units = (
        measurement.mechanism.key_threshold("0.5") for measurement in (threshold_selection, partition_selection)
    )
    assert by_noise is not None
    assert by_units is not None
    return [by_count] if by_noise <= rows * rational(by_units) else []


def _additive(query: Query) -> list[int]:
    """Indices of counts and sums; of the shares of a number only the first."""
    return [
        i for i, m in enumerate(query.aggregates)
        if isinstance(m, Moments) or (isinstance(m, Added) and not m.place)
    ]  # fmt: skip


def _noise(plan: NoisePlan) -> float:
    """The largest noise among the counts and sums of an answer, each in units of the most a row can add."""
    errors = [plan.error(n, "0.95") / _max_row_value(plan.query, n) for n in plan.reported()
              if isinstance(n, LinearCombination) or isinstance(plan.query.aggregates[n], Added)]  # fmt: skip
    return max(errors, default=0.0)


def _squares_fit(plan: NoisePlan, index: int) -> bool:
    """Whether sums of squares of a unit's steps fit the engine's integers."""
    aggregate = plan.query.aggregates[index]
    return plan.groups * (aggregate.sensitivity(plan.rows) * refinement(aggregate)) ** 2 < 1 << 100


def _retained_share(plan: NoisePlan) -> float:
    """Share of a typical unit's contribution that remains after contribution bounding; 1 where nothing is declared."""
    typical = plan.query.limits[2]
    if typical is None or typical <= plan.groups or plan.bounding == "row":
        return 1.0
    return plan.groups / typical if plan.bounding == "sample" else (plan.groups / typical) ** 0.5


def _max_row_value(query: Query, value: int | LinearCombination) -> float:
    if isinstance(value, LinearCombination):
        return float(value.unit)
    aggregate = query.aggregates[value]
    return float(aggregate.sensitivity(1) * aggregate.step)


def _plan(
    query: Query,
    cost: PrivacyLoss,
    rows: int,
    groups: int,
    select_partitions: bool,
    *,
    gaussian: bool,
    by_count: bool = False,
) -> NoisePlan:
    bounding: Bounding = (
        "row" if query.rows.by_row else "clip" if gaussian and not select_partitions and groups > 1 else "sample"
    )
    query = combine_aggregates(query, counted=by_count)
    additive = _additive(query)
    special = [
        i for i, m in enumerate(query.aggregates)
        if not isinstance(m, Added | Moments | FittingUnits) and (not isinstance(m, BinCounts) or joint_ranks(query, i))
    ]  # fmt: skip
    host = min((i for i in additive if _rank(query.aggregates[i]) < 3), default=None,
               key=lambda i: _rank(query.aggregates[i])) if by_count else None  # fmt: skip
    by_threshold, select_partitions = host is not None, select_partitions and host is None
    shares = len(additive) + len(special) + select_partitions
    in_rho = cost.measure is PrivacyMeasure.RHO
    each = cost.size / shares

    def epsilon(square: int) -> Fraction:
        """Epsilon of one share: in rho, the largest whose loss is epsilon² / ``square``."""
        return each if not in_rho else Fraction(int(sqrt_up(square * each) * 10**12) - 1, 10**12)

    measurements: list[Measurement] = []
    reserved: list[PrivacyLoss] = []
    pure_parts = special if gaussian else [*additive, *special]
    for i in pure_parts:
        threshold_delta = cost.delta if i == host else None
        ranks = joint_ranks(query, i) if isinstance(query.aggregates[i], BinCounts) else ()
        # A selection has a bounded range: rho = epsilon²/8 (Cesar, Rogers 2021, Lemma 3.4; see dp.curve.range_curve).
        # Each of n draws (one a group and level of a bisection; ranges of one level are disjoint) has epsilon / n,
        # which is n · (epsilon / n)² / 8 = epsilon² / 8n in all. Noise has epsilon²/2 (Bun, Steinke 2016, Prop. 1.4).
        selects = isinstance(query.aggregates[i], Selected)
        budget = epsilon(8 * groups * max(1, len(ranks).bit_length()) if selects else 2)
        measurements.append(_pure_measurement(query.aggregates[i], i, budget, rows, groups, threshold_delta, ranks))
    if pure_parts:
        reserved.append(sequential(measurement.loss.to(cost.measure) for measurement in measurements))
    key_delta = Fraction(0)
    if select_partitions or (gaussian and by_threshold):
        key_delta = cost.delta / 2 if gaussian and not in_rho else cost.delta
    if gaussian:
        noise_delta = cost.delta - key_delta
        joint = approximate(each * len(additive), noise_delta)
        noises: list[Callable[..., Gaussian]] = []
        if in_rho:
            noises.append(partial(RoundedGaussian.smallest, rho=each))
        elif len(additive) == 1:
            noises.append(partial(RoundedGaussian.or_discrete, each, noise_delta))
        else:  # the squared distances of normal noise add up, and the losses in rho of any noise
            if noise_delta >= SMALLEST_DELTA:
                rho = squared_for(joint.size, noise_delta) / 2
                noises.append(partial(RoundedGaussian.smallest, rho=rho / len(additive)))
            noises.append(partial(Gaussian.for_rho, rho_for(joint.size, noise_delta) / len(additive)))
        for noise in noises:
            draws = [_gaussian_measurement(query.aggregates[i], i, noise, rows, groups, bounding) for i in additive]
            if all(isinstance(measurement.mechanism, RoundedGaussian) for measurement in draws):
                break
        if host is not None:
            joint = replace(joint, delta=cost.delta)
            draws = [
                _with_threshold(measurement, query.aggregates[i], key_delta, rows, groups) if i == host else measurement
                for i, measurement in zip(additive, draws, strict=True)
            ]
        measurements += [replace(measurement, reservation=len(reserved)) for measurement in draws]
        total = sequential(measurement.loss for measurement in draws)
        reserved.append(total if in_rho else replace(joint, curve=total.composable()))
    if select_partitions:
        mechanism = PartitionSelection(epsilon=epsilon(2 * groups) / groups, delta=key_delta / groups)
        measurement = Measurement(
            aggregate=None, mechanism=mechanism, sensitivity=Fraction(groups), loss=mechanism.loss_at(groups),
            reservation=len(reserved),
        )  # fmt: skip
        measurements.append(measurement)
        reserved.append(measurement.loss)
    total = sequential(reserved)
    return NoisePlan(
        query=query, bounding=bounding, rows=rows, groups=groups, measurements=tuple(measurements),
        parts=tuple(reserved),
        cost=replace(cost, delta=cost.delta if total.delta else Fraction(0), curve=total.composable()),
    )  # fmt: skip


def _rank(aggregate: Aggregate) -> int:
    """Rank of an aggregate for threshold selection: counts of all rows or units first; sums are unsuitable."""
    if isinstance(aggregate, Count):
        return 0 if aggregate.condition == TRUE else 2
    return 1 if isinstance(aggregate, BernsteinSum) else 3


def _pure_measurement(
    aggregate: Aggregate, index: int, epsilon: Fraction, rows: int, groups: int,
    threshold_delta: Fraction | None = None,
    ranks: tuple[Fraction, ...] = (),
) -> Measurement:  # fmt: skip
    reach = aggregate.sensitivity(rows)
    if isinstance(aggregate, Selected):
        mechanism = aggregate.mechanism(epsilon / groups, rows, ranks)
        # One unit may be in several groups, and each group is a draw of its own.
        loss = mechanism.loss_at(reach).times(groups)
        return Measurement(
            aggregate=index, mechanism=mechanism, sensitivity=Fraction(reach), loss=loss, parts=max(1, len(ranks))
        )
    grid = grid_of(aggregate, "sample")
    sensitivity = groups * reach * grid
    if threshold_delta is None:
        mechanism = Laplace.for_epsilon(epsilon, sensitivity=sensitivity, grid=grid)
    else:
        mechanism = ThresholdedLaplace.for_budget(
            epsilon, threshold_delta, sensitivity=sensitivity, max_contribution=reach * grid, keys=groups, grid=grid,
            parts=aggregate.parts,
        )  # fmt: skip
    return Measurement(
        aggregate=index, mechanism=mechanism, sensitivity=sensitivity, loss=mechanism.loss_at(sensitivity),
        parts=aggregate.parts,
    )  # fmt: skip


def _with_threshold(
    measurement: Measurement, aggregate: Aggregate, delta: Fraction, rows: int, groups: int
) -> Measurement:
    """The measurement of counts by private key that reports those above a limit; unchanged without normal noise."""
    if not isinstance(measurement.mechanism, RoundedGaussian):
        return measurement
    mechanism = ThresholdedGaussian.around(
        measurement.mechanism, delta=delta, max_contribution=aggregate.sensitivity(rows) * grid_of(aggregate, "sample"),
        keys=groups, parts=measurement.parts,
    )  # fmt: skip
    return replace(measurement, mechanism=mechanism, loss=mechanism.loss_at(measurement.sensitivity))


def _gaussian_measurement(
    aggregate: Aggregate, index: int, noise: Callable[..., Gaussian], rows: int, groups: int, bounding: Bounding
) -> Measurement:  # fmt: skip
    squared = groups * (aggregate.sensitivity(rows) * grid_of(aggregate, "sample")) ** 2
    mechanism = noise(squared=squared, grid=grid_of(aggregate, bounding))
    return Measurement(
        aggregate=index, mechanism=mechanism, sensitivity=squared, loss=mechanism.loss_at(squared),
        parts=aggregate.parts,
    )  # fmt: skip
