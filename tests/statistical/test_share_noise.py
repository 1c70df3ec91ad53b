"""Errors and intervals of numbers that come out of shares, over 6,000 answers each.

With 6,000 answers the share of intervals that hold the truth is known to 0.0028 (one standard error) and a variance of
Laplace noise to 3 %: a coverage below 93.9 % and noise 12 % too small or too large in size are seen. The bytes of the
operating system are replaced by a fixed stream.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.dataset import Column, Domain, Kind, Role, Schema
from sfumato.dp import os_random
from sfumato.dp.loss import PrivacyLoss, concentrated, pure
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.noise_sums import combined_error
from sfumato.dp.receipt import issue
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.query import Catalog, PrivateTable
from sfumato.query.execute.executor import execute_plan
from sfumato.query.plan.planner import plan_query
from sfumato.query.results.intervals import OutputEvaluator
from sfumato.query.results.postprocess import NoisyValue
from sfumato.query.sql.parse import parse_query

GROUPS, RUNS, ROWS = 300, 20, 60
KEYS = [f"k{i:03d}" for i in range(GROUPS)]
X = np.round(np.random.default_rng(1).gamma(2, 12, ROWS).clip(0, 100), 3)
LOW, HIGH = -20, 100


@pytest.fixture(autouse=True)
def fixed_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os_random, "os", SimpleNamespace(urandom=np.random.Generator(np.random.PCG64(5)).bytes))


@cache
def answers(items: str, cost: PrivacyLoss, unit: str | None) -> list[list[NoisyValue]]:
    """One list of answers for each item: every group holds the same rows."""

    def column(kind: str, **domain: Any) -> Column:
        return Column(role=Role.PLAIN, kind=Kind(kind), domain=Domain.of(domain) if domain else None)

    columns = {"p": column("integer"), "k": column("category", values=tuple(KEYS)),
               "x": column("number", low=LOW, high=HIGH)}  # fmt: skip
    limits = {"rows": 2, "groups": 1} if unit else {}
    table = PrivateTable(name="t", schema=Schema(columns=columns, unit=unit), **limits)
    strategy = plan_query(
        parse_query(f"SELECT {items} FROM t GROUP BY k", Catalog(dataset="d", private={"t": table})), cost
    )
    frame = pl.DataFrame({"p": np.arange(GROUPS * ROWS) // 2, "k": np.repeat(KEYS, ROWS), "x": np.tile(X, GROUPS)})
    engine = Duckdb(threads=1).start({"t": frame.to_arrow()})
    found: list[list[NoisyValue]] = [[] for _ in strategy.query.outputs]
    for _ in range(RUNS):
        shown = OutputEvaluator(strategy, execute_plan(strategy, engine, issue(cost, dataset="d", entry=1)))
        for cells, (_, output) in zip(found, strategy.query.outputs, strict=True):
            cells += shown.column(output)
    engine.close()
    return found


CASES = [(pure(1), None), (pure("1/2"), "p"), (concentrated("1/4"), None)]
ITEMS = "COUNT(*), SUM(x), AVG(x), VAR_POP(x)"
TRUTH = [ROWS, X.sum(), X.mean(), X.var()]


@pytest.mark.parametrize(("cost", "unit"), CASES, ids=str)
@pytest.mark.parametrize("items", ["COUNT(*), SUM(x)", "COUNT(*), SUM(x), AVG(x)", ITEMS])
def test_intervals_hold_the_truth(items: str, cost: PrivacyLoss, unit: str | None) -> None:
    for place, cells in enumerate(answers(items, cost, unit)):
        told = [c for c in cells if c.low is not None and c.high is not None]
        covered = np.mean([c.low <= TRUTH[place] <= c.high for c in told])
        assert covered >= 0.939
        if place < 2:
            assert len(told) == len(cells)
            assert covered <= 0.975, "far wider than it need be"


@pytest.mark.parametrize(("cost", "unit"), CASES, ids=str)
def test_noise_has_the_size_that_was_planned(cost: PrivacyLoss, unit: str | None) -> None:
    """COUNT is the sum of both shares, SUM the shares times the ends of the range."""
    counts, sums = ([c.value for c in cells] for cells in answers("COUNT(*), SUM(x)", cost, unit))
    reach = 2 if unit else 1
    one = 2 * (reach / float(cost.size)) ** 2 if cost.pure else reach**2 / (2 * float(cost.size))
    assert np.var(counts) == pytest.approx(2 * one, rel=0.12)
    assert np.var(sums) == pytest.approx((LOW**2 + HIGH**2) * one, rel=0.12)
    assert abs(np.mean(counts) - ROWS) < 4 * (2 * one / len(counts)) ** 0.5 + 0.01
    assert abs(np.mean(sums) - X.sum()) < 4 * (HIGH**2 * 2 * one / len(sums)) ** 0.5 + 0.01


@pytest.mark.parametrize("weights", [(1, 1), (1, 0.2), (1, -1, 0.5), (1, 1, 1, 1), (100, 1)])
@pytest.mark.parametrize("confidence", ["0.95", "0.99"])
def test_combined_errors_are_close_to_the_true_quantiles(weights: tuple[float, ...], confidence: str) -> None:
    """A million draws of real Laplace noise: the bound is at most 2 % above the quantile and not below it."""
    made = combined_error([(w, Laplace(scale=2, grid="1/4096")) for w in weights], confidence=confidence)
    drawn = np.random.default_rng(3).laplace(0, 2, (1_000_000, len(weights))) @ np.array(weights)
    true = np.quantile(np.abs(drawn), float(confidence))
    assert true * 0.99 <= made <= true * 1.02
