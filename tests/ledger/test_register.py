"""The register: what left about the people of a data set is in the hash chain, and `ledger show` lists it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato
from sfumato.cli import main
from sfumato.data.atomic import path_digest
from sfumato.dp.loss import approximate, concentrated, pure
from sfumato.errors import BadParameter, LedgerBroken, WriteFailed
from sfumato.ledger import Charge, Ledger
from sfumato.ledger.charge import charge_run
from sfumato.ledger.entries import Entry
from sfumato.ledger.register import NOTHING_REGISTERED, ReleaseRecord, recorder, register
from sfumato.release.public_folder import paid, public_folder

DOCUMENT = """
sfumato: 1
dataset: hospital
ledger: ledger.db
person: row
tables:
  patients:
    data: patients.csv
    columns: {age: {role: quasi, kind: number}}
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "ledger.db")
    book.set_cap(pure(10), dataset="hospital")
    book.set_cap(pure(10), dataset="other")
    return book


def charged(ledger: Ledger, name: str = "tables") -> int:
    run = Charge.of_run(pure(1), unit="row", name=name, public={})
    return charge_run(run, ledger=ledger, dataset="hospital").entry


def leave(ledger: Ledger, folder: Path, entry: int, *, broken: bool = False) -> None:
    record = recorder(
        ledger=ledger, dataset="hospital", kind="tables", name=folder.name, plan={"rho": 1}, charges=[entry],
        verdicts=[{"model": "differential-privacy", "state": "holds"}], why="the yearly report",
    )  # fmt: skip
    with public_folder(folder, promise=True, marker="tables.json", record=record) as public:
        public.text("data.csv", paid("a,b\n"))
        public.json("tables.json", {"method": paid("topdown")})
        if broken:
            raise OSError("the disk is full")


def test_what_left_is_listed_with_its_fingerprint_plan_verdicts_and_purpose(ledger: Ledger, tmp_path: Path) -> None:
    entry = charged(ledger)
    leave(ledger, tmp_path / "yearly", entry)
    [line] = register(ledger, dataset="hospital")
    digests = {name: hashlib.sha256((tmp_path / "yearly" / name).read_bytes()).hexdigest()
               for name in ("data.csv", "tables.json")}  # fmt: skip
    listed = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    assert line.sha256 == hashlib.sha256(listed.encode()).hexdigest() == path_digest(tmp_path / "yearly")
    assert line.plan == hashlib.sha256(b'{"rho": 1}').hexdigest()
    assert (line.kind, line.who, line.unit, line.loss) == ("tables", "owner", "row", pure(1))
    assert (line.verdicts, line.why) == (("differential-privacy: holds",), "the yearly report")
    assert register(ledger, dataset="other") == ()
    ledger.verify()


