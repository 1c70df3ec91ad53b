"""ROLLUP, CUBE and GROUPING SETS as one measurement: all sets of keys from one table of cells, at one cost.

The cells are the combinations of all keys of all sets, with one further value a key for missing and undeclared values.
Contributions are bounded once, in the cells. What is measured are marginals of the cells, each with a share of the
cost; every set is estimated from all of them by least squares, so that totals are the sums of their groups.

**Sensitivity.** One unit changes at most ``groups`` cells, each by at most its reach. Summing cells moves a unit's
contribution but does not enlarge it: in every marginal its L1 distance is at most groups · reach, and so is its L2
distance, which is largest where all its cells fall into one group. The marginals are measured one after the other, and
their losses add up (sequential composition). Estimating sets from noisy marginals is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

from sfumato.dataset import Kind
from sfumato.dp.analytic_gaussian import SMALLEST_DELTA, squared_for
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, sequential
from sfumato.dp.mechanism import ContributionBounds, Mechanism
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.zcdp import rho_for
from sfumato.engines.expressions import Arithmetic, Case, Compare, Expression, all_of, constant, equal
from sfumato.errors import AnswerFailed
from sfumato.query.plan.aggregates import Added, Moments
from sfumato.query.plan.joint_measurement import combine_aggregates
from sfumato.query.plan.loss_check import enforced_change
from sfumato.query.plan.marginals import KeySet, MarginalEstimator
from sfumato.query.plan.noise import Measurement, NoisePlan, grid_of
from sfumato.query.plan.outputs import LinearCombination
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.pooled_noise import pooled_error
from sfumato.query.plan.query import GroupKey, Query
from sfumato.query.plan.scalar import Scalar
from sfumato.rationals import Number

_MOST_CELLS = 100_000
_MOST_TESTS = 20_000
"""Nodes of the expression that finds the place of a key among its values."""
_SPREADS = tuple(Fraction(i, 4) for i in range(5))
"""Shares of the cost that are divided among all sets; the rest measures the cells themselves."""


@dataclass(frozen=True, kw_only=True)
class MarginalDraw:
    """One use of a mechanism: an aggregate (or its shares) over all groups of one set of keys."""

    keys: KeySet
    measurement: Measurement


@dataclass(frozen=True, kw_only=True)
class GroupingSetPlan(NoisePlan):
    """The plan of one reported set, whose numbers are weighted sums of noisy marginals."""

    draws: tuple[MarginalDraw, ...]
    """All draws, of this set and of the others."""
    terms: tuple[tuple[KeySet, float, int], ...]
    """(measured marginal, weight, how many numbers of it) in each number of this set."""

    @property
    def whole_counts(self) -> bool:
        """Estimates of counts are not rounded: totals would no longer be sums of their groups."""
        return False

    def error(self, value: int | LinearCombination, confidence: Number) -> float:
        of = {(d.keys, i): d.measurement.mechanism for d in self.draws for i in d.measurement.covers}
        numbers = value.terms if isinstance(value, LinearCombination) else ((value, Fraction(1)),)
        if any(index == self.query.fitting for index, _ in numbers):
            return super().error(value, confidence)
        terms = [
            (float(factor) * weight, count, of[keys, index])
            for index, factor in numbers
            for keys, weight, count in self.terms
        ]
        return pooled_error(terms, confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class CubePlan:
    """The measurement of all sets of a query."""

    cells: NoisePlan
    """The cells: rows, keys, contribution bounding, and the measurement of whom the limits cut."""
    sets: tuple[GroupingSetPlan, ...]
    places: tuple[KeySet, ...]
    """The keys of each set, as places among the keys of the cells in the order of the set's GROUP BY."""
    draws: tuple[MarginalDraw, ...]
    marginals: MarginalEstimator
    parts: tuple[PrivacyLoss, ...]
    """What is reserved: for the draws, then for the measurement of whom the limits cut."""
    cost: PrivacyLoss


