"""Parallel composition: charges to disjoint parts, against a sum for every person, exact losses and mutants."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from itertools import product
from math import exp, log
from pathlib import Path

import polars as pl
import pytest

import sfumato
from sfumato.dp.curve import Curve
from sfumato.dp.loss import PrivacyLoss, approximate, bounded_range, concentrated, pure
from sfumato.errors import BadParameter, InvalidRecipe, LedgerBroken, OverBudget, UnitsDiffer
from sfumato.ledger import parts
from sfumato.ledger.accounts import Period
from sfumato.ledger.charge import Charge
from sfumato.ledger.exact_budget import Amount, cost_amount
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.parts import DataPart
from sfumato.proof import sealed, verify_certificate
from sfumato.query import file_contents
from sfumato.query.plan.parts import part_read
from sfumato.query.session import Session
from sfumato.query.sql.parse import parse_query
from sfumato.secret import Permit

EAST, WEST = DataPart(partition="ward", name="east"), DataPart(partition="ward", name="west")
YOUNG = DataPart(partition="age", name="young")
DOCUMENT = """
sfumato: 1
dataset: hospital
ledger: ledger.db
person: row
answering: {parts: [ward, floor]}
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, west, "it's"]}}
      floor: {kind: integer, domain: {values: [0, 1]}}
      age: {kind: integer, domain: {low: 0, high: 99}}
