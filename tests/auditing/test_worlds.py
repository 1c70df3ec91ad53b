"""The number of possible worlds after each answer: exact against enumeration, and lower bounds that are bounds."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest

from sfumato.auditing import k_assign
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.k_assign import AssignAuditor
from sfumato.auditing.past_answers import past_answers
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.worlds import Worlds
from sfumato.dataset import RangeDomain, ValuesDomain

PEOPLE, VALUES = 6, 3
WORLDS = np.array(list(product(range(VALUES), repeat=PEOPLE)))


def _numbers(truth: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"id": range(PEOPLE), "v": truth})


def _question(kind: str, people: list[int]) -> str:
    where = f"id IN ({str(people)[1:-1]})"
    return {
        "list": f"SELECT v FROM t WHERE {where}",
        "sum": f"SELECT SUM(v) FROM t WHERE {where}",
        "max": f"SELECT MAX(v) FROM t WHERE {where}",
        "count": f"SELECT COUNT(*) FROM t WHERE {where} AND v = 1",
    }[kind]


def _told(kind: str, values: np.ndarray) -> np.ndarray:
    """The answer of a kind in every world: worlds by people of the question to one row per world."""
    return {
        "list": lambda v: np.sort(v, axis=1),
        "sum": lambda v: v.sum(axis=1, keepdims=True),
        "max": lambda v: v.max(axis=1, keepdims=True),
        "count": lambda v: (v == 1).sum(axis=1, keepdims=True),
    }[kind](values)


def _enumerated(truth: np.ndarray, asked: list[tuple[str, list[int]]], known: tuple[int, ...] = ()) -> int:
    fits = np.logical_and.reduce(
        [(_told(kind, WORLDS[:, people]) == _told(kind, truth[None, people])).all(axis=1) for kind, people in asked]
    )
    fits &= (WORLDS[:, list(known)] == truth[list(known)]).all(axis=1)
    people = sorted({person for _, one in asked for person in one} - set(known))
    return len(np.unique(WORLDS[fits][:, people], axis=0))


@pytest.mark.parametrize("known", [(), (0, 4)])
def test_the_number_is_that_of_enumeration(known: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(15):
        truth = rng.integers(0, VALUES, PEOPLE)
        asked = [
            (str(rng.choice(["list", "sum", "max", "count"])),
             sorted(rng.choice(PEOPLE, int(rng.integers(2, 5)), replace=False).tolist()))
            for _ in range(int(rng.integers(1, 4)))
        ]  # fmt: skip
        rules = AuditRules(k=2, known={"v": f"id IN ({str(list(known))[1:-1]})"} if known else {})
        auditor = Auditor(_numbers(truth), secrets=["v"], rules=rules, domains={"v": ValuesDomain(values=(0, 1, 2))})
        [column], left_out = past_answers(auditor, [_question(kind, people) for kind, people in asked])
        assert not left_out
        expected = _enumerated(truth, asked, known)
        assert column.worlds == Worlds.of(expected, exact=True)
        seen.add(expected)
    assert len(seen) > 5


def test_the_classical_numbers_come_with_each_answer() -> None:
    """Three people with A, B, C: six worlds. With a second question about four people: 18."""
    frame = pl.DataFrame({"id": range(6), "v": list("ABCBDB")})
    auditor = Auditor(frame, secrets=["v"], rules=AuditRules(k=2))
    first = auditor.ask("SELECT v FROM t WHERE id IN (0, 1, 2)")
    assert str(first.worlds) == "6"
    second = auditor.ask("SELECT v FROM t WHERE id IN (0, 3, 4, 5)")
    log10 = pytest.approx(np.log10(18))
    assert second.to_dict()["worlds"] == {"text": "18", "number": 18, "log10": log10, "exact": True}
    assert str(auditor.ask("SELECT v FROM t WHERE id IN (0, 1, 2)").worlds) == "18"  # asked again: as of now
    refused = auditor.ask("SELECT v FROM t WHERE id = 0")
    assert (refused.verdict, refused.worlds) == ("refused", None)


def test_counterfeits_leave_more_worlds() -> None:
    counts = []
    for fakes in ([], [3]):
        auditor = AssignAuditor([0, 1, 2, 1], values=4, k=2)
        auditor.accept(auditor.judge([0, 1, 2], fakes=fakes))
        counts.append(auditor.worlds().number)
    assert counts == [6, 24]


@pytest.mark.parametrize("limit", ["_COUNTING", "_COUNTED_ANSWERS", "_COUNTED_PEOPLE"])
def test_a_bound_is_below_the_number_and_says_so(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    auditor = AssignAuditor([0, 1, 2, 1, 3, 1], values=4, k=2)
    for people in ([0, 1, 2], [0, 3, 4, 5]):
        auditor.accept(auditor.judge(people))
    assert auditor.worlds() == Worlds.of(18, exact=True)
    monkeypatch.setattr(k_assign, limit, 0)
    bound = auditor.worlds()
    assert not bound.exact
    assert str(bound).startswith("at least ")
    assert bound.log10 == pytest.approx(np.log10(6))  # rows 2, 3: two orders; rows 4, 5, 6: three


def test_a_large_number_is_written_by_its_magnitude() -> None:
    assert str(Worlds.of(10**15 - 1, exact=True)) == "999,999,999,999,999"
    assert str(Worlds.of(10**400, exact=True)) == "about 10^400"
    assert str(Worlds.of(9 * 10**20, exact=False)) == "at least 10^20"
    many = AssignAuditor(np.arange(5_000) % 2, values=2, k=2)
    many.accept(many.judge(np.arange(4_000)))
    assert str(many.worlds()) == "at least 10^1202"


def test_a_wide_range_of_numbers_is_not_counted() -> None:
    frame = pl.DataFrame({"id": range(6), "wage": [10, 20, 30, 40, 50, 60]})
    rules = AuditRules(k=2)
    auditor = Auditor(frame, secrets=["wage"], rules=rules, domains={"wage": RangeDomain(low=0, high=5000, step=1)})
    decision = auditor.ask("SELECT SUM(wage) FROM t WHERE id < 4")
    assert (decision.verdict, decision.worlds) == ("answered", None)