def test_a_run_that_was_charged_and_never_written_says_so(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(WriteFailed):
        leave(ledger, tmp_path / "yearly", charged(ledger), broken=True)
    [line] = register(ledger)
    assert (line.state, line.kind, line.loss) == (NOTHING_REGISTERED, "tables", pure(1))
    assert not (tmp_path / "yearly").exists()


def test_answers_are_summed_up_by_analyst(ledger: Ledger) -> None:
    for analyst, asked in (("ana", 3), ("bob", 1)):
        for number in range(asked):
            charge = Charge(loss=pure("1/2"), unit="row", what="SELECT ...", key=f"{analyst} {number}")
            ledger.charge(charge, dataset="hospital", analyst=analyst)
    found = {line.who: (line.kind, line.answers, line.loss) for line in register(ledger)}
    assert found == {"ana": ("answers", 3, pure("3/2")), "bob": ("answers", 1, pure("1/2"))}


def test_records_are_part_of_the_chain_and_name_charges_of_their_data_set(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = ReleaseRecord(kind="model", name="m", sha256="0" * 64, plan="1" * 64)
    with pytest.raises(BadParameter, match="not a charge"):
        ledger.register(replace(record, charges=(1,)), dataset="hospital", by="owner")
    with pytest.raises(BadParameter, match="not a charge"):
        ledger.register(replace(record, charges=(charged(ledger),)), dataset="other", by="owner")
    entry = ledger.register(record, dataset="hospital", by="owner")
    assert ReleaseRecord.from_text(entry.about) == record
    ledger.verify()
    whole = Ledger.entries

    def forged(self: Ledger) -> list[Entry]:
        return [replace(one, about=one.about.replace("model", "table")) for one in whole(self)]

    monkeypatch.setattr(Ledger, "entries", forged)
    with pytest.raises(LedgerBroken):
        ledger.verify()


def test_the_command_lists_what_left_about_the_people_of_a_document(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(ledger, tmp_path / "yearly", charged(ledger))
    charged(ledger, "learn naive-bayes")
    (tmp_path / "hospital.yaml").write_text(DOCUMENT)
    assert main(["ledger", "show", str(tmp_path / "hospital.yaml"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [line["kind"] for line in shown["register"]] == ["tables", "learn naive-bayes"]
    assert [line["state"] for line in shown["register"]] == ["left", NOTHING_REGISTERED]
    assert {account["dataset"] for account in shown["accounts"]} == {"hospital"}
    assert {account["unit"] for account in shown["accounts"]} == {"row"}
    assert sfumato.ledger_overview(tmp_path / "hospital.yaml").to_dict() == shown
    assert main(["ledger", "show", str(tmp_path / "ledger.db")]) == 0
    text = capsys.readouterr().out
    assert "tables yearly; left; by owner; ε = 1 for one row" in text
    assert "learn naive-bayes; charged, nothing registered" in text
    assert sfumato.ledger_overview(tmp_path / "ledger.db").to_frame().height == 2


def test_a_budget_where_one_person_is_replaced_by_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ledger keeps half of it, and the same share of delta as reserve; the entry says what was stated."""
    place = str(tmp_path / "ledger.db")
    words = ["ledger", "cap", place, "--dataset", "people", "--neighbours", "replace", "--epsilon", "1", "--json"]
    assert main([*words, "--delta", "1e-6", "--composition", "gaussian", "--reserve-delta", "5e-7"]) == 0
    entry = json.loads(capsys.readouterr().out)
    assert "where one person is replaced by another" in entry["about"]
    cap = Ledger.open(place).cap(dataset="people")
    assert cap is not None
    assert (cap.loss.size, cap.reserved) == (Fraction(1, 2), Fraction(1, 2))
    assert cap.loss.for_group(2) <= approximate(1, "1e-6")


def test_a_budget_that_bounds_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cap = ["ledger", "cap", str(tmp_path / "l.db"), "--dataset", "d", "--epsilon"]
    assert main([*cap, "1e12"]) == 2
    assert "at most 1e+09" in capsys.readouterr().err
    assert main([*cap, "1000000000"]) == 0


SUMMARY = """
sfumato: 1
dataset: visits
data: visits.csv
unit: row
ledger: ledger.db
columns: {pay: {role: quasi, domain: {low: 0, high: 100}}, job: {role: quasi, domain: {values: [a, b]}}}
statistics: [{of: pay, by: [job]}]
budget: {rho: 1/2}
"""
MODEL = """
sfumato: 1
dataset: people
data: visits.csv
unit: row
ledger: ledger.db
columns: {pay: {role: quasi, domain: {low: 0, high: 100}}, job: {role: quasi, domain: {values: [a, b]}}}
learn: naive-bayes
features: [pay]
target: job
epsilon: 1
delta: 1e-6
"""


def test_releases_of_every_kind_are_recorded_when_they_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{n},{'ab'[n % 2]}\n" for n in range(100))
    (tmp_path / "visits.csv").write_text("pay,job\n" + rows)
    book = Ledger.open(tmp_path / "ledger.db")
    book.set_cap(concentrated(2), dataset="visits")
    book.set_cap(concentrated(2), dataset="people")
    (tmp_path / "tables.yaml").write_text(SUMMARY)
    (tmp_path / "model.yaml").write_text(MODEL)
    assert main(["protect", str(tmp_path / "tables.yaml"), "--out", str(tmp_path / "yearly"), "--json"]) == 0
    sfumato.learn(tmp_path / "model.yaml", out=tmp_path / "model.json", attacks=None)
    tables, model = register(book)
    assert (tables.kind, tables.name, tables.state, tables.loss) == ("tables", "yearly", "left", concentrated("1/2"))
    assert tables.sha256 == path_digest(tmp_path / "yearly")
    assert tables.verdicts == ("differential-privacy: holds",)
    assert (model.kind, model.name, model.dataset) == ("model", "model.json", "people")
    assert model.sha256 == hashlib.sha256((tmp_path / "model.json").read_bytes()).hexdigest()
    assert "ledger.db" not in (tmp_path / "model.json").read_text()
    assert not [file for file in (tmp_path / "yearly").iterdir() if "ledger.db" in file.read_text()]
    book.verify()
