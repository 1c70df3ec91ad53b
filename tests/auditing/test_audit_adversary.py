"""An adversary who knows the auditor: whatever is answered, enumeration finds nobody with fewer than k values."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato import datasets
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.k_assign import AssignAuditor
from sfumato.auditing.past_answers import past_answers
from sfumato.auditing.repair import safe_counterfeits
from sfumato.auditing.rules import AuditRules
from sfumato.dataset import RangeDomain, ValuesDomain
from sfumato.errors import BadParameter, MetadataMissing

pytest.importorskip("ortools")

ITEMS: dict[str, Callable[[list[int]], Any]] = {
    "SUM(s)": sum, "AVG(s)": lambda v: sum(v) / len(v), "s": sorted, "MAX(s)": max, "MIN(s)": min,
}  # fmt: skip


def table(values: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(values)), "s": values})


def at_least(bound: int, values: list[int]) -> int:
    return sum(value >= bound for value in values)


def where(chosen: list[int]) -> str:
    return f"FROM t WHERE id IN ({', '.join(map(str, chosen))})"


def test_yes_and_no_coded_one_and_two() -> None:
    """The three sums have one solution among 1s and 2s, and infinitely many among real numbers."""
    auditor = Auditor(
        table([1, 2, 1, 1]), secrets=["s"], rules=AuditRules(k=2), domains={"s": ValuesDomain(values=(1, 2))}
    )
    assert auditor.ask(f"SELECT SUM(s) {where([0, 1])}").answer == 3
    assert auditor.ask(f"SELECT SUM(s) {where([1, 2])}").answer == 3
    assert auditor.ask(f"SELECT SUM(s) {where([0, 2, 3])}").verdict == "refused"


def test_whole_numbers_that_are_declared_as_real_ones(tmp_path: Path) -> None:
    """Scores 1, 2, 3 of kind `number`: a sum of 2 over two people tells that both have 1. Through the SQL front."""
    from sfumato.dataset.document import Dataset
    from sfumato.errors import AnswerDenied
    from sfumato.query.open_session import open_session

    (tmp_path / "t.csv").write_text("id,score\n0,1.0\n1,2.0\n2,1.0\n3,3.0\n4,1.0\n5,1.0\n")
    (tmp_path / "m.yaml").write_text(
        "sfumato: 1\ndataset: w\nledger: l.db\nanswering: {policy: {audit: {k: 2}}}\n"
        "person: row\ntables:\n  t:\n    data: t.csv\n"
        "    columns:\n      id: {kind: integer}\n"
        "      score: {kind: number, role: sensitive, domain: {low: 1, high: 3, step: 1}}\n"
    )
    session = open_session(Dataset.load(tmp_path / "m.yaml"), analyst="eve")
    with pytest.raises(AnswerDenied):
        session.ask("SELECT SUM(score) FROM t WHERE id IN (2, 4)")
    assert session.ask("SELECT SUM(score) FROM t WHERE id IN (0, 1)").value == 3


@pytest.mark.parametrize("seed", range(30))
def test_no_sequence_about_a_scale_leaves_fewer_than_k_values(seed: int) -> None:
    """Sums, means, lists, extremes and counts of a skewed scale, in any order, against every world there is."""
    draw = Random(seed)
    people, low, high = draw.randint(2, 5), draw.choice([-1, 0, 1]), 0
    high = low + draw.randint(1, 3)
    k = draw.randint(2, high - low + 1)
    truth = [low if draw.random() < 0.6 else draw.randint(low, high) for _ in range(people)]
    truth[0], truth[-1] = low, high
    per = (1, 2, 10)[seed % 3]  # whole numbers, halves and tenths
    held = table([value / per for value in truth] if per > 1 else truth)
    scale = {"s": RangeDomain(low=low / per, high=high / per, step=1 / per)}
    auditor = Auditor(held, secrets=["s"], rules=AuditRules(k=k), domains=scale)
    worlds = list(product(range(low, high + 1), repeat=people))
    answered = 0
    for _ in range(9):
        chosen = sorted(draw.sample(range(people), draw.randint(1, people)))
        item = draw.choice([*ITEMS, "COUNT(*)"])
        bound = draw.randint(low, high)
        count = item == "COUNT(*)"
        decision = auditor.ask(f"SELECT {item} {where(chosen)}" + (f" AND s >= {bound / per}" if count else ""))
        if decision.verdict == "refused":
            continue
        answered += 1
        told: Callable[[list[int]], Any] = partial(at_least, bound) if count else ITEMS[item]
        true = told([truth[i] for i in chosen])
        scaled = np.asarray(decision.answer) * (1 if count else per)
        assert scaled == pytest.approx(np.asarray(true))
        worlds = [world for world in worlds if told([world[i] for i in chosen]) == true]
        assert all(len({world[i] for world in worlds}) >= k for i in range(people)), (truth, k)
    assert answered or k > 2


def wide(truth: list[int], k: int) -> Auditor:
    """Everybody knows that wages are whole numbers between 0 and 40."""
    rules, domains = AuditRules(k=k), {"s": RangeDomain(low=0, high=40)}
    return Auditor(table(truth), secrets=["s"], rules=rules, domains=domains)


@pytest.mark.parametrize("seed", range(12))
def test_no_sequence_of_bounded_sums_leaves_fewer_than_k_values(seed: int) -> None:
    draw = Random(seed)
    people, k = 3, draw.randint(2, 5)
    truth = [draw.choice([0, 1, 2, 20, 39, 40]) for _ in range(people)]
    auditor = wide(truth, k)
    worlds = list(product(range(41), repeat=people))
    for _ in range(6):
        chosen = sorted(draw.sample(range(people), draw.randint(1, people)))
        if auditor.ask(f"SELECT SUM(s) {where(chosen)}").verdict == "refused":
            continue
        worlds = [world for world in worlds if sum(world[i] for i in chosen) == sum(truth[i] for i in chosen)]
        assert all(len({world[i] for world in worlds}) >= k for i in range(people)), (truth, k)


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_halves_within_bounds(seed: int) -> None:
    """41 steps are no scale: the sums are audited as sums of whole steps, and everybody keeps k of them."""
    draw = Random(seed)
    k, truth = draw.randint(2, 5), [draw.choice([0, 1, 2, 21, 39, 40]) for _ in range(3)]
    truth[0] = 1
    halves = {"s": RangeDomain(low=0, high=20, step=0.5)}
    auditor = Auditor(table([value / 2 for value in truth]), secrets=["s"], rules=AuditRules(k=k), domains=halves)
    worlds = list(product(range(41), repeat=3))
    for chosen in ([0, 1], [1, 2], [0, 1, 2], [0, 2]):
        total = sum(truth[i] for i in chosen)
        after = [world for world in worlds if sum(world[i] for i in chosen) == total]
        kept = min(len({world[i] for world in after}) for i in range(3))
        decision = auditor.ask(f"SELECT SUM(s) {where(chosen)}")
        assert (decision.verdict == "answered") == (kept >= k)
        if decision.verdict == "answered":
            assert decision.answer == pytest.approx(total / 2)
            worlds = after


def test_bounded_sums_are_answered_where_they_may_be() -> None:
    auditor = wide([1, 1, 20, 30], k=4)
    refused = auditor.ask(f"SELECT SUM(s) {where([0, 1])}")  # 0, 1 or 2 each: three values
    assert (refused.verdict, refused.exposed, refused.looked) == ("refused", (0, 1), True)
    assert auditor.ask(f"SELECT SUM(s) {where([0, 1, 2])}").answer == 22
    three = wide([1, 1, 20, 30], k=3)
    assert three.ask(f"SELECT SUM(s) {where([0, 1])}").answer == 2


@pytest.mark.parametrize("seed", range(8))
def test_counterfeits_hold_against_the_inverse_image(seed: int) -> None:
    """Every true list that is contained in the published one has the published one among its choices.

    So nothing but the list itself is learned: not that the true list was unsafe.
    """
    draw = Random(seed)
    people, values, k = draw.randint(2, 4), draw.randint(2, 3), 2
    truth = [0 if draw.random() < 0.7 else draw.randrange(values) for _ in range(people)]
    everyone = np.arange(people)
    published = {
        tuple(repair.assessment.answer.totals.tolist())
        for size in (1, 2)
        for repair in safe_counterfeits(AssignAuditor(truth, values=values, k=k), everyone, size=size)
    }
    for world in product(range(values), repeat=people):
        own = np.bincount(world, minlength=values)
        choices = {
            tuple(repair.assessment.answer.totals.tolist())
            for size in (1, 2)
            for repair in safe_counterfeits(AssignAuditor(list(world), values=values, k=k), everyone, size=size)
        }
        assert {answer for answer in published if (own <= np.array(answer)).all()} <= choices


def test_safe_lists_get_counterfeits_as_well() -> None:
    """Otherwise `v0 v0 v1`, one of them false, would mean that both have v0."""
    verdicts = {
        "safe": [Auditor(table(["a", "b"]), secrets=["s"], rules=AuditRules(k=2, counterfeits=1)) for _ in range(40)],
        "unsafe": [
            Auditor(table(["a", "a", "b"]), secrets=["s"], rules=AuditRules(k=2, counterfeits=1)) for _ in range(5)
        ],
    }
    outcomes = {
        name: [auditor.ask(f"SELECT s {where([0, 1])}") for auditor in auditors] for name, auditors in verdicts.items()
    }
    assert {decision.verdict for decision in outcomes["safe"]} == {"answered", "counterfeits"}  # fails with 2^-39
    assert {decision.verdict for decision in outcomes["unsafe"]} == {"counterfeits"}
    assert any(decision.answer == ["a", "a", "b"] for decision in outcomes["safe"])
    assert all(decision.answer == ["a", "a", "b"] for decision in outcomes["unsafe"])


@pytest.mark.parametrize("common", ["a", "b"])
def test_simulatable_decisions_keep_the_rule_on_skewed_data(common: str) -> None:
    """Nine of ten have one value; groups of five. No answer may leave anybody one value."""
    values = [common if i % 10 else ("b" if common == "a" else "a") for i in range(50)]
    every = AuditRules(k=2, simulatable=True)
    auditor = Auditor(table(values), secrets=["s"], rules=every, domains={"s": ValuesDomain(values=("a", "b"))})
    for first in range(0, 50, 5):
        decision = auditor.ask(f"SELECT s {where(list(range(first, first + 5)))}")
        assert decision.verdict == "refused"
        assert not decision.looked
    known = AuditRules(k=2, simulatable=True, allow=0.3, shares={"s": {"a": 0.9, "b": 0.1}})
    refused = Auditor(table(values), secrets=["s"], rules=known).ask(f"SELECT s {where(list(range(5)))}")
    assert refused.verdict == "refused"  # all five have the common value with probability 0.59
    wide = Auditor(table(values), secrets=["s"], rules=known).ask(f"SELECT s {where(list(range(40)))}")
    assert wide.verdict == "answered"  # with probability 0.015


def test_shares_are_required_and_complete() -> None:
    with pytest.raises(ValueError, match="need public shares"):
        AuditRules(k=2, simulatable=True, allow=0.1)
    rules = AuditRules(k=2, simulatable=True, allow=0.1, shares={"s": {"a": 1.0}})
    with pytest.raises(BadParameter, match="each possible value"):
        Auditor(table(["a", "b", "b"]), secrets=["s"], rules=rules, domains={"s": ValuesDomain(values=("a", "b"))}).ask(
            "SELECT s FROM t"
        )
    with pytest.raises(MetadataMissing, match="Not every value"):
        Auditor(table(["a", "b", "b"]), secrets=["s"], rules=rules)


def test_a_second_column_may_determine_the_first() -> None:
    frame = pl.DataFrame({"id": range(6), "s": list("aabbcc"), "code": [1, 1, 2, 2, 3, 3], "other": [1, 2, 3, 1, 2, 3]})
    auditor = Auditor(frame, secrets=["s", "code"], rules=AuditRules(k=2))
    assert auditor.ask("SELECT s FROM t").verdict == "answered"
    refused = auditor.ask("SELECT code FROM t")
    assert refused.verdict == "refused"
    assert "may determine" in refused.reason
    with pytest.raises(BadParameter, match="determines"):
        Auditor(frame, secrets=["s", "code"], rules=AuditRules(k=2, independent=("s", "code")))
    apart = Auditor(frame, secrets=["s", "other"], rules=AuditRules(k=2, independent=("s", "other")))
    assert apart.ask("SELECT s FROM t").verdict == "answered"
    assert apart.ask("SELECT other FROM t").verdict == "answered"


def test_exchanges_of_sets_prove_what_rectangles_do_not() -> None:
    """200 people, 14 random halves: everybody is alone in their atom, and the integer search is not needed."""
    rng = np.random.default_rng(1)
    auditor = AssignAuditor(rng.integers(0, 3, 200), values=3, k=2)
    for _ in range(14):
        assessment = auditor.judge(np.flatnonzero(rng.random(200) < 0.5))
        assert assessment.safe
        assert assessment.how == "examples"
        auditor.accept(assessment)


def test_answers_already_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four answers; two of them together leave the man of the ward one value. One is about the wards beside it."""
    from sfumato.cli import main

    log = tmp_path / "log.sql"
    log.write_text(
        "SELECT disease FROM p WHERE zip < 12000\nSELECT disease FROM p WHERE zip = 12000\n"
        "SELECT COUNT(*) FROM p WHERE age > 20\nSELECT disease FROM p WHERE zip = 12000 AND sex = 'F'\n"
    )
    patients = datasets.place("patients7")
    arguments = ["audit", str(log), "--told", "--data", str(patients), "--secret", "disease", "--k", "2"]
    assert main([*arguments, "--json"]) == 1
    [column] = json.loads(capsys.readouterr().out)["columns"]
    assert column["exposed"] == [3]
    assert [answer["query"] for answer in column["proof"]] == [2, 3]
    assert column["people_by_values_kept"] == {"1": 1, "2": 2, "3": 3, "6": 1}
    assert main(arguments) == 1
    shown = capsys.readouterr().out
    assert "Row 3 follows from 2 answers" in shown
    assert "zip < 12000" not in shown
    log.write_text("SELECT disease FROM p WHERE zip = 12000\n")
    assert main(arguments) == 0
    assert "Everybody keeps 2 values or more" in capsys.readouterr().out


def test_sums_already_given() -> None:
    frame = table([1000, 2000, 4000, 9000])
    thousands = {"s": RangeDomain(low=0, high=90_000, step=1000)}
    auditor = Auditor(frame, secrets=["s"], rules=AuditRules(k=2), domains=thousands)
    queries = [f"SELECT SUM(s) {where(rows)}" for rows in ([0, 1], [1, 2], [0, 1, 2], [2, 3])]
    [column], left_out = past_answers(auditor, [*queries, "SELECT s, id FROM t"])
    assert column.exposed == (0, 1, 2, 3)
    assert column.worst == 0
    assert column.proof == (1, 2)
    assert left_out == ["SELECT s, id FROM t"]
    undeclared = Auditor(frame, secrets=["s"], rules=AuditRules(k=2))
    assert past_answers(undeclared, queries) == ([], queries)
