"""The second computation of the privacy loss refuses plans whose mechanisms, bounds or reservations are wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema
from sfumato.dp.loss import PrivacyLoss, approximate, pure
from sfumato.dp.mechanism import ContributionBounds, Mechanism
from sfumato.dp.mechanisms.partition_selection import PartitionSelection
from sfumato.engines.expressions import constant
from sfumato.errors import AnswerFailed, BadParameter
from sfumato.query.plan.aggregates import Aggregate, Sum
from sfumato.query.plan.catalog import Catalog, PrivateTable
from sfumato.query.plan.loss_check import check_loss
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.sql.parse import parse_query

CASES = {
    "laplace": ("SELECT SUM(x) FROM t", pure(1)),
    "gaussian": ("SELECT k, COUNT(*), SUM(x) FROM t GROUP BY k", approximate(1, "1e-40")),
    "rounded-gaussian": ("SELECT k, COUNT(*) FROM t GROUP BY k", approximate(1, "1e-6")),
    "quantile": ("SELECT MEDIAN(x) FROM t", pure(1)),
    "quantiles": ("SELECT QUANTILE_CONT(x, 0.25), QUANTILE_CONT(x, 0.5), QUANTILE_CONT(x, 0.75) FROM t", pure(1)),
    "partition-selection": ("SELECT c, MEDIAN(x) FROM t GROUP BY c", approximate(1, "1e-6")),
    "thresholded-gaussian": ("SELECT c, COUNT(*) FROM t GROUP BY c", approximate(1, "1e-6")),
    "thresholded-laplace": ("SELECT c, COUNT(*) FROM t GROUP BY c", approximate(1, "1e-6")),
}


def plan(name: str) -> NoisePlan:
    columns = {"p": Column(role=Role.PLAIN, kind=Kind.INTEGER), "k": Column(role=Role.PLAIN, kind=Kind.BOOLEAN),
               "c": Column(role=Role.PLAIN, kind=Kind.CATEGORY),
               "x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=0, high=9))}  # fmt: skip
    table = PrivateTable(name="t", schema=Schema(columns=columns, unit="p"), rows=3, groups=20)
    sql, cost = CASES[name]
    question = parse_query(sql, Catalog(dataset="d", private={"t": table}))
    limits: dict[str, Any] = {"bounding": "clip"} if name in ("gaussian", "rounded-gaussian") else {}
    if name == "thresholded-laplace":
        limits = {"groups": 1}
    return plan_query(question, cost, **limits)


def kinds(strategy: NoisePlan) -> dict[str, type[Mechanism]]:
    return {draw.mechanism.part_name(): type(draw.mechanism) for draw in strategy.measurements}


@pytest.mark.parametrize("name", CASES)
def test_a_mechanism_that_understates_its_loss_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = kinds(plan(name))[name]
    honest = cls.loss_at

    def less(self: Mechanism, distance: Any) -> PrivacyLoss:
        loss = honest(self, distance)
        return PrivacyLoss(measure=loss.measure, size=loss.size * Fraction(999, 1000), delta=loss.delta)

    monkeypatch.setattr(cls, "loss_at", less)
    with pytest.raises(AnswerFailed, match="disagree"):
        plan(name)


def test_an_understated_loss_is_refused_even_if_its_curve_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "rounded-gaussian"
    cls = kinds(plan(name))[name]
    honest = cls.loss_at

    def less(self: Mechanism, distance: Any) -> PrivacyLoss:
        loss = honest(self, distance)
        assert loss.curve is not None
        return replace(loss, size=loss.size * Fraction(999, 1000))

    monkeypatch.setattr(cls, "loss_at", less)
    with pytest.raises(AnswerFailed, match="disagree"):
        plan(name)


def test_bounds_that_fit_no_loss_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Mechanism, bounds: Any) -> PrivacyLoss:
        raise BadParameter("no loss has these bounds.")

    monkeypatch.setattr(kinds(plan("laplace"))["laplace"], "loss_from_bounds", none)
    with pytest.raises(AnswerFailed, match="disagree"):
        plan("laplace")


@pytest.mark.parametrize("name", CASES)
def test_a_second_computation_that_differs_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = kinds(plan(name))[name]
    honest = cls.loss_from_bounds

    def more(self: Mechanism, bounds: Any) -> PrivacyLoss:
        return honest(self, replace(bounds, groups=bounds.groups + 1))

    monkeypatch.setattr(cls, "loss_from_bounds", more)
    with pytest.raises(AnswerFailed, match="disagree"):
        plan(name)


@pytest.mark.parametrize("name", CASES)
def test_bounds_that_the_engine_does_not_enforce_are_refused(name: str) -> None:
    honest = plan(name)
    check_loss(honest)
    with pytest.raises(AnswerFailed, match="disagree"):
        check_loss(replace(honest, groups=honest.groups + 1))
    if name != "partition-selection":
        with pytest.raises(AnswerFailed, match="disagree"):
            check_loss(replace(honest, rows=honest.rows + 1))


@pytest.mark.parametrize("name", CASES)
def test_every_draw_is_covered_by_its_reservation(name: str) -> None:
    honest = plan(name)
    assert {draw.reservation for draw in honest.measurements} == set(range(len(honest.parts)))
    with pytest.raises(AnswerFailed):
        check_loss(replace(honest, parts=()))
    halved = tuple(replace(part, size=part.size / 2) for part in honest.parts)
    with pytest.raises(AnswerFailed, match="do not cover"):
        check_loss(replace(honest, parts=halved))
    with pytest.raises(AnswerFailed, match="cost more"):
        check_loss(replace(honest, cost=replace(honest.cost, size=honest.cost.size / 2)))


@pytest.mark.parametrize("epsilon", [1, 25, 100, 400])
def test_private_keys_are_named_at_large_epsilon(epsilon: int) -> None:
    """The second computation of the loss must not fail by rounding where nearly every key is named."""
    selection = PartitionSelection(epsilon=epsilon, delta="5e-7")
    bounds = ContributionBounds(groups=2, change=Fraction(1))
    assert selection.loss_from_bounds(bounds) == selection.loss(2)


@dataclass(frozen=True, kw_only=True)
class _Claimed(Aggregate):
    """An aggregate that claims a sensitivity, and has no rule for the second computation."""

    title = "Claim"

    def sensitivity(self, rows: int) -> int:
        return rows

    def described(self, written: object) -> str:
        return "A claim"


class _Larger(_Claimed):
    def worst(self, rows: int) -> int:
        return rows + 1


def test_an_aggregate_without_a_second_computation_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="worst"):
        _Claimed()  # type: ignore[abstract]


def test_an_aggregate_that_moves_farther_than_it_claims_is_refused() -> None:
    honest = plan("laplace")
    made_up = replace(honest, query=replace(honest.query, aggregates=(_Larger(),)))
    with pytest.raises(AnswerFailed, match="disagree"):
        check_loss(made_up)


@pytest.mark.parametrize(("low", "high"), [(-7, 3), (2, 9), (-4, -1), (0, 5)])
def test_a_sum_moves_by_its_farther_bound_in_both_computations(low: int, high: int) -> None:
    for rows in (1, 3):
        total = Sum(steps=constant(1), low=low, high=high, grid=Fraction(1))
        assert total.sensitivity(rows) == total.worst(rows) == rows * max(abs(low), abs(high))
