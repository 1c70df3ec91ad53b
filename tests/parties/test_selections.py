"""MIN, MAX, quantiles and MODE among several parties: answers, the distribution of what is selected, refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from parties_sample import COLUMNS, agreement, computed_together, coordinator, opened, parties, spent
from sfumato.dp.mechanisms.quantile import Quantile
from sfumato.dp.sampler import discrete_laplace
from sfumato.errors import PartyFailed, QueryRefused
from sfumato.parties import planning
from sfumato.parties.planning import plan_question
from sfumato.parties.prime_field import Elements, from_signed
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.selections import Selections, SharedChoice, _largest
from sfumato.parties.shared_computation import SharedComputation


def frame(first: int, east: list[float], west: list[float]) -> pl.DataFrame:
    wards = ["east"] * len(east) + ["west"] * len(west)
    return pl.DataFrame({"person": range(first, first + len(wards)), "ward": wards, "bill": [*east, *west]})


def spread(low: float, high: float, count: int) -> list[float]:
    return [float(value) for value in np.linspace(low, high, count)]


FRAMES = [
    frame(0, spread(10, 40, 300), spread(5, 6, 100)),
    frame(1000, spread(40, 80, 300), spread(50, 60, 101)),
    frame(2000, spread(20, 60, 300), spread(90, 95, 100)),
]


def test_extremes_quantiles_and_modes_are_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """At an epsilon of 1,000 and with 200 candidates in the range of 100."""
    monkeypatch.setattr(planning, "MOST_CANDIDATES", 201)
    agreed = agreement(3)
    members = parties(agreed, FRAMES, budget=10_000)
    asked = coordinator(agreed, members)
    sql = "SELECT ward, MIN(bill) AS a, MEDIAN(bill) AS m, MAX(bill) AS z, COUNT(*) AS n FROM visits GROUP BY ward"
    answer = asked.ask(sql, epsilon=1000)
    assert answer.frame["ward"].to_list() == ["east", "west"]
    np.testing.assert_allclose(answer.frame["a"], [10, 5], atol=0.8)
    np.testing.assert_allclose(answer.frame["m"], [40, 55], atol=0.8)
    np.testing.assert_allclose(answer.frame["z"], [80, 95], atol=0.8)
    assert answer.frame["n"].to_list() == [900, 301]
    assert "Maximum" in str(answer.explanation)
    assert asked.ask("SELECT MODE(ward) FROM visits", epsilon=100).value == "east"
    assert {spent(party) for party in members.values()} == {1100}


def together(choice: SharedChoice, counts: list[list[int]], shares: int, times: int) -> Any:
    """How often each candidate is selected, in groups with the same rows at each of three parties."""

    def program(computation: SharedComputation, place: int) -> list[Elements]:
        return [choice.run(computation, np.array([counts[place]] * times), shares)]

    [index] = opened(computed_together(3, program))
    return np.bincount(index.astype(np.int64), minlength=choice.candidates) / times


@pytest.mark.parametrize("rank", [None, Fraction(1, 4), Fraction(1)])
def test_candidates_are_selected_as_by_report_noisy_max_over_all_rows(rank: Fraction | None) -> None:
    """Frequencies of 700 selections against 200,000 of one curator; a twentieth of the noise is seen."""
    counts = [[3, 0, 2, 0], [0, 4, 0, 1], [1, 0, 0, 3]]
    total, scale = np.sum(counts, axis=0), Fraction(4)
    choice = SharedChoice(aggregate=0, source=0, candidates=4, noise=scale)
    utility = total.astype(float)
    if rank is not None:
        margin = Fraction(3, 2) if rank == 1 else Fraction(0)
        quantile = Quantile(rank=rank, rate=1, low=Fraction(0), high=Fraction(3), grid=Fraction(1), margin=margin)
        choice = SharedChoice.of_quantile(quantile, aggregate=0, source=0, noise=scale, stride=1)
        up = np.cumsum(total)
        least, most = (rows - float(rank) * up[-1] + float(margin) for rows in (up - total, up))
        utility = -np.maximum(0, np.maximum(least, -most))
    steps = 1 if choice.quantile is None else choice.quantile[0]
    noise = discrete_laplace(choice.noise, 800_000).reshape(-1, 4)
    central = np.bincount(np.argmax(np.rint(utility * steps) + noise, axis=1), minlength=4) / 200_000
    tolerance = 5 * np.sqrt(central * (1 - central) / 700) + 0.002
    assert (np.abs(together(choice, counts, 3, 700) - central) < tolerance).all()
    assert (np.abs(together(choice, counts, 60, 700) - central) > tolerance).any()  # mutant: a twentieth of the noise


def test_the_largest_number_is_found_and_the_first_of_equal_ones() -> None:
    rows = np.array([[3, 9, 9, 1, 2], [-5, -7, -5, -6, -9], [0, 0, 0, 0, 0], [1, 2, 3, 4, 1 << 58]])

    def program(computation: SharedComputation, place: int) -> list[Elements]:
        [own] = computation.inputs(from_signed(rows) if place == 1 else None, [None, rows.shape, None])
        return [_largest(computation, own)]

    assert opened(computed_together(3, program))[0].tolist() == np.argmax(rows, axis=1).tolist()


def test_a_maximum_is_rounded_down_and_a_minimum_up() -> None:
    for shift, expected in ((0, [0, 0, 0, 1]), (2, [0, 1, 1, 1])):
        quantile = Quantile(rank=1, rate=1, low=Fraction(0), high=Fraction(6), grid=Fraction(3))
        choice = SharedChoice.of_quantile(quantile, aggregate=0, source=0, noise=Fraction(1), stride=3, shift=shift)
        for cell, candidate in enumerate(expected):
            assert choice.counts([(np.array([cell]), np.array([5]))])[0, candidate] == 5


def test_the_noise_has_the_scale_of_the_whole_loss() -> None:
    """Half of epsilon for each of two quantiles, of which a person has one row: 2·max(rank, 1 - rank) / epsilon."""
    agreed = agreement(3, parties_per_person=2)
    catalog = agreed.catalog()
    sql = "SELECT QUANTILE(bill, 0.25), MAX(bill), MODE(ward) FROM visits"
    question = PartiesQuestion.new(sql, agreement=agreed.digest(catalog), epsilon="6", fit=0)
    plan = plan_question(agreed, catalog, question)
    assert isinstance(plan.program, Selections)
    scales = {c.aggregate: c.noise / (c.quantile[0] if c.quantile else 1) for c in plan.program.choices}
    each = {m.aggregate: m.loss.size for m in plan.noise.measurements}
    assert sum(each.values()) == 3  # half of epsilon: one person may be in two parties
    names = {c.aggregate: c for c in plan.program.choices}
    for index, choice in names.items():
        aggregate = plan.noise.query.aggregates[index]
        rank = getattr(aggregate, "rank", None)
        wanted = 1 / each[index] if rank is None else 2 * max(rank, 1 - rank) / each[index]
        assert wanted <= scales[index] < wanted * Fraction(101, 100)
        assert choice.candidates <= 1024


@pytest.mark.parametrize(
    ("count", "sql", "says"),
    [
        (2, "SELECT MAX(bill) FROM visits", "at least 3 parties"),
        (10, "SELECT MODE(ward) FROM visits", "up to 9 parties"),
        (3, "SELECT MAX(bill), STDDEV(bill) FROM visits", "too fine"),
        (3, "SELECT COUNT(DISTINCT bill), MAX(bill) FROM visits", "quantiles and MODE are answered"),
    ],
)
def test_what_cannot_be_selected_is_refused_at_no_cost(count: int, sql: str, says: str) -> None:
    agreed = agreement(count)
    members = parties(agreed, (FRAMES * 4)[:count])
    with pytest.raises(QueryRefused, match=says):
        coordinator(agreed, members).ask(sql, epsilon=1)
    assert {spent(party) for party in members.values()} == {0}


def test_many_groups_are_refused_for_what_compares_candidates() -> None:
    wide = {**COLUMNS, "zone": {"kind": "category", "domain": {"values": [f"z{i}" for i in range(40)]}}}
    agreed = agreement(3, tables={"visits": {"bounds": {"rows": 1, "groups": 1}, "columns": wide}})
    catalog = agreed.catalog()
    sql = "SELECT zone, MAX(bill) FROM visits GROUP BY zone"
    with pytest.raises(QueryRefused, match="candidates in all"):
        plan_question(agreed, catalog, PartiesQuestion.new(sql, agreement=agreed.digest(catalog), epsilon="1"))


def test_shares_of_a_result_that_do_not_fit_are_refused() -> None:
    choice = SharedChoice(aggregate=0, source=0, candidates=2, noise=Fraction(1))
    plan = Selections(choices=(choice,), scales=())
    agreed = agreement(3)
    catalog = agreed.catalog()
    question = PartiesQuestion.new(
        "SELECT MODE(ward) FROM visits", agreement=agreed.digest(catalog), epsilon="1", fit=0
    )
    noise = plan_question(agreed, catalog, question).noise
    for shares in ([bytes(16)] * 3, [np.array([5], "<u8").tobytes()] * 3, [bytes(8), bytes(8), b"12345678"]):
        with pytest.raises(PartyFailed, match="fit together"):
            plan.table(noise, shares)