"""


def asked(ledger: Ledger, loss: PrivacyLoss, part: DataPart | None, *, analyst: str = "ana", what: str = "") -> None:
    charge = Charge(loss=loss, unit="row", what=what or f"{part} {loss}", part=part)
    ledger.charge(charge, dataset="hospital", analyst=analyst)


def book(epsilon: float | str = 1, delta: str = "") -> Ledger:
    ledger = Ledger.unkept()
    ledger.set_cap(approximate(epsilon, delta) if delta else pure(epsilon), dataset="hospital")
    return ledger


def spent(ledger: Ledger, analyst: str = "") -> Fraction:
    return ledger.balance(dataset="hospital", analyst=analyst).spent.size


@pytest.fixture
def session(tmp_path: Path) -> Session:
    rows = [(ward, age % 2, age) for ward in ("east", "west", "it's", "") for age in range(30)]
    pl.DataFrame(rows, schema=["ward", "floor", "age"], orient="row").write_csv(tmp_path / "patients.csv")
    (tmp_path / "hospital.yaml").write_text(DOCUMENT)
    Ledger.open(tmp_path / "ledger.db").set_cap(pure(1), dataset="hospital")
    return sfumato.session(tmp_path / "hospital.yaml")


# --- the ledger -------------------------------------------------------------------------------------------------


def five(amount: Amount) -> list[Fraction]:
    """The numbers that accounts compare; an unknown one is above all others."""
    unknown = Fraction(10**30)
    squared = unknown if amount.curve.gaussian is None else amount.curve.gaussian
    rest = amount.delta - amount.curve.delta
    return [amount.epsilon, amount.curve.delta, rest, amount.curve.rho, squared]


def some_losses(draw: random.Random) -> Iterator[PrivacyLoss]:
    while True:
        size, delta = Fraction(draw.randrange(1, 40), 100), Fraction(draw.randrange(1, 9), 10**7)
        yield draw.choice([
            pure(size), approximate(size, delta), concentrated(size), concentrated(size, delta), bounded_range(size),
            PrivacyLoss(measure=pure(1).measure, size=size, delta=delta,
                        curve=Curve(rho=size**2, gaussian=size**2, delta=Fraction(0))),
        ])  # fmt: skip


def uncovered(seed: int) -> int:
    """How many persons are charged more than an account says, over random charges to parts of two partitions."""
    draw, ledger = random.Random(seed), book(10**6, "0.5")
    losses, places = some_losses(draw), [None, EAST, WEST, YOUNG, DataPart(partition="age", name="old")]
    persons = {(ward, age): Amount() for ward in ("east", "west", "") for age in ("young", "old", "")}
    missed = 0
    for number in range(25):
        part, loss = draw.choice(places), next(losses)
        try:
            asked(ledger, loss, part, what=str(number))
        except OverBudget:  # a loss in rho has no epsilon for the sums
            continue
        for (ward, age), amount in persons.items():
            if part is None or part.name in (ward, age):
                persons[ward, age] = amount + cost_amount(loss)
        total = ledger_amount(ledger)
        missed += sum(any(own > all_ for own, all_ in zip(five(p), five(total), strict=True)) for p in persons.values())
    ledger.verify()
    return missed


def ledger_amount(ledger: Ledger) -> Amount:
    """The running total of the data set, as the last entry has it."""
    from sfumato.ledger.accounts import amount_of

    totals = [entry.totals for entry in ledger.entries() if entry.kind == "spend"]
    return amount_of(json.loads(totals[-1])["accounts"][0]) if totals else Amount()


@pytest.mark.parametrize("seed", range(20))
def test_no_person_is_charged_more_than_the_data_set(seed: int) -> None:
    assert uncovered(seed) == 0


def by_number(one: Amount, other: Amount) -> Amount:
    """Mutant: the largest of all delta and the largest of the curves, each by itself."""
    found = REAL(one, other)
    return Amount(epsilon=found.epsilon, delta=max(one.delta, other.delta), curve=found.curve)


def the_last(one: Amount, other: Amount) -> Amount:
    """Mutant: the part that was asked last counts."""
    return other


def without_squares(one: Amount, other: Amount) -> Amount:
    """Mutant: the Gaussian parameter is not followed."""
    found = REAL(one, other)
    return Amount(epsilon=found.epsilon, delta=found.delta, curve=Curve(rho=found.curve.rho, gaussian=Fraction(0)))


REAL = parts.larger


@pytest.mark.parametrize("mutant", [by_number, the_last, without_squares])
def test_a_maximum_that_forgets_something_is_noticed(
    mutant: Callable[[Amount, Amount], Amount], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "larger", mutant)
    assert any(uncovered(seed) for seed in range(20))


def test_disjoint_questions_cost_the_largest_part() -> None:
    ledger = book(1)
    for part, size, total in ((EAST, "0.5", "0.5"), (WEST, "0.3", "0.5"), (WEST, "0.4", "0.7"), (None, "0.3", "1")):
        asked(ledger, pure(size), part)
        assert spent(ledger) == spent(ledger, "ana") == Fraction(total)
    asked(ledger, pure("0.2"), EAST)  # 0.5 + 0.2 is not above 0.7
    for part in (EAST, WEST, None):
        with pytest.raises(OverBudget):
            asked(ledger, pure("0.001"), part)
    assert ledger.parts(dataset="hospital") == {EAST: pure("0.7"), WEST: pure("0.7")}
    ledger.verify()


def test_parts_of_two_partitions_add_up() -> None:
    ledger = book(1)
    asked(ledger, pure("0.5"), EAST)
    asked(ledger, pure("0.25"), YOUNG)
    assert spent(ledger) == Fraction(3, 4), "somebody in the east is young"


def test_every_account_has_parts_of_its_own() -> None:
    ledger = book(1)
    ledger.set_cap(pure("0.5"), dataset="hospital", analyst="ben")
    asked(ledger, pure("0.5"), EAST)
    asked(ledger, pure("0.5"), WEST, analyst="ben")
    asked(ledger, pure("0.5"), EAST, analyst="ben")
    assert (spent(ledger), spent(ledger, "ana"), spent(ledger, "ben")) == (1, Fraction(1, 2), Fraction(1, 2))
    with pytest.raises(OverBudget):
        asked(ledger, pure("0.01"), WEST, analyst="ben")


def test_a_cap_on_single_questions_is_about_the_whole_question() -> None:
    ledger = book(1)
    ledger.set_cap(pure("0.3"), dataset="hospital", period=Period.QUESTION)
    asked(ledger, pure("0.3"), EAST, what="a")
    asked(ledger, pure("0.3"), EAST, what="b")
    with pytest.raises(OverBudget):
        asked(ledger, pure("0.4"), WEST)  # would add 0.1 to the largest part only


def test_under_a_cap_by_month_the_whole_is_charged() -> None:
    ledger = book(1)
    ledger.set_cap(pure("0.5"), dataset="hospital", period=Period.MONTH)
    asked(ledger, pure("0.25"), EAST)
    asked(ledger, pure("0.25"), WEST)
    assert spent(ledger) == Fraction(1, 2)
    with pytest.raises(OverBudget):
        asked(ledger, pure("0.1"), WEST)
    other = book(1)
    asked(other, pure("0.25"), EAST)
    with pytest.raises(BadParameter, match="month"):
        other.set_cap(pure("0.5"), dataset="hospital", period=Period.MONTH)


def test_a_person_with_several_rows_has_no_part() -> None:
    with pytest.raises(UnitsDiffer):
        Charge(loss=pure(1), unit="person", what="q", part=EAST)


def test_verification_computes_parts_again() -> None:
    ledger = book(1)
    asked(ledger, pure("0.5"), EAST)
    asked(ledger, pure("0.5"), WEST)
    ledger.verify()
    with ledger.store.write() as transaction:
        transaction.query("DELETE FROM sfumato_ledger_index WHERE name = ?", WEST.index[2])
    with pytest.raises(LedgerBroken):
        ledger.verify()


def test_the_loss_of_an_adaptive_strategy_is_that_of_the_account() -> None:
    """A person in the east or not; randomized answers of the east, the west and the whole, each chosen by the last
    one. The exact loss over all transcripts is at most the account's, and reaches it; the sum is more."""
    halves = Fraction(1, 2)

    def choices(history: tuple[int, ...]) -> tuple[DataPart | None, Fraction] | None:
        if len(history) == 4:
            return None
        last = history[-1] if history else 0
        place = [EAST, WEST, None][(len(history) + last) % 3]
        return place, halves if last else Fraction(1, 4)

    largest, sums, charged = 0.0, 0.0, 0.0
    for transcript in product((0, 1), repeat=4):
        ledger, chances, total = book(100), [1.0, 1.0], Fraction(0)
        for place in range(4):
            chosen = choices(transcript[:place])
            assert chosen is not None
            part, size = chosen
            asked(ledger, pure(size), part, what=str(place))
            total += size
            truthful = exp(float(size)) / (1 + exp(float(size)))
            for world in (0, 1):  # the person's bit is 1, or the person is not there
                bit = world if part in (None, EAST) else 0
                chances[world] *= truthful if transcript[place] == bit else 1 - truthful
        loss = abs(log(chances[0] / chances[1]))
        assert loss <= float(spent(ledger)) + 1e-12
        largest, charged = max(largest, loss), max(charged, float(spent(ledger)))
        sums = max(sums, float(total))
    assert largest == pytest.approx(1.25)
    assert largest <= charged < sums