def plan_sets(
    parts: Sequence[Query], cost: PrivacyLoss, *, bounding: str | None = None, **limits: Any
) -> CubePlan | None:
    """The plan of grouping sets, one query a set; None where they cannot be measured together."""
    if bounding == "clip" or not _fits(parts):
        return None
    keys = list({key.scalar.node: key for part in parts for key in part.keys}.values())
    coded = [_coded(key) for key in keys]
    sizes = tuple(len(key.values or ()) + 1 for key in keys)
    if prod(sizes) > _MOST_CELLS or any(key.scalar.node.nodes > _MOST_TESTS for key in coded):
        return None
    query = replace(parts[0], keys=tuple(coded), outputs=(), steps=(), possible=None)
    cells = plan_query(query, cost, bounding="sample", select=False, **limits)
    nodes = [key.scalar.node for key in keys]
    places = tuple(tuple(nodes.index(key.scalar.node) for key in part.keys) for part in parts)
    reported = [tuple(sorted(place)) for place in places]
    fitting = [m for m in cells.measurements if cells.is_fitting(m)]
    noise = replace(cost, size=cost.size - sum((_size(m.loss, cost.measure) for m in fitting), Fraction(0)))
    draws, marginals, reserved = _best(cells, sizes, reported, noise)
    losses = (reserved, *(m.loss.to(cost.measure) for m in fitting))
    total = sequential(losses)
    own = tuple(replace(draw.measurement, reservation=0) for draw in draws if draw.keys == draws[0].keys)
    shown = tuple(
        GroupingSetPlan(
            query=_rewritten(part, cells), bounding=cells.bounding, rows=cells.rows, groups=cells.groups,
            measurements=(*own, *fitting), parts=losses, cost=total, draws=draws,
            terms=tuple(marginals.terms(place)),
        )
        for part, place in zip(parts, reported, strict=True)
    )  # fmt: skip
    plan = CubePlan(
        cells=cells, sets=shown, places=places, draws=draws, marginals=marginals, parts=losses,
        cost=replace(cost, delta=cost.delta if total.delta else Fraction(0), curve=total.composable()),
    )  # fmt: skip
    _check(plan)
    return plan


def _size(loss: PrivacyLoss, measure: PrivacyMeasure) -> Fraction:
    return loss.to(measure).size


def _aggregate(plan: NoisePlan, measurement: Measurement) -> Any:
    return None if measurement.aggregate is None else plan.query.aggregates[measurement.aggregate]


def _fits(parts: Sequence[Query]) -> bool:
    """Whether all sets have the same rows, public keys and the same aggregates, each of which adds up over cells."""
    first = parts[0]
    return (
        all(part.public_keys and part.rows == first.rows and part.aggregates == first.aggregates for part in parts)
        and any(part.keys for part in parts)
        and all(isinstance(m, Added | Moments) and not m.once for m in first.aggregates)
    )


def _coded(key: GroupKey) -> GroupKey:
    """The place of a row's key among its values. A missing or undeclared value has the place behind all of them."""
    values, x = key.values or (), key.scalar.node
    if key.scalar.kind is Kind.INTEGER and key.scalar.values is None and len(values) > 1:
        inside = all_of(Compare(">=", x, constant(values[0])), Compare("<=", x, constant(values[-1])))
        tests: tuple[tuple[Expression, Expression], ...] = ((inside, Arithmetic("-", x, constant(values[0]))),)
    else:
        tests = tuple((equal(x, constant(value)), constant(place)) for place, value in enumerate(values))
    code = Case(tests, constant(len(values)))
    return GroupKey(scalar=Scalar(node=code, kind=Kind.INTEGER), values=tuple(range(len(values) + 1)))


def _rewritten(part: Query, cells: NoisePlan) -> Query:
    """The query of a set over the aggregates of the cells."""
    same = replace(part, aggregates=tuple(aggregate.for_rows(cells.rows) for aggregate in part.aggregates))
    return replace(combine_aggregates(same), aggregates=cells.query.aggregates)


