"""Several parties: answers, refusals, parties that stop or lie, and ledgers that stay consistent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from parties_sample import agreement, coordinator, copies, keys, parties, rows, spent
from sfumato.dp.loss import pure
from sfumato.errors import (
    AnswerFailed,
    OverBudget,
    PartyFailed,
    QueryRefused,
    SfumatoError,
    TooManyRequests,
    UnknownBudget,
)
from sfumato.ledger.ledger import Ledger
from sfumato.parties.channels import LocalChannel
from sfumato.parties.party import Party
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.residues import add, from_integers, subtract, to_integers
from sfumato.parties.secure_sum import Announcement, open_round
from sfumato.query.session import Session

COUNTS = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
FRAMES = [rows("east", 100, 10.0), rows("west", 50, 20.0), rows("east", 7, 90.0)]


class Faulty(LocalChannel):
    """A channel that breaks at one of the messages."""

    at: str = ""

    def _step(self, name: str, call: Callable[[], Any]) -> Any:
        if self.at == name:
            raise PartyFailed("gone")
        reply = call()
        if self.at == f"after {name}":
            raise PartyFailed("gone")
        return reply

    def join(self, question: PartiesQuestion) -> Announcement:
        return self._step("join", lambda: self.party.join(question, analyst=self.analyst))

    def deal(self, *given: Any) -> Any:
        return self._step("deal", lambda: self.party.deal(*given, analyst=self.analyst))

    def contribute(self, *given: Any) -> Any:
        return self._step("contribute", lambda: self.party.contribute(*given[:3], analyst=self.analyst))

    def unmask(self, *given: Any) -> Any:
        return self._step("unmask", lambda: self.party.unmask(*given, analyst=self.analyst))


def breaking(at: str, count: int = 3, **changed: Any) -> tuple[Any, dict[str, Party]]:
    """Parties of which the second breaks."""
    agreed = agreement(count, **changed)
    members = parties(agreed, (FRAMES * 2)[:count])
    asked = coordinator(agreed, members)
    return replace(asked, channels={**asked.channels, "p001": faulty(members["p001"], at)}), members


def faulty(party: Party, at: str) -> Faulty:
    broken = Faulty(party=party, analyst="ann")
    object.__setattr__(broken, "at", at)
    return broken


def test_the_total_over_all_parties_is_answered_and_charged_to_each() -> None:
    agreed = agreement(3)
    members = parties(agreed, FRAMES)
    sql = "SELECT ward, COUNT(*) AS n, SUM(bill) AS s, AVG(bill) AS a, STDDEV(bill) AS d FROM visits GROUP BY ward"
    frame = coordinator(agreed, members).ask(sql, epsilon=50).frame
    assert frame["ward"].to_list() == ["east", "west"]
    assert frame["n"].to_list() == [107, 50]
    np.testing.assert_allclose(frame["s"], [1630, 1000], atol=30)
    np.testing.assert_allclose(frame["a"], [1630 / 107, 20], atol=0.5)
    np.testing.assert_allclose(frame["d"] ** 2, [np.var([10.0] * 100 + [90.0] * 7, ddof=1), 0], atol=25)
    assert [spent(party) for party in members.values()] == [50, 50, 50]


def test_a_hundred_parties() -> None:
    agreed = agreement(100, min_parties=90, colluding=5)
    members = copies(agreed, 100, [rows("east", 10, 1.0), rows("west", 3, 1.0)])
    answer = coordinator(agreed, members).ask(COUNTS, epsilon=20)
    assert answer.frame["COUNT(*)"].to_list() == [500, 150]
    assert {spent(party) for party in members.values()} == {20}


QUERIES = (
    "SELECT COUNT(*) FROM visits WHERE bill > 15",
    "SELECT ward, SUM(bill) AS s, COUNT(bill) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 20 ORDER BY s DESC",
    "SELECT AVG(CASE WHEN bill > 50 THEN 1 ELSE 0 END) AS share, VARIANCE(bill) FROM visits",
    "SELECT w, n * 2 AS twice FROM (SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY ward) AS t WHERE n > 60",
    "SELECT COUNT(DISTINCT person) FROM visits WHERE ward = 'east'",
    "SELECT SUM(m) FROM (SELECT person, MAX(bill) AS m FROM visits GROUP BY person) AS p",
)


def test_the_answers_are_those_of_one_table_with_all_rows() -> None:
    """At an epsilon of a million there is no noise left to speak of."""
    agreed = agreement(3)
    frames = [rows(("east", "west")[i % 2], 40 * (i + 1), 10.0 + 30 * i, first=1000 * i) for i in range(3)]
    asked = coordinator(agreed, parties(agreed, frames, budget=10**9))
    ledger = Ledger.open(":memory:")
    ledger.set_cap(pure(10**9), dataset=agreed.federation)
    central = Session(agreed.catalog(), {"visits": pl.concat(frames)}, ledger=ledger, analyst="ann")
    for sql in QUERIES:
        one, other = (session.ask(sql, epsilon=10**6).frame for session in (asked, central))
        assert one.columns == other.columns
        for name in one.columns:
            if one[name].dtype == pl.String:
                assert one[name].to_list() == other[name].to_list()
            else:
                np.testing.assert_allclose(one[name].cast(float), other[name].cast(float), rtol=1e-3)


def test_whom_the_limits_cut_is_measured_over_all_parties() -> None:
    """150 of 300 people have two rows, and one row of each counts: as the answer of one table with all rows."""
    agreed = agreement(3, dropouts=0)
    twice = [pl.concat([rows("east", 50 * (i + 1), 10.0, first=1000 * i)] * (1 + (i == 2))) for i in range(3)]
    asked = coordinator(agreed, parties(agreed, twice))
    answer = asked.ask(COUNTS, epsilon=400)
    assert answer.kept is not None
    assert answer.kept.value == pytest.approx(0.5, abs=0.01)
    assert answer.frame["COUNT(*)"].to_list() == [300, 0]
    assert all(cell.low is None for row in answer.rows for cell in row)
    assert asked.ask(COUNTS, epsilon=400, rows=2).kept.value == pytest.approx(1, abs=0.01)  # type: ignore[union-attr]
    assert asked.ask(COUNTS, epsilon=100, fit=0).kept is None


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT MEDIAN(bill) FROM visits", "at least 3 parties"),
        ("SELECT COUNT(DISTINCT bill) FROM visits", "COUNT, SUM, AVG"),
        ("SELECT bill, COUNT(*) FROM visits GROUP BY bill", "private"),
        ("SELECT COUNT(*) FROM visits ERROR 5 CONFIDENCE 95%", "ERROR"),
        ("SELECT * FROM visits", "rows"),
        ("DROP TABLE visits", "SELECT"),
    ],
)
def test_what_cannot_be_added_up_is_refused_at_no_cost(sql: str, says: str) -> None:
    agreed = agreement(2)
    members = parties(agreed, FRAMES[:2])
    with pytest.raises(QueryRefused, match=says):
        coordinator(agreed, members).ask(sql, epsilon=1)
    assert [spent(party) for party in members.values()] == [0, 0]


def test_people_in_several_parties_cannot_be_counted_once() -> None:
    agreed = agreement(2, parties_per_person=2)
    asked = coordinator(agreed, parties(agreed, FRAMES[:2]))
    with pytest.raises(QueryRefused, match="in several"):
        asked.ask("SELECT COUNT(DISTINCT person) FROM visits", epsilon=1)
    wide, narrow = asked.explain(COUNTS, epsilon=1), coordinator(agreement(2), {}).explain(COUNTS, epsilon=1)
    assert wide.noises[0].error > 1.9 * narrow.noises[0].error


@pytest.mark.parametrize("at", ["join", "contribute", "after contribute"])
def test_a_party_that_stops_ends_the_question_and_ledgers_charge_for_what_left_them(at: str) -> None:
    asked, members = breaking(at)
    with pytest.raises(PartyFailed, match="p001"):
        asked.ask(COUNTS, epsilon=1)
    sent = {"join": [0, 0, 0], "contribute": [1, 0, 1], "after contribute": [1, 1, 1]}[at]
    assert [spent(party) for party in members.values()] == sent
    for party in members.values():
        party.ledger.verify()


def test_an_absent_party_is_left_out_if_enough_others_are_there() -> None:
    asked, members = breaking("join", min_parties=2)
    answer = asked.ask(COUNTS, epsilon=30)
    assert answer.frame["COUNT(*)"].to_list() == [107, 0]
    assert any("p000, p002" in note for note in answer.explanation.notes)
    assert [spent(party) for party in members.values()] == [30, 0, 30]


@pytest.mark.parametrize("at", ["contribute", "after contribute"])
def test_a_second_attempt_leaves_out_the_party_that_stopped_and_is_charged_again(at: str) -> None:
    asked, members = breaking(at, min_parties=2)
    answer = asked.ask(COUNTS, epsilon=30, attempts=2)
    assert answer.frame["COUNT(*)"].to_list() == [107, 0]
    assert answer.loss is not None
    assert answer.loss.size == 60
    assert [spent(party) for party in members.values()] == [60, 30 if at == "after contribute" else 0, 60]


def test_a_party_without_budget_stops_the_question_before_anybody_is_charged() -> None:
    agreed = agreement(3)
    members = parties(agreed, FRAMES)
    poor = parties(agreed, FRAMES, budget=1)
    asked = coordinator(agreed, {**members, "p001": poor["p001"]})
    with pytest.raises(OverBudget, match="p001"):
        asked.ask(COUNTS, epsilon=2)
    assert [spent(members[name]) for name in ("p000", "p002")] == [0, 0]


def test_a_party_that_set_no_budget_answers_nothing() -> None:
    agreed = agreement(2)
    members = parties(agreed, FRAMES[:2])
    members["p001"]._session.ledger = type(members["p001"].ledger).open(":memory:")
    with pytest.raises(UnknownBudget, match="p001"):
        coordinator(agreed, members).ask(COUNTS, epsilon=1)


def test_a_party_that_answers_for_another_ends_the_question() -> None:
    members = parties(agreement(3), FRAMES)
    asked = coordinator(agreement(3), members)
    swapped = {**asked.channels, "p000": asked.channels["p001"]}
    with pytest.raises((PartyFailed, QueryRefused)):
        replace(asked, channels=swapped).ask(COUNTS, epsilon=1)
    assert [spent(party) for party in members.values()] == [0, 0, 0]


def test_one_analyst_cannot_keep_all_questions_open() -> None:
    members = parties(agreement(2), FRAMES[:2])
    agreed, party = members["p000"].agreement, members["p000"]

    def join(analyst: str) -> None:
        party.join(PartiesQuestion.new(COUNTS, agreement=agreed.digest(agreed.catalog()), epsilon="1"), analyst=analyst)

    for _ in range(16):
        join("eve")
    with pytest.raises(TooManyRequests):
        join("eve")
    join("ann")


def test_a_question_that_is_almost_free_is_refused_where_the_owner_says_so() -> None:
    members = parties(agreement(2), FRAMES[:2])
    members["p001"]._session.min_epsilon = "1/10"
    with pytest.raises(QueryRefused, match="at least"):
        coordinator(agreement(2), members).ask(COUNTS, epsilon="1/100")
    assert spent(members["p000"]) == 0


def test_parties_with_different_files_do_not_answer_together() -> None:
    members = parties(agreement(3), FRAMES)
    other = parties(agreement(3, colluding=1), FRAMES)
    with pytest.raises(QueryRefused, match="another parties file"):
        coordinator(agreement(3), {**members, "p002": other["p002"]}).ask(COUNTS, epsilon=1)
    assert spent(members["p000"]) == 0


def joined(members: dict[str, Party], sql: str = COUNTS) -> tuple[PartiesQuestion, dict[str, Announcement]]:
    agreed = next(iter(members.values())).agreement
    question = PartiesQuestion.new(sql, agreement=agreed.digest(agreed.catalog()), epsilon="1")
    return question, {name: party.join(question, analyst="ann") for name, party in members.items()}


LIES: dict[str, Callable[[dict[str, Announcement]], list[Announcement]]] = {
    "fewer parties": lambda said: list(said.values())[:2],
    "wrong signature": lambda said: [said["p000"], said["p001"], replace(said["p002"], signature=bytes(64))],
    "other key": lambda said: [said["p000"], said["p001"], replace(said["p002"], key=said["p001"].key[::-1])],
    "other plan": lambda said: [said["p000"], said["p001"], replace(said["p002"], plan="0" * 64)],
    "stranger": lambda said: [said["p000"], said["p001"], replace(said["p002"], party="mallory")],
    "twice the same": lambda said: [said["p000"], said["p001"], said["p001"]],
    "not my key": lambda said: [signed("p000", said["p000"]), said["p001"], said["p002"]],
    "old question": lambda said: [said["p000"], said["p001"], signed("p002", replace(said["p002"], question="0" * 64))],
}


def signed(name: str, announcement: Announcement) -> Announcement:
    """A properly signed announcement with another key."""
    return open_round(name, keys(3)[name], question=announcement.question, plan=announcement.plan).announcement


@pytest.mark.parametrize("lie", LIES)
def test_a_round_that_is_not_as_agreed_is_refused_before_the_charge(lie: str) -> None:
    members = parties(agreement(3), FRAMES)
    question, said = joined(members)
    with pytest.raises(QueryRefused):
        members["p000"].contribute(question.digest(), LIES[lie](said), analyst="ann")
    assert spent(members["p000"]) == 0


def test_a_question_is_contributed_to_once_and_by_its_analyst() -> None:
    members = parties(agreement(3), FRAMES)
    question, said = joined(members)
    with pytest.raises(QueryRefused, match="no open question"):
        members["p001"].contribute(question.digest(), list(said.values()), analyst="eve")
    members["p000"].contribute(question.digest(), list(said.values()), analyst="ann")
    with pytest.raises(QueryRefused, match="no open question"):
        members["p000"].contribute(question.digest(), list(said.values()), analyst="ann")
    assert spent(members["p000"]) == 1
    with pytest.raises(QueryRefused, match="asked before"):
        members["p002"].join(question, analyst="ann")


def test_parties_that_were_told_different_rounds_send_nothing_readable() -> None:
    """One party is told of a round with another key of its neighbour: no mask cancels."""
    members = parties(agreement(3), FRAMES)
    question, said = joined(members, "SELECT COUNT(*) FROM visits")
    other = {**said, "p002": signed("p002", said["p002"])}
    sent = [
        members[name].contribute(question.digest(), list(told.values()), analyst="ann")
        for name, told in (("p000", said), ("p001", other), ("p002", said))
    ]
    total, *_ = to_integers(add(add(sent[0], sent[1]), sent[2]))
    assert abs(total) > 1 << 90


def test_what_a_party_says_before_the_charge_does_not_depend_on_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for frames in (FRAMES, FRAMES[::-1]):
        monkeypatch.setattr(os, "urandom", np.random.default_rng(3).bytes)
        said.append(joined(parties(agreement(3), frames))[1])
    assert said[0] == said[1]


def test_a_failure_while_the_data_is_read_tells_nothing_and_stays_charged() -> None:
    members = parties(agreement(3), FRAMES)
    question, said = joined(members)
    members["p000"]._session.running.close()
    with pytest.raises(AnswerFailed) as caught:
        members["p000"].contribute(question.digest(), list(said.values()), analyst="ann")
    assert "duckdb" not in str(caught.value).lower()
    assert caught.value.__cause__ is None
    assert spent(members["p000"]) == 1


def test_numbers_are_added_modulo_two_to_the_128() -> None:
    draw = np.random.default_rng(5)
    ones, others = ([int.from_bytes(draw.bytes(15), "little", signed=True) for _ in range(200)] for _ in range(2))
    added, taken = (f(from_integers(ones), from_integers(others)) for f in (add, subtract))
    assert to_integers(added) == [a + b for a, b in zip(ones, others, strict=True)]
    assert to_integers(taken) == [a - b for a, b in zip(ones, others, strict=True)]


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"party": 1}, {**dict.fromkeys(("party", "question", "plan", "key", "sealing", "signature"), "zz")}],
)
def test_a_malformed_announcement_or_question_is_refused(document: object) -> None:
    for kind in (Announcement, PartiesQuestion):
        with pytest.raises(QueryRefused):
            kind.from_dict(document)


@pytest.mark.parametrize(
    "changed",
    [
        {"colluding": 3},
        {"min_parties": 4},
        {"parties_per_person": 4},
        {"colluding": 2, "min_parties": 2},
        {"colluding": -1},
    ],
)
def test_an_agreement_that_protects_nobody_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises((ValueError, SfumatoError)):
        agreement(3, **changed)