# --- questions --------------------------------------------------------------------------------------------------


def test_questions_to_two_wards_cost_one(session: Session) -> None:
    east = session.ask("SELECT COUNT(*) FROM patients WHERE ward = 'east' AND age > 3", epsilon="0.5")
    west = session.ask(
        "WITH w AS (SELECT age AS a FROM patients WHERE 'west' = ward) SELECT AVG(a) FROM w", epsilon="0.5"
    )
    assert spent(session.ledger) == Fraction(1, 2)
    assert any("part `ward` = east" in note for note in east.explanation.notes)
    session.ask("SELECT COUNT(*) FROM patients", epsilon="0.5")
    with pytest.raises(OverBudget):
        session.ask("SELECT COUNT(*) FROM patients WHERE ward = 'west'", epsilon="0.01")
    entries = [entry.to_dict() for entry in session.ledger.entries()]
    for answer in (east, west):
        assert answer.certificate is not None
        found = verify_certificate(answer.certificate, entries)
        assert (found.holds, found.ledger, "P1" in found.rules) == (True, "holds", True)
    session.ledger.verify()


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("SELECT COUNT(*) FROM patients WHERE ward IN ('east')", ("ward", "east")),
        ("SELECT ward, SUM(age) FROM patients WHERE ward = 'east' GROUP BY ward", ("ward", "east")),
        ("SELECT COUNT(*) FROM (SELECT floor AS f FROM patients) WHERE f = 1", ("floor", 1)),
        ("SELECT COUNT(*) FROM patients WHERE floor = 1 AND ward = 'west'", ("ward", "west")),
        ("SELECT COUNT(*) FROM patients WHERE ward = 'it''s'", ("ward", "it's")),
        ("SELECT COUNT(*) FROM patients", None),
        ("SELECT COUNT(*) FROM patients WHERE floor = 1.0 AND floor = 1", ("floor", 1)),
        ("SELECT COUNT(*) FROM patients WHERE floor = 2", None),
        ("SELECT COUNT(*) FROM patients WHERE ward = 'East'", None),
        ("SELECT COUNT(*) FROM patients WHERE CAST(floor AS DOUBLE) = 1", None),
        ("SELECT COUNT(*) FROM patients WHERE CAST(floor AS VARCHAR) = '1'", None),
        ("SELECT COUNT(*) FROM patients WHERE ward = 'east' OR age = 3", None),
        ("SELECT COUNT(*) FROM patients WHERE NOT ward = 'east'", None),
        ("SELECT COUNT(*) FROM patients WHERE ward <> 'east'", None),
        ("SELECT COUNT(*) FROM patients WHERE UPPER(ward) = 'EAST'", None),
        ("SELECT COUNT(*) FROM (SELECT UPPER(ward) AS ward FROM patients) WHERE ward = 'EAST'", None),
        ("SELECT COUNT(*) FROM (SELECT age AS floor FROM patients) WHERE floor = 1", None),
        ("SELECT SUM(CASE WHEN ward = 'east' THEN 1 ELSE 0 END) FROM patients", None),
        ("SELECT COUNT(*) FROM (SELECT age FROM patients WHERE floor = 1 UNION ALL SELECT age FROM patients)", None),
        ("SELECT COUNT(*) FROM (SELECT age FROM patients WHERE ward = 'east' UNION ALL "
         "SELECT age FROM patients WHERE ward = 'west')", None),
    ],
)  # fmt: skip
def test_the_part_of_a_question(session: Session, sql: str, part: tuple[str, object] | None) -> None:
    assert part_read([parse_query(sql, session.catalog).rows], session.catalog.part_columns) == part


