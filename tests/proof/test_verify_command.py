"""`sfumato query --certificate` and `sfumato verify`: an answer, its certificate, and forged ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.cli import main
from sfumato.demos.private_hospital import patients
from sfumato.errors import BadParameter
from sfumato.proof import sealed, signed

METADATA = """\
sfumato: 1
dataset: hospital
ledger: ledger.db
person: row
tables:
  patients:
    data: patients.csv
    columns:
      ward: {kind: category, domain: {values: [east, north, south, west]}}
      age:  {kind: integer, domain: {low: 0, high: 99}}
      flu:  {kind: boolean}
"""
SQL = "SELECT ward, COUNT(*) AS n FROM patients WHERE age > 87 GROUP BY ward"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    patients(300).write_csv(tmp_path / "patients.csv")
    (tmp_path / "query.yaml").write_text(METADATA)
    assert main(["ledger", "cap", str(tmp_path / "query.yaml"), "--epsilon", "1"]) == 0
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str]:
    capsys.readouterr()
    return main([str(argument) for argument in arguments]), capsys.readouterr().out


def test_an_answer_is_verified_and_forged_certificates_are_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta, path = folder / "query.yaml", folder / "certificate.json"
    status, out = run(capsys, "query", meta, SQL, "--epsilon", "0.5", "--certificate", path, "--json")
    written = json.loads(path.read_text())
    assert status == 0
    assert json.loads(out)["certificate"] == written
    status, out = run(capsys, "verify", path, "--json")
    assert (status, json.loads(out)["holds"], json.loads(out)["ledger"]) == (0, True, "not checked")
    for ledger in (meta, folder / "ledger.db"):
        status, out = run(capsys, "verify", path, "--ledger", ledger, "--json")
        assert (status, json.loads(out)["ledger"]) == (0, "holds")
    (folder / "answer.json").write_text(json.dumps({"rows": [], "certificate": written}))
    assert run(capsys, "verify", folder / "answer.json")[0] == 0
    draw = written["charges"][0]["plans"][0]["draws"][0]
    draw["noise"]["scale"] = "97/50"
    path.write_text(json.dumps(written))
    status, out = run(capsys, "verify", path)
    assert status == 1
    assert "Refused at certificate.charges[0].plans[0].draws[0].loss" in out


def test_a_ledger_that_was_not_charged_does_not_verify(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = folder / "certificate.json", folder / "other.db"
    assert run(capsys, "query", folder / "query.yaml", SQL, "--epsilon", "1", "--certificate", path)[0] == 0
    assert run(capsys, "ledger", "cap", other, "--dataset", "hospital", "--epsilon", "1")[0] == 0
    found = sfumato.verify(path, ledger=other)
    assert not found.holds
    assert found.node == "certificate.charges[0].entry"
    assert run(capsys, "verify", path, "--ledger", other)[0] == 1


def test_bad_input_and_existing_files_cost_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta, path = folder / "query.yaml", folder / "certificate.json"
    assert run(capsys, "verify", folder / "none.json")[0] == 2
    path.write_text("no json")
    assert run(capsys, "verify", path)[0] == 2
    path.write_text("[1]")
    assert run(capsys, "verify", path)[0] == 2
    path.write_text("{}")
    assert run(capsys, "verify", path)[0] == 1
    assert run(capsys, "query", meta, SQL, "--epsilon", "1", "--certificate", path)[0] == 2
    assert run(capsys, "query", meta, "EXPLAIN " + SQL, "--epsilon", "1", "--certificate", folder / "x")[0] == 2
    assert run(capsys, "query", meta, SQL, "--epsilon", "1", "--certificate", path, "--force")[0] == 0


def test_a_certificate_holds_no_condition_key_or_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "certificate.json"
    _, out = run(capsys, "query", folder / "query.yaml", SQL, "--epsilon", "1", "--certificate", path, "--json")
    text = path.read_text()
    for secret in ("east", "north", "age", "87", "patients.csv", str(folder)):
        assert f'"{secret}' not in text
    assert {row["ward"]["value"] for row in json.loads(out)["rows"]} == {"east", "north", "south", "west"}


def test_hashes_do_not_tell_the_size_of_a_file(folder: Path) -> None:
    """The same question on the same file in two ledgers has different keys: they are salted."""
    keys = []
    for name in ("one", "two"):
        sfumato.set_budget(folder / f"{name}.db", epsilon=1, dataset="hospital")
        meta = folder / f"{name}.yaml"
        meta.write_text(METADATA.replace("ledger.db", f"{name}.db"))
        session = sfumato.session(meta)
        session.ask(SQL, epsilon=1)
        keys.append([entry.about for entry in session.ledger.entries() if entry.kind == "spend"])
    assert keys[0] != keys[1]


def test_a_signature_shows_who_made_a_certificate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta, path = folder / "query.yaml", folder / "certificate.json"
    assert run(capsys, "query", meta, SQL, "--epsilon", "0.5", "--certificate", path)[0] == 0
    key = run(capsys, "ledger", "key", meta)[1].strip()
    status, out = run(capsys, "verify", path, "--key", key, "--ledger", meta, "--json")
    assert (status, json.loads(out)["signed_by"]) == (0, key)
    written = json.loads(path.read_text())
    forged = signed({**written, "dataset": "another"}, bytes(32))
    unsigned = {name: value for name, value in written.items() if name != "signature"}
    moved = {**forged, "signature": written["signature"]}
    for document, expected in ((forged, "is by another key"), (unsigned, "is missing"), (moved, "does not hold")):
        path.write_text(json.dumps(document))
        status, out = run(capsys, "verify", path, "--key", key)
        assert status == 1
        assert f"certificate.signature: {expected}" in out
    path.write_text(json.dumps(unsigned))
    assert json.loads(run(capsys, "verify", path, "--json")[1])["signed_by"] == ""
    path.write_text(json.dumps(moved))
    assert run(capsys, "verify", path)[0] == 1


EXTRA: dict[str, Callable[[dict[str, Any]], Any]] = {
    "certificate": lambda c: c,
    "versions": lambda c: c["versions"],
    "charge": lambda c: c["charges"][0],
    "entry": lambda c: c["charges"][0]["entry"],
    "plan": lambda c: c["charges"][0]["plans"][0],
    "rows": lambda c: c["charges"][0]["plans"][0]["rows_from"],
    "draw": lambda c: c["charges"][0]["plans"][0]["draws"][0],
    "loss": lambda c: c["loss"],
}


@pytest.mark.parametrize("place", EXTRA)
def test_a_field_that_no_rule_reads_is_refused(place: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its hash made again and without a signature: a reader would believe what nothing confirms."""
    meta, path = folder / "query.yaml", folder / "certificate.json"
    assert run(capsys, "query", meta, SQL, "--epsilon", "0.5", "--certificate", path)[0] == 0
    written = json.loads(path.read_text())
    EXTRA[place](written)["promise"] = "epsilon = 1/1000 for everybody"
    path.write_text(json.dumps(sealed(written)))
    for more in ([], ["--ledger", meta]):
        status, out = run(capsys, "verify", path, *more)
        assert (status, "Refused at certificate" in out) == (1, True)


