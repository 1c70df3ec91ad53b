"""Other policies than differential privacy behind the SQL front: answers, refusals, memory, and what they say."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.rules import AuditRules
from sfumato.cli import main
from sfumato.dataset import RangeDomain
from sfumato.dataset.document import Dataset
from sfumato.errors import AnswerDenied, BadParameter, InvalidRecipe, LedgerBroken, QueryRefused
from sfumato.query.open_session import open_session
from sfumato.query.session import Session

PATIENTS = """\
name,zip,age,disease,bill
Ann,1301,21,Flu,100.5
Bob,1301,22,Cold,20.25
Cid,1301,23,Flu,30
Dee,1302,24,Asthma,44
Eve,1302,31,Flu,250
Fay,1302,35,Cold,61
Gus,1303,40,Asthma,70
"""
METADATA = """\
sfumato: 1
dataset: ward
ledger: ledger.db
answering: {policy: POLICY}
person: row
tables:
  patients:
    data: patients.csv
    columns:
      zip: {kind: integer}
      age: {kind: integer}
      disease: {kind: category, role: sensitive}
      bill: {kind: number, role: sensitive, domain: {low: 0, high: 500, step: 0.25}}
public:
  places: {data: places.csv, key: [zip]}
"""
BOTH = "{audit: {k: 2, independent: [disease, bill]}}"
OTHERS = ("{fresh-sample: {share: 1, smallest: 1}}", "{consistent-sample: {share: 1, smallest: 1}}",
          "exact", "{size-control: 1}", "{perturbed: 0}", "{perturbed: {file: patients.csv}}")  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "patients.csv").write_text(PATIENTS)
    (tmp_path / "places.csv").write_text("zip,side\n1301,sunny\n1302,shady\n")
    return tmp_path


def opened(folder: Path, policy: str) -> Session:
    """One ledger for the audits, and one for each other policy: a table has one policy in a ledger."""
    ledger = "ledger.db" if "audit" in policy else f"{policy.strip('{').split(':')[0]}.db"
    (folder / "m.yaml").write_text(METADATA.replace("POLICY", policy).replace("ledger.db", ledger))
    return open_session(Dataset.load(folder / "m.yaml"), analyst="ann")


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return status, out.out, out.err


@pytest.mark.parametrize("policy", OTHERS)
def test_policies_at_their_most_open_tell_the_truth(folder: Path, policy: str) -> None:
    """Parameters at which nothing is changed: any other answer is a fault of the front."""
    session = opened(folder, policy)
    assert session.ask("SELECT COUNT(*) FROM patients WHERE zip = 1301 AND disease = 'Flu'").value == 2
    assert session.ask("SELECT SUM(age) AS years FROM patients WHERE age BETWEEN 22 AND 31").value == 100
    assert session.ask("SELECT SUM(bill) FROM patients WHERE zip < 1303").value == 505.75
    assert session.ask("SELECT AVG(bill) FROM patients WHERE zip = 1302").value == pytest.approx(355 / 3)
    shady = "SELECT COUNT(bill) FROM patients JOIN places ON patients.zip = places.zip WHERE side = 'shady'"
    told = session.ask(shady)
    assert told.value == 3
    assert type(told.value) is int
    assert told.notes[0].endswith("does not provide differential privacy.")
    assert told.to_dict()["differential_privacy"] is False


def test_gaps_and_sums_are_exact(folder: Path) -> None:
    rows = 300_000
    pl.DataFrame({"zip": [1301] * rows, "age": range(rows), "disease": [None] * rows, "bill": [0.1, None] * (rows // 2)}
                 ).write_csv(folder / "patients.csv")  # fmt: skip
    session = opened(folder, "exact")
    assert session.ask("SELECT SUM(age) FROM patients").value == rows * (rows - 1) // 2
    assert session.ask("SELECT AVG(bill) FROM patients").value == pytest.approx(0.1)
    assert session.ask("SELECT COUNT(bill) FROM patients").value == rows // 2
    assert session.ask("SELECT COUNT(disease) FROM patients").value == 0
    assert session.ask("SELECT AVG(bill) FROM patients WHERE zip = 1").value is None


def test_samples_and_copies(folder: Path) -> None:
    pl.DataFrame({"zip": [1301] * 2000, "age": [30] * 2000, "disease": ["Flu", "Cold"] * 1000, "bill": [5.0] * 2000}
                 ).write_csv(folder / "patients.csv")  # fmt: skip
    count = "SELECT COUNT(*) FROM patients WHERE age = 30"
    fresh = opened(folder, "{fresh-sample: {share: 0.5, smallest: 5}}")
    given = [fresh.ask(count).value for _ in range(5)]
    assert len(set(given)) > 1
    assert all(abs(value - 2000) < 300 for value in given)  # 300 is 6.7 standard deviations
    assert fresh.ask("SELECT AVG(bill) FROM patients").value == 5  # sum and count are of the same sample
    first = opened(folder, "{consistent-sample: {share: 0.5, smallest: 5}}").ask(count).value
    again = (
        opened(folder, "{consistent-sample: {share: 0.5, smallest: 5}}")
        .ask("SELECT COUNT(*) FROM patients WHERE NOT age <> 30")
        .value
    )
    assert first == again  # another process, another phrase, the same people
    rounded = opened(folder, "{rounding: {base: 300, smallest: 5}}").ask(count)
    assert rounded.value == 2100
    assert rounded.notes[0] == "Policy `rounding` (smallest 5, base 300.0) does not provide differential privacy."
    assert rounded.notes[2] == "Attacks that break it: averaging."
    flu = "SELECT COUNT(*) FROM patients WHERE disease = 'Flu' AND bill = 5"
    swapped = opened(folder, "{perturbed: 1}")
    assert swapped.ask(flu).value == 1000  # exchanged among all: totals stay
    half = " AND age = 30"
    assert swapped.ask(flu + half).value == opened(folder, "{perturbed: 1}").ask(flu + half).value


def test_exchanged_values_are_those_of_the_copy(folder: Path) -> None:
    """The condition on a sensitive column is judged on the copy: the truth has 0 or 500 in each block."""
    blocks = pl.DataFrame(
        {"zip": [1] * 500 + [2] * 500, "age": 30, "disease": ["Flu"] * 500 + ["Cold"] * 500, "bill": 1}
    )
    blocks.write_csv(folder / "patients.csv")
    sql = "SELECT COUNT(*) FROM patients WHERE zip = 1 AND disease = 'Flu'"
    told = opened(folder, "{perturbed: 1}").ask(sql).value
    assert 150 < told < 350
    assert opened(folder, "{perturbed: 1}").ask(sql).value == told


def test_policies_that_say_no(folder: Path) -> None:
    sized = opened(folder, "{size-control: 2}")
    assert sized.ask("SELECT COUNT(*) FROM patients WHERE zip = 1301").value == 3
    for sql in ("SELECT COUNT(*) FROM patients WHERE age = 21", "SELECT SUM(bill) FROM patients WHERE age > 21"):
        with pytest.raises(AnswerDenied, match=r"`size-control` refuses.*refused; others are exact") as no:
            sized.ask(sql)
        assert (no.value.code, no.value.status) == ("SFU-708", 1)
        assert "21" not in str(no.value)
    totals = opened(folder, "summary-only")
    assert totals.ask("SELECT SUM(age) FROM patients").value == 196
    with pytest.raises(AnswerDenied, match="summary-only"):
        totals.ask("SELECT SUM(age) FROM patients WHERE zip = 1301")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT zip, COUNT(*) FROM patients GROUP BY zip", "GROUP BY is supported with differential privacy only"),
        ("SELECT COUNT(*), SUM(age) FROM patients", "one column or aggregate"),
        ("SELECT * FROM patients", "returns rows"),
        ("SELECT MEDIAN(age) FROM patients", "line 1, column"),
        ("SELECT MAX(age) FROM patients", "answers COUNT, SUM and AVG"),
        ("SELECT disease FROM patients", "answers COUNT, SUM and AVG"),
        ("SELECT COUNT(DISTINCT zip) FROM patients", "DISTINCT"),
        ("SELECT SUM(disease) FROM patients", "A number is required"),
        ("SELECT COUNT(*)\nFROM patients WHERE nobody = 1", "line 2, column 21: There is no column `nobody`"),
        ('SELECT COUNT(*) FROM patients WHERE "sfumato row" = 1', "There is no column"),
        ("SELECT COUNT(*) FROM (SELECT age FROM patients) AS t", "Subqueries"),
        ("SELECT COUNT(*) FROM patients ERROR 5", "ERROR belongs"),
        ("SELECT COUNT(*) FROM nothing", "There is no table"),
        ("DELETE FROM patients", "Only SELECT"),
        ("SELECT COUNT(", "cannot be parsed"),
    ],
)
def test_refusals_come_from_the_text(folder: Path, sql: str, reason: str) -> None:
    with pytest.raises(QueryRefused, match=reason):
        opened(folder, "exact").ask(sql)


def test_audit_decides_and_remembers_across_processes(folder: Path) -> None:
    told = opened(folder, BOTH).ask("SELECT disease FROM patients WHERE zip = 1301")
    assert told.values == ("Cold", "Flu", "Flu")
    with pytest.raises(AnswerDenied, match=r"`audit` refuses: somebody would keep fewer than 2 values") as no:
        opened(folder, BOTH).ask("SELECT disease FROM patients WHERE zip = 1301 AND NOT age <= 21")
    assert not {"Flu", "Cold", "Ann"} & set(str(no.value).replace(".", " ").split())
    session = opened(folder, BOTH)
    assert session.ask("SELECT COUNT(*) FROM patients WHERE zip = 1302 AND (disease = 'Flu')").value == 1
    assert session.ask("SELECT COUNT(*) FROM patients WHERE age > 30").value == 3  # nothing secret
    assert session.ask("SELECT SUM(bill) FROM patients WHERE zip = 1301").value == 150.75
    with pytest.raises(AnswerDenied, match="fix somebody's value"):
        session.ask("SELECT AVG(bill) FROM patients WHERE zip = 1301 AND age > 21")
    with pytest.raises(AnswerDenied, match="queried by sums"):
        session.ask("SELECT MAX(bill) FROM patients")
    with pytest.raises(LedgerBroken, match="other rules"):
        opened(folder, BOTH.replace("k: 2", "k: 3"))


def test_audit_checks_every_answer_as_the_metadata_says(folder: Path) -> None:
    """A sample of the possible answers passes this query; among all of them are some that break the rule."""
    rows = 30
    pl.DataFrame({"zip": 1301, "age": range(rows), "disease": ["Flu", "Cold"] * 15, "bill": range(rows)}).write_csv(
        folder / "patients.csv"
    )
    sql = "SELECT disease FROM patients WHERE age < 10"
    shares = ", allow: 0.3, shares: {disease: {Flu: 0.5, Cold: 0.5}}"
    for option, name in ((shares, "sampled"), ("", "every")):
        policy = f"{{audit: {{k: 2, simulatable: true{option}}}}}"
        metadata = METADATA.replace("POLICY", policy).replace("ledger.db", f"{name}.db")
        declared = metadata.replace("{kind: category, role", "{kind: category, domain: {values: [Flu, Cold]}, role")
        (folder / f"{name}.yaml").write_text(declared)
    assert sorted(sfumato.session(folder / "sampled.yaml").ask(sql).values) == ["Cold"] * 5 + ["Flu"] * 5
    with pytest.raises(AnswerDenied, match="a possible answer would break the rule"):
        sfumato.session(folder / "every.yaml").ask(sql)


def test_audit_decides_by_delta2_as_the_metadata_says(folder: Path) -> None:
    sql = "SELECT COUNT(*) FROM patients WHERE zip = 1301 AND disease = 'Flu'"
    for auditor in ("exact", "delta2"):
        policy = f"{{audit: {{k: 2, auditor: {auditor}}}}}"
        metadata = METADATA.replace("POLICY", policy).replace("ledger.db", f"{auditor}.db")
        (folder / f"{auditor}.yaml").write_text(metadata)
    assert sfumato.session(folder / "exact.yaml").ask(sql).value == 2
    with pytest.raises(AnswerDenied, match="delta2 auditor decides lists of values"):
        sfumato.session(folder / "delta2.yaml").ask(sql)


def test_audit_asks_extremes_and_adds_counterfeits(folder: Path) -> None:
    session = opened(folder, BOTH.replace("k: 2", "k: 2, counterfeits: 2"))
    assert session.ask("SELECT MAX(bill) FROM patients").value == 250
    told = session.ask("SELECT disease FROM patients WHERE age IN (21, 23)")  # both have the same
    assert told.counterfeits == len(told.values) - 2 > 0
    assert "false" in told.notes[-1]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT disease FROM patients WHERE disease = 'Flu'", "line 1, column 36: People must be selected"),
        ("SELECT SUM(bill) FROM patients WHERE disease = 'Flu'", "People must be selected"),
        ("SELECT COUNT(*) FROM patients WHERE disease = 'Flu' OR zip = 1301", "combine a sensitive column"),
        ("SELECT COUNT(*) FROM patients WHERE disease = 'Flu' AND bill > 3", "at most one sensitive column"),
        ("SELECT SUM(age) FROM patients", "Sensitive here: disease, bill"),
        ("SELECT SUM(bill * 2) FROM patients", "values of a sensitive column"),
        ("SELECT COUNT(disease) FROM patients", r"Use COUNT\(\*\)"),
    ],
)
def test_audit_refuses_from_the_text_and_keeps_no_record(folder: Path, sql: str, reason: str) -> None:
    session = opened(folder, "{audit: {k: 2}}")
    with pytest.raises(QueryRefused, match=reason):
        session.ask(sql)
    with sqlite3.connect(folder / "ledger.db") as raw:
        assert raw.execute("SELECT count(*) FROM sfumato_audit").fetchone() == (0,)


def test_answers_and_refusals_keep_the_pace(folder: Path) -> None:
    opened(folder, "{size-control: 2}")
    session = open_session(Dataset.load(folder / "m.yaml"), analyst="ann", response_interval=0.3)
    for condition in ("zip = 1301", "age = 21"):
        started = time.monotonic()
        with contextlib.suppress(AnswerDenied):
            session.ask(f"SELECT COUNT(*) FROM patients WHERE {condition}")
        assert time.monotonic() - started >= 0.3


def test_audit_with_a_public_table(folder: Path) -> None:
    session = opened(folder, "{audit: {k: 2}}")
    join = "FROM patients JOIN places USING (zip) WHERE side = 'sunny'"
    assert session.ask(f"SELECT disease {join}").values == ("Cold", "Flu", "Flu")
    assert session.ask(f"SELECT COUNT(*) {join} AND disease = 'Flu'").value == 2
    (folder / "places.csv").write_text("zip,disease\n1301,Flu\n")
    with pytest.raises(LedgerBroken, match="other declarations"):  # who was asked about hung on the table as it was
        opened(folder, "{audit: {k: 2}}")
    (folder / "ledger.db").unlink()
    with pytest.raises(QueryRefused, match="with the name of a sensitive column"):
        opened(folder, "{audit: {k: 2}}").ask("SELECT COUNT(*) FROM patients JOIN places USING (zip)")


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(folder, "{audit: {k: 2}}")
    meta = folder / "m.yaml"
    status, out, err = run(capsys, "query", meta, "SELECT disease FROM patients WHERE zip = 1301")
    assert (status, out.split()) == (0, ["disease", "Cold", "Flu", "Flu"])
    assert "does not provide differential privacy" in err
    status, out, _ = run(capsys, "query", meta, "SELECT disease FROM patients WHERE age < 22", "--json")
    assert (status, json.loads(out)["error"]["code"]) == (1, "SFU-708")
    status, out, _ = run(capsys, "query", meta, "EXPLAIN SELECT COUNT(*) FROM patients", "--json")
    assert (status, json.loads(out)["explanation"]["policy"]) == (0, "audit")
    status, out, _ = run(capsys, "query", meta, "SELECT COUNT(*) FROM patients", "--json")
    assert json.loads(out)["rows"] == [{"COUNT(*)": {"value": 7, "low": None, "high": None}}]
    for option in (("--epsilon", "1"), ("--rho", "1"), ("--delta", "1e-6"), ("--rows", "2")):
        status, _, err = run(capsys, "query", meta, "SELECT COUNT(*) FROM patients", *option)
        assert status == 2
        assert f"`{option[0].removeprefix('--')}` belongs to differential privacy" in err
        assert "no budget" in err


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("sample", "No policy is called `sample`. Did you mean"),
        ("audit", "audit: k: is required"),
        ("{audit: {k: 1}}", "audit: k: must be greater than or equal to 2"),
        ("{audit: {k: 2, simulatable: true, counterfeits: 1}}", "do not look"),
        ("rounding", "rounding: base: is required"),
        ("{rounding: 5}", "set `smallest`"),
        ("{bounded-noise: 5}", "set `smallest`"),
        ("{consistent-noise: 5}", "set `smallest`"),
        ("{rounding: {bass: 5}}", "unknown field"),
        ("{differential-privacy: {epsilon: 1, budget: 2}}", "leave out parameters"),
        ("{size-control: {smallest: 3, overlap: 1}}", "needs a memory"),
        ("perturbed", "give a `file`, or a share to `swap`"),
        ("{perturbed: {file: patients.csv, column: age}}", "leave out `column`"),
        ("[audit]", "the name of one policy"),
    ],
)
def test_faults_of_the_key_are_told_with_their_line(folder: Path, policy: str, told: str) -> None:
    with pytest.raises(InvalidRecipe) as fault:
        opened(folder, policy)
    assert told in str(fault.value)
    assert [problem.line for problem in fault.value.problems] == [4]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("person: row", "person: zip", "with `person: row`"), ("role: sensitive", "role: plain", "needs a column with")],
)
def test_faults_of_the_tables_are_told_with_their_line(folder: Path, old: str, new: str, told: str) -> None:
    (folder / "m.yaml").write_text(METADATA.replace("POLICY", "{audit: {k: 2}}").replace(old, new))
    with pytest.raises(InvalidRecipe) as fault:
        Dataset.load(folder / "m.yaml")
    assert told in str(fault.value)
    assert [problem.line for problem in fault.value.problems] == [6]


def test_the_default_is_differential_privacy(folder: Path) -> None:
    for text in (
        METADATA.replace("POLICY", "differential-privacy"),
        METADATA.replace("answering: {policy: POLICY}\n", ""),
    ):
        (folder / "m.yaml").write_text(text)
        loaded = Dataset.load(folder / "m.yaml")
        assert loaded.answering.policy is None
        session = open_session(loaded, analyst="ann")
        assert session.policy is None
        assert session.explain("SELECT COUNT(*) FROM patients", epsilon=1).differential_privacy
    (folder / "m.yaml").write_text(METADATA.replace("POLICY", "exact"))
    with pytest.raises(BadParameter, match="policy `exact`"):
        open_session(Dataset.load(folder / "m.yaml"), analyst="ana", engine="duckdb")


_CHILD = """
import sys
from pathlib import Path
from sfumato.dataset.document import Dataset
from sfumato.query.open_session import open_session
from sfumato.errors import AnswerDenied
session = open_session(Dataset.load(Path(sys.argv[1])), analyst="ann")
print("ready", flush=True)
for sql in Path(sys.argv[2]).read_text().splitlines():
    try:
        session.ask(sql)
    except AnswerDenied:
        pass