def test_rows_outside_of_the_part_change_nothing(session: Session, tmp_path: Path) -> None:
    """The rows that are measured are the same with and without a person of another part; with one of the part not."""
    questions = [
        "SELECT COUNT(*) FROM patients WHERE ward = 'east'",
        "SELECT SUM(age) FROM patients WHERE age > 3 AND ward = 'east'",
        "SELECT AVG(a) FROM (SELECT age AS a, ward AS w FROM patients) WHERE w = 'east'",
    ]

    def read(more: str) -> list[object]:
        folder = tmp_path / f"with {more or 'nobody'}"
        folder.mkdir()
        text = (tmp_path / "patients.csv").read_text()
        (folder / "patients.csv").write_text(text + (f"{more},1,50\n" if more else ""))
        (folder / "hospital.yaml").write_text(DOCUMENT)
        own = sfumato.session(folder / "hospital.yaml")
        plans = [parse_query(sql, own.catalog) for sql in questions]
        assert all(part_read([plan.rows], own.catalog.part_columns) == ("ward", "east") for plan in plans)
        return [sorted(map(str, own.running.run(plan.rows.query()).open(Permit("test")))) for plan in plans]

    nobody = read("")
    assert read("west") == nobody
    assert read("it's") == nobody
    assert all(one != other for one, other in zip(read("east"), nobody, strict=True))


