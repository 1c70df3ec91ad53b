"""GROUP BY over private keys among several parties: answers, noise, what stays hidden, and parties that stop."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from parties_sample import COLUMNS, agreement, computed_together, coordinator, opened, parties
from sfumato.dp.loss import approximate
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.dp.noise_shares import laplace_shares
from sfumato.errors import OverBudget, PartyFailed, QueryRefused
from sfumato.ledger.ledger import Ledger
from sfumato.parties import private_keys
from sfumato.parties.agreement import Agreement
from sfumato.parties.channels import LocalChannel
from sfumato.parties.coordinator import Coordinator
from sfumato.parties.party import Party
from sfumato.parties.planning import plan_question
from sfumato.parties.prime_field import Elements, from_signed, to_signed
from sfumato.parties.private_keys import Padding, PrivateKeys
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.sealed_exchange import joined_frame, split_frame
from sfumato.parties.shared_computation import SharedComputation
from sfumato.query.session import Session

CITIES = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
TABLES = {
    "visits": {"bounds": {"rows": 1, "groups": 1}, "columns": {**COLUMNS, "city": {"kind": "category"}}}
}  # fmt: skip


def visits(first: int, **people: int) -> pl.DataFrame:
    cities = [city for city, count in people.items() for _ in range(count)]
    bills = [10.0 + len(city) for city in cities]
    return pl.DataFrame(
        {"person": range(first, first + len(cities)), "ward": ["east"] * len(cities), "bill": bills, "city": cities}
    )


HOLES = visits(3000, Basel=5).with_columns(city=pl.Series([None, None, "Basel", "x" * 70, "é" * 25], dtype=pl.String))
FRAMES = [visits(0, Basel=60, Bern=3, Aarau=1), visits(1000, Basel=40, Genf=100), visits(2000, Bern=3, Zürich=70)]


def federation(frames: list[pl.DataFrame], **changed: Any) -> tuple[Coordinator, dict[str, Party]]:
    agreed = agreement(len(frames), tables=TABLES, **changed)
    members = parties(agreed, frames)
    for party in members.values():
        party.ledger.set_cap(approximate(10**9, Fraction(1, 100)), dataset="clinics")
    return coordinator(agreed, members), members


def spent(members: dict[str, Party]) -> list[float]:
    return [float(party.ledger.balance(dataset="clinics").spent.size) for party in members.values()]


def test_keys_of_all_parties_are_answered_as_one_table_would_and_charged_to_each() -> None:
    """At an epsilon of 400 there is no noise to speak of; Bern has three people in each of two parties."""
    asked, members = federation(FRAMES)
    sql = "SELECT city, COUNT(*) AS n, AVG(bill) AS a FROM visits GROUP BY city ORDER BY n DESC"
    ledger = Ledger.open(":memory:")
    ledger.set_cap(approximate(10**4, Fraction(1, 10)), dataset="clinics")
    central = Session(asked.agreement.catalog(), {"visits": pl.concat(FRAMES)}, ledger=ledger, analyst="ann")
    one, other = (each.ask(sql, epsilon=400, delta="1e-6").frame for each in (asked, central))
    assert one["city"].to_list() == other["city"].to_list() == ["Basel", "Genf", "Zürich", "Bern"]
    assert one["n"].to_list() == [100, 100, 70, 6]
    np.testing.assert_allclose(one["a"], [15, 14, 16, 14], atol=0.5)  # parties draw in any order; Bern has six people
    assert spent(members) == [400] * 3
    assert {party.ledger.balance(dataset="clinics").spent.delta for party in members.values()} == {Fraction(1, 10**6)}


def test_missing_and_long_keys() -> None:
    """Both as for one table, but for a key of 70 letters, which is left out."""
    asked, _ = federation([HOLES, HOLES, HOLES.head(2)])
    answer = asked.ask(CITIES, epsilon=400, delta="1e-6")
    ledger = Ledger.open(":memory:")
    ledger.set_cap(approximate(10**4, Fraction(1, 10)), dataset="clinics")
    table = pl.concat([HOLES, HOLES, HOLES.head(2)]).with_columns(person=pl.int_range(12))
    central = Session(asked.agreement.catalog(), {"visits": table}, ledger=ledger, analyst="ann")
    whole = central.ask(CITIES, epsilon=400, delta="1e-6").frame
    assert answer.frame.rows() == [row for row in whole.rows() if row[0] != "x" * 70]
    assert "é" * 25 in answer.frame["city"]
    assert whole.height == answer.frame.height + 1
    assert "63 bytes" in str(answer.explanation)


def test_keys_of_few_people_are_withheld_and_numbers_and_dates_keep_their_type() -> None:
    asked, _ = federation(FRAMES)
    answer = asked.ask("SELECT person % 7 AS k, city, COUNT(*) AS n FROM visits GROUP BY 1, 2", epsilon=2, delta="1e-6")
    assert all(isinstance(value, int) for value in answer.frame["k"])
    assert set(answer.frame["city"]) <= {"Basel", "Genf", "Zürich"}
    assert "private" in str(answer.explanation)


SMALL = PrivateKeys(
    scales=(Fraction(10), Fraction(3)), counted=range(1), limit=-10_000, fitting=None,
    padding=Padding(scale=Fraction(1), radius=0),
)  # fmt: skip


def chosen(plan: PrivateKeys, rows: Elements, *, shares: int = 3) -> Elements:
    """What three parties choose of shared rows, before the shuffle."""

    def program(computation: SharedComputation, place: int) -> list[Elements]:
        [own] = computation.inputs(rows if place == 0 else None, [rows.shape, None, None])
        return [plan._chosen(computation, own, shares)]

    return opened(computed_together(3, program))[0]


def rows_of(hashes: list[int], counts: list[int]) -> Elements:
    rows = np.zeros((len(hashes), 1 + 9 + 2), np.uint64)
    rows[:, 0], rows[:, 1], rows[:, 10] = hashes, hashes, from_signed(counts)
    return rows


def test_the_noise_of_a_key_is_the_central_one() -> None:
    """Mean absolute noise of 1,500 keys: 5 standard errors are 13 %; two of three shares would lack 22 %."""

    def size(shares: int) -> Any:
        made = chosen(SMALL, rows_of(list(range(1500)), [0] * 1500), shares=shares)
        assert (made[:, 0] == 1).all()
        return np.abs(to_signed(made[:, 10:])).mean(axis=0)

    expected = [2 * q / (1 - q * q) for q in np.exp([-1 / 10, -1 / 3])]
    np.testing.assert_allclose(size(3), expected, rtol=5 / np.sqrt(1500))
    assert (size(5) < np.array(expected) * (1 - 5 / np.sqrt(1500))).all()  # mutant: shares of five, of which three add


def test_equal_keys_are_added_up_and_nothing_is_left_of_keys_below_the_limit() -> None:
    plan = replace(SMALL, scales=(Fraction(1, 100),) * 2, limit=50)
    made = chosen(plan, rows_of([1, 4, 4, 4, 7, 8, 8, 9, 9], [50, 20, 20, 10, 49, 25, 24, 90, 5]))
    assert made[:, 0].tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 1]
    assert to_signed(made[:, 10]).tolist() == [50, 0, 0, 50, 0, 0, 0, 0, 95]
    assert (made[made[:, 0] == 0] == 0).all()  # neither its text nor its count


def test_a_key_of_one_person_passes_as_often_as_delta_says_even_if_parties_collude() -> None:
    """The limit is set for the noise of all parties, of which one knows its share: seen with a delta of 1 in 500."""
    delta = Fraction(1, 500)
    mechanism = ThresholdedLaplace.for_budget(Fraction(1, 10), delta, sensitivity=1)
    noise = sum(laplace_shares(mechanism.steps(), 2, 200_000) for _ in range(3))  # one of three colludes

    def passed(limit: Fraction) -> float:
        return float((1 + noise >= int(limit)).mean())

    assert passed(mechanism.limit) > delta * 2  # mutant: the limit of a central curator
    assert passed(mechanism.limited_for(2, delta).limit) < delta


def test_the_length_of_a_list_is_noisy_and_rows_that_fill_it_up_are_never_reported() -> None:
    padding = Padding.for_budget(Fraction(1, 2), Fraction(1, 1000), keys=3)
    drawn = np.array([padding.draw() for _ in range(4000)])
    assert 0 <= drawn.min() <= drawn.max() <= 2 * padding.radius
    assert np.abs(drawn - padding.radius).mean() == pytest.approx(6, rel=0.1)  # the scale is keys / epsilon
    assert ((drawn == 0) | (drawn == 2 * padding.radius)).mean() < 0.005
    plan = replace(SMALL, limit=-10_000, padding=Padding(scale=Fraction(1), radius=5))

    def program(computation: SharedComputation, place: int) -> bytes:
        own = plan.prepared(({("a",): [7, 1]} if place else {}, []), salt=b"")
        return plan.run(computation, own, noise_shares=3)

    found, _ = plan.opened(computed_together(3, program))
    assert list(found) == [("a",)]


def test_what_the_analyst_opens_is_in_no_order_and_has_nothing_but_reported_keys() -> None:
    """Keys are hashed and sorted; without a shuffle their places would tell how many others lie between them."""
    plan = replace(SMALL, scales=(Fraction(1, 100),) * 2, limit=50)
    totals = {(f"key {i}",): [60 if i < 20 else 1, 0] for i in range(60)}

    def program(computation: SharedComputation, place: int) -> bytes:
        own = plan.prepared((totals if place == 0 else {}, []), salt=b"salt")
        return plan.run(computation, own, noise_shares=3)

    shares = computed_together(3, program)
    found, _ = plan.opened(shares)
    assert set(found) == {(f"key {i}",) for i in range(20)}
    hashed = sorted(found, key=lambda key: private_keys.hashlib.sha256(b"salt" + private_keys._text(key)).digest())
    assert list(found) != hashed
    [rows] = opened([[np.frombuffer(part, "<u8")] for part in shares])
    assert np.count_nonzero(rows.reshape(-1, 12)[:, 0]) == 20
    assert np.count_nonzero(rows.reshape(-1, 12).any(axis=1)) == 20
    wrong = [shares[0], shares[1], bytes(len(shares[2]))]
    with pytest.raises(PartyFailed, match="fit together"):
        plan.opened(wrong)


@pytest.mark.parametrize(
    ("count", "changed", "sql", "delta", "says"),
    [
        (2, {}, CITIES, "1e-6", "at least 3 parties"),
        (3, {"min_parties": 2}, CITIES, "1e-6", "at least 3 parties"),
        (4, {"colluding": 2}, CITIES, "1e-6", "more honest parties"),
        (3, {}, CITIES, "0", "private"),
        (3, {}, CITIES, "1e-14", "too small"),
        (3, {}, "SELECT ward, COUNT(*) FROM visits GROUP BY ward", "1e-6", "private keys"),
        (3, {}, "SELECT city, STDDEV(bill) FROM visits GROUP BY city", "1e-6", "too fine"),
        (3, {}, "SELECT city, MEDIAN(bill) FROM visits GROUP BY city", "1e-6", "COUNT, SUM, AVG"),
        (3, {"parties_per_person": 2}, "SELECT city, COUNT(DISTINCT person) FROM visits GROUP BY city", "1e-6", "once"),
    ],
)
def test_what_cannot_be_computed_is_refused_at_no_cost(
    count: int, changed: dict[str, Any], sql: str, delta: str, says: str
) -> None:
    asked, members = federation((FRAMES * 2)[:count], **changed)
    with pytest.raises(QueryRefused, match=says):
        asked.ask(sql, epsilon=1, delta=delta)
    assert spent(members) == [0] * count


def test_a_budget_without_delta_covers_no_private_keys() -> None:
    agreed = agreement(3, tables=TABLES)
    members = parties(agreed, FRAMES)
    with pytest.raises(OverBudget):
        coordinator(agreed, members).ask(CITIES, epsilon=1, delta="1e-6")
    assert spent(members) == [0] * 3


def test_people_in_several_parties_have_a_smaller_part_of_epsilon_and_delta() -> None:
    plans = [_planned(agreement(3, tables=TABLES, parties_per_person=k)) for k in (1, 2)]
    one, two = (plan.program for plan in plans)
    assert one is not None
    assert two is not None
    assert two.scales[0] == 2 * one.scales[0]
    assert two.limit > 2 * one.limit
    assert two.padding.scale == 2 * one.padding.scale
    assert plans[0].cost == plans[1].cost == approximate(1, Fraction(1, 10**6))


def _planned(agreed: Agreement) -> Any:
    catalog = agreed.catalog()
    question = PartiesQuestion.new(CITIES, agreement=agreed.digest(catalog), epsilon="1", delta="1e-6")
    return plan_question(agreed, catalog, question)


class Breaking(LocalChannel):
    """A channel whose party stops, or whose coordinator changes a message, after some frames."""

    def compute(self, *given: Any) -> Any:
        stream, frames = super().compute(*given), iter(range(self.after))  # type: ignore[attr-defined]
        send, receive = stream.send, stream.receive

        def changed(frame: bytes) -> None:
            if next(frames, None) is None:
                parts = split_frame(frame, 2)
                frame = joined_frame([parts[1], parts[0]])
            send(frame)

        def gone() -> Any:
            if next(frames, None) is None:
                raise PartyFailed("gone")
            return receive()

        if self.lies:  # type: ignore[attr-defined]
            stream.send = changed  # type: ignore[method-assign]
        else:
            stream.receive = gone  # type: ignore[method-assign]
        return stream


@pytest.mark.parametrize(("after", "lies"), [(0, False), (1, False), (20, False), (5, True)])
def test_a_party_that_stops_or_a_changed_message_ends_the_question_and_all_have_charged(after: int, lies: bool) -> None:
    asked, members = federation(FRAMES)
    broken = Breaking(party=members["p001"], analyst="ann")
    object.__setattr__(broken, "after", after)
    object.__setattr__(broken, "lies", lies)
    with pytest.raises(PartyFailed, match="p001 did not contribute"):
        replace(asked, channels={**asked.channels, "p001": broken}).ask(CITIES, epsilon=5, delta="1e-6")
    assert spent(members) == [5] * 3
    for party in members.values():
        party.ledger.verify()


def test_a_question_is_computed_once_and_only_as_planned() -> None:
    asked, members = federation(FRAMES)
    party = members["p000"]
    catalog = asked.agreement.catalog()

    def joined(sql: str, delta: str) -> tuple[str, list[Any]]:
        question = PartiesQuestion.new(sql, agreement=asked.agreement.digest(catalog), epsilon="1", delta=delta)
        return question.digest(), [each.join(question, analyst="ann") for each in members.values()]

    digest, said = joined(CITIES, "1e-6")
    with pytest.raises(QueryRefused, match="together"):
        party.contribute(digest, said, analyst="ann")
    with pytest.raises(QueryRefused, match="no open question"):
        party.compute(digest, said, lambda frame: frame, analyst="ann")
    with pytest.raises(QueryRefused, match="by contributions"):
        party.compute(*joined("SELECT COUNT(*) FROM visits", "0"), lambda frame: frame, analyst="ann")
    assert spent(members) == [0] * 3


def test_a_field_that_only_a_later_version_knows_does_not_make_another_parties_file() -> None:
    class Later(Agreement):
        later: int = 3

    agreed = agreement(3)
    document = {"later": 3, **agreed.model_dump(mode="json")}
    document["tables"] = {name: table.model_dump(exclude={"data"}) for name, table in agreed.tables.items()}
    catalog = agreed.catalog()
    assert Later.model_validate(document).digest(catalog) == agreed.digest(catalog)
    assert Later.model_validate(document | {"later": 4}).digest(catalog) != agreed.digest(catalog)