def test_a_name_that_is_there_twice_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Readers that take the first of two losses see a smaller one than was verified."""
    meta, path = folder / "query.yaml", folder / "certificate.json"
    assert run(capsys, "query", meta, SQL, "--epsilon", "0.5", "--certificate", path)[0] == 0
    loss = json.dumps({**json.loads(path.read_text())["loss"], "size": "1/1000"})
    text = path.read_text()
    path.write_text(text.replace('"dataset"', f'"loss": {loss}, "dataset"', 1))
    assert json.loads(path.read_text()) == json.loads(text)
    assert run(capsys, "verify", path, "--ledger", meta)[0] == 2
    with pytest.raises(BadParameter, match="`loss` is there twice"):
        sfumato.verify(path)


def test_what_only_a_signature_covers_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta, path = folder / "query.yaml", folder / "certificate.json"
    assert run(capsys, "query", meta, SQL, "--epsilon", "0.5", "--certificate", path)[0] == 0
    written = json.loads(path.read_text())
    found = sfumato.verify(path, ledger=meta)
    assert (found.not_covered, found.beside) == ((), "nothing")
    assert found.proved == "epsilon = 0.5 for one row of the data set hospital"
    other = {name: value for name, value in written.items() if name != "signature"} | {"versions": {"sfumato": "99"}}
    path.write_text(json.dumps(sealed(other)))
    assert "versions" in sfumato.verify(path, ledger=meta).not_covered
    assert {"versions", "dataset", "unit"} <= set(sfumato.verify(path).not_covered)
    path.write_text(json.dumps(signed(other, bytes(32))))
    assert sfumato.verify(path).holds
    assert sfumato.verify(path, ledger=meta).node == "certificate.signature"
    (folder / "answer.json").write_text(json.dumps({"rows": [7], "certificate": written}))
    for ledger in (None, meta):
        assert sfumato.verify(folder / "answer.json", ledger=ledger).beside == "not checked"