def test_parts_of_changed_data_are_others(session: Session, tmp_path: Path) -> None:
    session.ask("SELECT COUNT(*) FROM patients WHERE ward = 'east'", epsilon="0.25")
    file = tmp_path / "patients.csv"
    file.write_text(file.read_text() + "west,1,50\n")  # somebody may have moved from the east to the west
    sfumato.session(tmp_path / "hospital.yaml").ask("SELECT COUNT(*) FROM patients WHERE ward = 'west'", epsilon="0.25")
    assert spent(session.ledger) == Fraction(1, 2)


ONE = ["1.0", "1.00000000000000000001", "0.99999999999999999999", "1e0", "CAST(1 AS DOUBLE)"]


@pytest.mark.parametrize("again", ONE)
def test_two_spellings_of_a_value_are_no_two_parts(session: Session, again: str) -> None:
    session.ask("SELECT COUNT(*) FROM patients WHERE floor = 1", epsilon="0.75")
    other = f"SELECT COUNT(*) FROM patients WHERE floor = {again} AND age < 90"
    with pytest.raises(OverBudget):
        session.ask(other, epsilon="0.75")
    assert spent(session.ledger) == Fraction(3, 4)
    session.ask(other, epsilon="0.25")
    assert spent(session.ledger) == 1, "charged to the same part, or to the whole"
    session.ledger.verify()


@pytest.mark.parametrize("again", [f"{2**53}.00000000000000001", f"{2**53}.5", f"CAST({2**53} AS DOUBLE)"])
def test_a_large_whole_number_and_its_float_are_no_two_parts(tmp_path: Path, again: str) -> None:
    large = 2**53 + 1
    document = DOCUMENT.replace("values: [0, 1]", f"values: [{large}, {large - 1}]")
    (tmp_path / "hospital.yaml").write_text(document)
    (tmp_path / "patients.csv").write_text(f"ward,floor,age\neast,{large},3\n")
    Ledger.open(tmp_path / "ledger.db").set_cap(pure(1), dataset="hospital")
    session = sfumato.session(tmp_path / "hospital.yaml")
    session.ask(f"SELECT COUNT(*) FROM patients WHERE floor = {large}", epsilon="0.75")
    with pytest.raises(OverBudget):
        session.ask(f"SELECT COUNT(*) FROM patients WHERE floor = {again}", epsilon="0.75")
    session.ask(f"SELECT COUNT(*) FROM patients WHERE floor = {large - 1}", epsilon="0.75")
    assert spent(session.ledger) == Fraction(3, 4), "compared as whole numbers they are two"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("floor: {kind: integer, domain: {values: [0, 1]}}", "floor: {kind: category, domain: {values: ['0', '1']}}"),
        ("values: [0, 1]", "values: [0, 1, 2]"),
        ("data: patients.csv", "data: {file: patients.csv, missing: [west]}"),
    ],
)
def test_parts_that_are_read_in_another_way_are_others(session: Session, tmp_path: Path, old: str, new: str) -> None:
    question = "SELECT COUNT(*) FROM patients WHERE floor = 1"
    session.ask(question, epsilon="0.75")
    assert old in DOCUMENT
    document = tmp_path / "hospital.yaml"
    document.write_text(DOCUMENT.replace(old, new))
    other = sfumato.session(document)
    value = "'0'" if "category" in new else "0"
    with pytest.raises(OverBudget):
        other.ask(question.replace("= 1", f"= {value}"), epsilon="0.75")
    other.ask(question.replace("= 1", f"= {value}"), epsilon="0.25")
    assert spent(session.ledger) == 1


def exchanged(file: Path) -> None:
    """East and west change places; size and modification time stay."""
    facts, text = file.stat(), file.read_text()
    file.write_text(text.replace("east", "____").replace("west", "east").replace("____", "west"))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)
    assert file.read_text() != text


