"""The interval of a mean against a search through all values it could have."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from sfumato.dataset import Column, Kind, RangeDomain, Role, Schema
from sfumato.dp.loss import PrivacyLoss, approximate, pure
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.noise_sums import combined_error, laplace_tail
from sfumato.query import Catalog, PrivateTable
from sfumato.query.execute.executor import NoisyTable
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.outputs import Ratio
from sfumato.query.plan.planner import plan_query
from sfumato.query.results.intervals import OutputEvaluator
from sfumato.query.results.postprocess import NoisyValue
from sfumato.query.sql.parse import parse_query

LOW, HIGH = -20, 80
POINTS = 400


def plan(cost: PrivacyLoss) -> tuple[NoisePlan, Ratio]:
    columns = {"x": Column(role=Role.PLAIN, kind=Kind.NUMBER, domain=RangeDomain(low=LOW, high=HIGH))}
    table = PrivateTable(name="t", schema=Schema(columns=columns))
    strategy = plan_query(parse_query("SELECT AVG(x) FROM t", Catalog(dataset="d", private={"t": table})), cost)
    [ratio] = strategy.query.outputs[0][1].leaves()
    assert isinstance(ratio, Ratio)
    return strategy, ratio


def mean_of(strategy: NoisePlan, lower: float, upper: float) -> NoisyValue:
    released = NoisyTable(keys=((),), values={0: (lower,), 1: (upper,)})
    [found] = OutputEvaluator(strategy, released).column(strategy.query.outputs[0][1])
    return found


@pytest.mark.parametrize("cost", [pure(1), pure("1/20"), approximate(1, "1e-6")], ids=str)
def test_no_value_within_the_noise_is_left_out(cost: PrivacyLoss) -> None:
    """All values m with total - m·count within the exact noise of that number, on a fine grid, and little else."""
    strategy, ratio = plan(cost)
    draw, cut = random.Random(3), 0
    fine = [Fraction(LOW) + Fraction(HIGH - LOW) * i / POINTS for i in range(POINTS + 1)]
    noise = {float(m): strategy.error(ratio.beside(m), "0.95") for m in fine}
    for _ in range(40):
        rows = 10 ** draw.uniform(0, 4)
        share = draw.random()
        lower, upper = rows * (1 - share), rows * share
        found = mean_of(strategy, lower, upper)
        total, count = LOW * lower + HIGH * upper, lower + upper
        inside = [m for m, radius in noise.items() if abs(total - m * count) <= radius]
        assert found.low is not None
        assert found.high is not None
        assert found.low <= min([*inside, found.value])
        assert found.high >= max([*inside, found.value])
        if inside and min(inside) > LOW and max(inside) < HIGH:
            step = (HIGH - LOW) / 32
            assert found.low >= min(inside) - step
            assert found.high <= max(inside) + step
            cut += 1
    assert cut >= 5


def test_a_mean_without_rows_has_no_value() -> None:
    strategy, _ = plan(pure(1))
    assert mean_of(strategy, -3.0, 1.0).value is None


def test_a_mean_outside_its_range_stays_within() -> None:
    strategy, _ = plan(pure(1))
    found = mean_of(strategy, -10.0, 1000.0)
    assert found.value == HIGH
    assert found.low is not None
    assert LOW <= found.low <= HIGH == found.high


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
@pytest.mark.parametrize("scales", [(1, 1), (1, 3), (1, 1, 1, 1), (1, 1000), (2, 5, 7)])
def test_the_quantile_of_a_sum_is_where_its_tail_says(scales: tuple[int, ...], confidence: str) -> None:
    parts = [(scale, Laplace(scale=1, grid="1/1000000000")) for scale in scales]
    found = combined_error(parts, confidence=confidence)
    apart: list[float] = []
    for scale in sorted(scales):  # the formula is for scales that differ
        apart.append(max(float(scale), apart[-1] * 1.004) if apart else float(scale))
    chance = 1 - float(confidence)
    assert laplace_tail(apart, found) <= chance * (1 + 1e-6)
    assert laplace_tail(apart, found * 0.98) > chance