def _best(
    cells: NoisePlan, sizes: tuple[int, ...], sets: Sequence[KeySet], cost: PrivacyLoss
) -> tuple[tuple[MarginalDraw, ...], MarginalEstimator, PrivacyLoss]:
    """The draws with the smallest mean square error, every set weighing the same; they cost at most ``cost``."""
    finest = tuple(range(len(sizes)))
    wanted = list(dict.fromkeys([*sets, finest]))
    options: list[tuple[float, bool, dict[KeySet, Fraction], MarginalEstimator]] = []
    noises = [False] * (cost.measure is PrivacyMeasure.EPSILON) + [True] * (cost.delta > 0)
    for gaussian in noises or [True]:
        [first, *_] = _marginal(cells, finest, Fraction(1), cost, gaussian=gaussian)
        noise = first.mechanism.noise
        assert noise is not None
        unit = float(2 * noise.scale**2 + noise.variance)
        for spread in _SPREADS:
            shares = {keys: spread / len(wanted) + (1 - spread) * (keys == finest) for keys in wanted}
            shares = {keys: share for keys, share in shares.items() if share}
            power = 1 if gaussian else 2
            marginals = MarginalEstimator(sizes, {keys: unit / float(share) ** power for keys, share in shares.items()})
            options.append((sum(map(marginals.variance, sets)), gaussian, shares, marginals))
    _, gaussian, shares, marginals = min(options, key=lambda option: option[0])
    draws = tuple(
        MarginalDraw(keys=keys, measurement=measurement)
        for keys, share in shares.items()
        for measurement in _marginal(cells, keys, share, cost, gaussian=gaussian)
    )
    total = sequential(draw.measurement.loss for draw in draws)
    if gaussian and cost.measure is PrivacyMeasure.EPSILON:
        total = replace(cost, curve=total.composable())
    return draws, marginals, total


def _marginal(
    cells: NoisePlan, keys: KeySet, share: Fraction, cost: PrivacyLoss, *, gaussian: bool
) -> list[Measurement]:
    """The measurements of all aggregates over one marginal, at a share of the cost."""
    additive = sorted(
        (m for m in cells.measurements if isinstance(_aggregate(cells, m), Added)), key=lambda m: m.aggregate or 0
    )
    each = cost.size * share / len(additive)
    noise: Callable[..., Mechanism] = partial(Laplace.for_epsilon, each)
    if gaussian:
        rho = each
        exact = True
        if cost.measure is PrivacyMeasure.EPSILON:
            exact = cost.delta >= SMALLEST_DELTA and _wide(cells, cost)
            whole = squared_for(cost.size, cost.delta) / 2 if exact else rho_for(cost.size, cost.delta)
            rho = whole * share / len(additive)
        noise = partial(RoundedGaussian.smallest if exact else Gaussian.for_rho, rho=rho)
    made = []
    for measurement in additive:
        aggregate = _aggregate(cells, measurement)
        grid = grid_of(aggregate, "sample")
        reach = cells.groups * aggregate.sensitivity(cells.rows) * grid
        distance = reach**2 if gaussian else reach
        mechanism = noise(squared=distance, grid=grid) if gaussian else noise(sensitivity=distance, grid=grid)
        made.append(
            replace(measurement, mechanism=mechanism, sensitivity=distance, loss=mechanism.loss_at(distance),
                    reservation=0)
        )  # fmt: skip
    return made


def _wide(cells: NoisePlan, cost: PrivacyLoss) -> bool:
    """Whether normal noise at this cost is above one grid step, below which its exact trade-off does not apply."""
    return all(
        (cells.groups * aggregate.sensitivity(cells.rows)) ** 2 >= squared_for(cost.size, cost.delta)
        for aggregate in cells.query.aggregates
        if isinstance(aggregate, Added)
    )


def _check(plan: CubePlan) -> None:
    """Compute every loss a second time, from the contribution bounds that the engine enforces on the cells.

    All cells of a unit may be in one group of a marginal: there it moves one number by what it moves all its cells.
    """
    cells, derived = plan.cells, []
    for draw in plan.draws:
        change = cells.groups * enforced_change(cells, draw.measurement)
        bounds = ContributionBounds(groups=1, change=change, parts=draw.measurement.parts)
        loss = draw.measurement.mechanism.loss_from_bounds(bounds)
        if loss != draw.measurement.loss or loss.composable() != draw.measurement.loss.composable():
            raise AnswerFailed("The two computations of the privacy loss disagree; no data was read.")
        derived.append(loss)
    total = sequential([*derived, *plan.parts[1:]])
    if (
        not sequential(derived).composable().within(plan.parts[0].composable())
        or not sequential(derived) <= (plan.parts[0])
    ):
        raise AnswerFailed("The reserved parts do not cover the cost of the noise; no data was read.")
    if not sequential(plan.parts) <= plan.cost or not total.composable().within(plan.cost.composable()):
        raise AnswerFailed("The noise would cost more than requested; no data was read.")