def test_changed_data_of_the_same_size_and_time_are_another_partition(session: Session, tmp_path: Path) -> None:
    east, west = (f"SELECT COUNT(*) FROM patients WHERE ward = '{ward}'" for ward in ("east", "west"))
    session.ask(east, epsilon="0.75")
    exchanged(tmp_path / "patients.csv")
    with pytest.raises(OverBudget):
        sfumato.session(tmp_path / "hospital.yaml").ask(west, epsilon="0.75")
    with pytest.raises(OverBudget):
        session.ask(west, epsilon="0.75")  # opened before the change: which people it reads is not known
    assert not sfumato.session(tmp_path / "hospital.yaml").ask(east, epsilon="0.25").cached
    assert spent(session.ledger) == 1


def test_the_contents_of_a_file_are_read_again_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file.csv"
    file.write_text("east,west")
    monkeypatch.setattr(file_contents, "_SETTLED", -(10**18))  # as if the last change were long ago
    first = file_contents.contents_digest(file)
    assert file_contents._KNOWN[file.resolve()][1] == first == file_contents.contents_digest(file)
    monkeypatch.setitem(file_contents._KNOWN, file.resolve(), (file_contents._KNOWN[file.resolve()][0], "kept"))
    assert file_contents.contents_digest(file) == "kept", "the file is not read twice"
    aside = file.with_name("aside.csv")
    aside.write_text("west,east")
    facts = file.stat()
    os.utime(aside, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    aside.replace(file)  # another inode
    assert file_contents.contents_digest(file) not in ("kept", first)


def test_the_same_data_after_a_touch_are_the_same_partition(session: Session, tmp_path: Path) -> None:
    session.ask("SELECT COUNT(*) FROM patients WHERE ward = 'east'", epsilon="0.75")
    os.utime(tmp_path / "patients.csv", ns=(1, 1))
    sfumato.session(tmp_path / "hospital.yaml").ask("SELECT COUNT(*) FROM patients WHERE ward = 'west'", epsilon="0.75")
    assert spent(session.ledger) == Fraction(3, 4)


def test_data_that_are_no_file_have_no_parts(session: Session, tmp_path: Path) -> None:
    frame = pl.read_csv(tmp_path / "patients.csv")
    other = sfumato.session(tmp_path / "hospital.yaml", {"patients": frame})
    for ward in ("east", "west"):
        other.ask(f"SELECT COUNT(*) FROM patients WHERE ward = '{ward}'", epsilon="0.25")
    assert spent(session.ledger) == Fraction(1, 2)


def test_a_question_of_several_parts_is_charged_to_the_whole(session: Session) -> None:
    both = " UNION ALL ".join(f"SELECT COUNT(*) FROM patients WHERE ward = '{ward}'" for ward in ("east", "west"))
    answer = session.ask(both, epsilon="0.5")
    session.ask("SELECT SUM(age) FROM patients WHERE ward = 'east'", epsilon="0.25")
    assert spent(session.ledger) == Fraction(3, 4)
    assert not any("part `ward`" in note for note in answer.explanation.notes)


def test_a_certificate_of_a_part_that_reads_more_is_refused(session: Session) -> None:
    east = session.ask("SELECT COUNT(*) FROM patients WHERE ward = 'east'", epsilon="0.25").certificate
    whole = session.ask("SELECT COUNT(*) FROM patients WHERE age > 3", epsilon="0.25").certificate
    assert east is not None
    assert whole is not None
    entries = [entry.to_dict() for entry in session.ledger.entries()]

    def refused(change: Callable[[dict[str, object]], object], of: object = east) -> str:
        forged = deepcopy(of)
        assert isinstance(forged, dict)
        change(forged["charges"][0])
        return verify_certificate(sealed(forged), entries).node

    node = "certificate.charges[0].part"
    assert refused(lambda charge: charge.update(part=east["charges"][0]["part"]), whole) == node
    assert refused(lambda charge: charge["part"].update(name="west")) == node  # type: ignore[attr-defined]
    assert refused(lambda charge: charge["plans"][0]["rows_from"].pop("demands")) == node  # type: ignore[index]
    assert refused(lambda charge: charge.pop("part")) == node, "the ledger knows the part"
    assert refused(lambda charge: charge["part"].update(partition="age category 0")) == node  # type: ignore[attr-defined]


def test_a_certificate_with_another_spelling_of_a_part_is_refused(session: Session) -> None:
    """Without the ledger: the certificate alone shows that the part is no declared value in its one form."""
    certificate = session.ask("SELECT COUNT(*) FROM patients WHERE floor = 1", epsilon="0.25").certificate
    assert certificate is not None
    [charge] = certificate["charges"]
    assert charge["part"]["name"] == "1"
    assert charge["part"]["partition"].startswith("floor integer ")
    demand = {"kind": "integer", "value": "1", "values": ["0", "1"]}
    assert charge["plans"][0]["rows_from"]["demands"] == {"floor": demand}

    def holds(name: object, **demanded: object) -> bool:
        forged = deepcopy(certificate)
        part, tree = forged["charges"][0]["part"], forged["charges"][0]["plans"][0]["rows_from"]
        kind = demanded.get("kind", "integer")
        part.update(name=name, partition=part["partition"].replace("integer", str(kind)))
        tree["demands"]["floor"].update(value=name, **demanded)
        return verify_certificate(sealed(forged)).holds

    assert holds("1")
    assert holds("0")
    assert not holds("2"), "not declared"
    for written in ("1.0", "01", "+1", "1e0", " 1", "-0", "1.00000000000000000001", "１", 1, 1.0, True, None):
        assert not holds(written)
        assert not holds(written, values=["0", "1", written]), "declared in a form that the kind has not"
    assert not holds("1", values=["1", "1"])
    assert not holds("1", values=["1", "1.0"])
    assert holds("1.0", kind="category", values=["1", "1.0"])
    assert not holds("east", kind="category", values=["east", "East"])
    assert not holds("east", kind="category", values=["east", "west "])
    assert not holds("1.5", kind="number", values=["1.5"])
    assert not holds("1", values="1")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("person: row", "person: age", "several rows"),
        ("[ward, floor]", "[age]", "declared `values`"),
        ("[ward, floor]", "[nothing]", "not a column"),
        ("values: [0, 1]", "values: [0, 1, 1.0]", "whole number"),
        ("values: [0, 1]", "values: [-0.0, 1]", "whole number"),
        ("values: [0, 1]", "values: [false, 1]", "whole number"),
        ("values: [0, 1]", "values: ['0', 1]", "whole number"),
        ("values: [0, 1]", "values: [1, 1]", "differ"),
        ("values: [0, 1]", "values: [1, 9223372036854775808]", "64 bits"),
        ("[east, west,", "[1, 1.0,", "a text"),
        ("[east, west,", "[east, East,", "differ"),
        ("[east, west,", "[east, 'east ',", "blanks"),
        ("[east, west,", "[east, ｅａｓｔ,", "differ"),
        ("values: [0, 1]}}", "values: [0, 1]}, missing_codes: [1]}", "missing codes"),
        ("data: patients.csv", "data: postgresql://host/db?table=patients", "need a file"),
        ("parts: [ward, floor]", "policy: {rounding: {base: 5, smallest: 2}}, parts: [ward]", "no budget"),
    ],
)
def test_what_could_overlap_is_refused(old: str, new: str, message: str) -> None:
    from sfumato.dataset.document import Dataset

    with pytest.raises(InvalidRecipe, match=message):
        Dataset.parse(DOCUMENT.replace(old, new))


def test_the_owner_reads_what_each_part_was_charged(session: Session, tmp_path: Path) -> None:
    from sfumato.api.ledger import ledger_overview

    session.ask("SELECT COUNT(*) FROM patients WHERE ward = 'east'", epsilon="0.5")
    session.ask("SELECT COUNT(*) FROM patients WHERE ward = 'west'", epsilon="0.25")
    [whole] = [account for account in ledger_overview(tmp_path / "ledger.db").accounts if not account.analyst]
    assert "the largest part of ward counts: east ε = 0.5; west ε = 0.25." in whole.notes[0]
    assert whole.balance.spent == pure("0.5")