"""


def _decided(session: Session, questions: list[str]) -> list[tuple[Any, ...] | None]:
    found: list[tuple[Any, ...] | None] = []
    for question in questions:
        try:
            found.append(session.ask(question).values)
        except AnswerDenied:
            found.append(None)
    return found


@pytest.mark.slow
def test_killed_in_mid_decision_and_restarted(folder: Path) -> None:
    """Killed twice and started again, the policy decides as one that was never stopped."""
    rng = np.random.default_rng(3)
    people = {"zip": range(16), "age": 16, "disease": rng.choice(["A", "B", "C"], 16), "bill": 1.0}
    pl.DataFrame(people).write_csv(folder / "patients.csv")
    chosen = [np.flatnonzero(rng.random(16) < 0.5).tolist() for _ in range(8)]
    questions = [f"SELECT disease FROM patients WHERE zip IN ({', '.join(map(str, some))})" for some in chosen]
    (folder / "log.sql").write_text("\n".join(questions))
    expected = _decided(opened(folder, "{audit: {k: 2}}"), questions)
    assert any(expected)
    assert None in expected
    for leftover in folder.glob("ledger.db*"):
        leftover.unlink()
    for delay in (0.01, 0.05):
        child = subprocess.Popen([sys.executable, "-c", _CHILD, str(folder / "m.yaml"), str(folder / "log.sql")],
                                 stdout=subprocess.PIPE, text=True)  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
        time.sleep(delay)
        os.kill(child.pid, signal.SIGKILL)
        child.stdout.close()
        child.wait()
    assert _decided(opened(folder, "{audit: {k: 2}}"), questions) == expected


@pytest.mark.parametrize("rules", [{"k": 2}, {"k": 3}, {"k": 2, "counterfeits": 1}])
def test_the_front_decides_as_the_desk_does(folder: Path, rules: dict[str, Any]) -> None:
    """Questions that both languages have, on random tables: same verdicts, same answers, in the same order."""
    rng = np.random.default_rng(11)
    verdicts = set()
    for _ in range(3):
        public = {"zip": rng.integers(0, 4, 14), "age": rng.integers(20, 40, 14)}
        secret = {"disease": rng.choice(["A", "B", "C", "D"], 14), "bill": rng.integers(0, 180, 14) / 4}
        frame = pl.DataFrame({**public, **secret})
        frame.write_csv(folder / "patients.csv")
        (folder / "ledger.db").unlink(missing_ok=True)
        rules = {**rules, "independent": ["disease", "bill"]}
        front = opened(folder, json.dumps({"audit": rules}))
        quarters = {"bill": RangeDomain(low=0, high=500, step=0.25)}
        desk = Auditor(frame, secrets=["disease", "bill"], rules=AuditRules(**rules), domains=quarters)
        with sqlite3.connect(folder / "ledger.db") as raw:  # the same random counterfeits
            desk.seed = bytes.fromhex(raw.execute("SELECT secret FROM sfumato_policy_tables").fetchone()[0])
        asked = ("disease", "disease", "SUM(bill)", "AVG(bill)", "COUNT(*)")
        for item in rng.choice(asked, 10):
            low, high = sorted(rng.integers(20, 40, 2).tolist())
            sql = f"SELECT {item} FROM patients WHERE age BETWEEN {low} AND {high} AND zip <> {rng.integers(0, 4)}"
            if item == "COUNT(*)":
                sql += f" AND disease IN ('A', '{rng.choice(['B', 'C'])}')"
            made = desk.ask(sql)
            verdicts.add(made.verdict)
            if made.verdict == "refused":
                with pytest.raises(AnswerDenied):
                    front.ask(sql)
            else:
                told = front.ask(sql)
                assert (list(told.values) if isinstance(made.answer, list) else told.value) == made.answer
                assert told.counterfeits == len(made.fakes)
    assert {"answered", "refused"} <= verdicts
