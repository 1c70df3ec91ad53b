"""The audit desk: questions in SQL, decisions for the owner, a memory that survives kill -9."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from sfumato import datasets
from sfumato.auditing import audited_table, replay_log
from sfumato.auditing.audit_log import DurableAuditor
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.query_log import read_log
from sfumato.auditing.rules import AuditRules
from sfumato.cli import main
from sfumato.dataset import RangeDomain, ValuesDomain
from sfumato.errors import BadParameter, LedgerBroken
from sfumato.ledger.stores.sqlite import SqliteStore

pytest.importorskip("ortools")

PATIENTS = datasets.place("patients7")
DISEASES = ("Asthma", "Bronchitis", "Cold", "Diabetes", "Earache", "Flu")
DRAWN = AuditRules(k=2, simulatable=True, allow=0.3, shares={"disease": dict.fromkeys(DISEASES, 1 / 6)})
LOG = """\
# the receptionist's questions
SELECT disease FROM patients WHERE zip = 12000
SELECT disease FROM patients WHERE zip = 12000 AND sex = 'F'
SELECT disease FROM patients WHERE age >= 21
SELECT COUNT(*) FROM patients WHERE age > 20
SELECT COUNT(*) FROM patients WHERE disease = 'Flu' AND zip = 12000
"""


def desk(**rules: object) -> Auditor:
    return Auditor(pl.read_csv(PATIENTS), secrets=["disease"], rules=AuditRules(**{"k": 2, **rules}))  # type: ignore[arg-type]


def test_the_seven_patients() -> None:
    decisions = [desk_.ask(question) for desk_ in [desk()] for question in read_log(LOG)]
    assert [made.verdict for made in decisions] == ["answered", "refused", "refused", "answered", "answered"]
    assert decisions[0].answer == ["Cold", "Diabetes", "Earache", "Flu"]
    assert decisions[1].exposed == (2,)  # Clark is the only man: the difference is his
    assert decisions[3].answer == 4
    assert decisions[4].answer == 1
    assert all(made.answer is None for made in decisions if made.verdict == "refused")


def test_counterfeits_instead_of_a_no() -> None:
    made = [desk_.ask(question) for desk_ in [desk(counterfeits=2)] for question in read_log(LOG)][1]
    assert made.verdict == "counterfeits"
    assert len(made.fakes) in (1, 2)
    assert len(made.answer) == made.people + len(made.fakes)


def test_a_question_asked_again_is_answered_again() -> None:
    stand = desk(counterfeits=2)
    first = [stand.ask(question) for question in read_log(LOG)]
    assert [stand.ask(question) for question in read_log(LOG)] == first


def test_numbers() -> None:
    frame = pl.DataFrame({"id": range(6), "pay": [3, 9, 4, 9, 1, 7], "team": ["a", "a", "b", "b", "b", "b"]})
    few = {"pay": RangeDomain(low=1, high=9)}
    stand = Auditor(frame, secrets=["pay"], rules=AuditRules(k=2), domains=few)
    assert stand.ask("SELECT SUM(pay) FROM t").answer == 33
    assert stand.ask("SELECT AVG(pay) FROM t WHERE team = 'a'").answer == 6.0
    fixed = stand.ask("SELECT SUM(pay) FROM t WHERE id <> 3")
    assert fixed.verdict == "refused"
    assert fixed.exposed == (3,)
    assert stand.ask("SELECT MAX(pay) FROM t").answer == 9  # a scale from 1 to 9: all kinds are audited together
    many = {"pay": RangeDomain(low=0, high=90_000, step=1000)}
    wide = Auditor(frame.with_columns(pl.col("pay") * 1000), secrets=["pay"], rules=AuditRules(k=2), domains=many)
    assert wide.ask("SELECT SUM(pay) FROM t").answer == 33_000
    assert wide.ask("SELECT MAX(pay) FROM t").verdict == "refused"  # sums and extremes together are not audited
    other = Auditor(frame, secrets=["pay"], rules=AuditRules(k=2), domains=few)
    assert other.ask("SELECT MAX(pay) FROM t").answer == 9
    assert other.ask("SELECT MAX(pay) FROM t WHERE team = 'a'").answer == 9  # either of the two may have it
    assert other.ask("SELECT MIN(pay) FROM t WHERE id = 1").verdict == "refused"


@pytest.mark.parametrize(
    "question",
    [
        "SELECT * FROM t",
        "SELECT disease, age FROM t",
        "SELECT disease FROM t WHERE disease = 'Flu'",
        "SELECT disease FROM t GROUP BY zip",
        "SELECT disease FROM t WHERE age IN (SELECT 1)",
        "SELECT disease FROM t WHERE read_csv('x') = 1",
        "SELECT disease FROM t WHERE agee = 1",
        "SELECT disease FROM t WHERE name = 12",
        "DROP TABLE t",
        "SELECT SUM(disease) FROM t",
        "not sql at all (",
    ],
)
def test_outside_the_language(question: str) -> None:
    made = desk().ask(question)
    assert made.verdict == "refused"
    assert made.answer is None
    assert "Flu" not in made.reason


def test_simulatable_decisions_do_not_depend_on_the_answer() -> None:
    frame = pl.read_csv(PATIENTS)
    seen = set()
    for order in ([0, 1, 2, 3, 4, 5, 6], [3, 5, 0, 6, 2, 1, 4]):
        shuffled = frame.with_columns(frame["disease"].gather(order))
        stand = Auditor(shuffled, secrets=["disease"], rules=DRAWN)
        whole = stand.ask("SELECT disease FROM t WHERE zip > 0")
        pairs = [stand.ask(f"SELECT disease FROM t WHERE age < {age}").verdict for age in (19, 20, 21, 22)]
        seen.add((whole.verdict, *pairs))
    assert len(seen) == 1
    with pytest.raises(ValueError, match="do not look"):
        AuditRules(k=2, simulatable=True, counterfeits=1)
    with pytest.raises(ValueError, match="set simulatable"):
        AuditRules(k=2, allow=0.1)
    with pytest.raises(ValueError, match="neither adds counterfeits"):
        AuditRules(k=2, auditor="delta2", counterfeits=1)


def test_every_answer_refuses_what_a_sample_of_answers_lets_pass() -> None:
    """Three people, two values: the answers v0 v0 v0 and v1 v1 v1 expose all three; 40 sampled worlds may miss them."""
    frame = pl.DataFrame({"id": range(30), "s": ["a", "b"] * 15})
    question = "SELECT s FROM t WHERE id < 10"
    drawn = AuditRules(k=2, simulatable=True, allow=0.3, shares={"s": {"a": 0.5, "b": 0.5}})
    assert Auditor(frame, secrets=["s"], rules=drawn).ask(question).verdict == "answered"
    declared = {"s": ValuesDomain(values=("a", "b"))}
    every = Auditor(frame, secrets=["s"], rules=AuditRules(k=2, simulatable=True), domains=declared)
    decision = every.ask(question)
    assert (decision.verdict, decision.reason) == ("refused", "a possible answer would break the rule")


def test_delta2_answers_nothing_that_exact_search_refuses() -> None:
    questions = [q for q in read_log(LOG) if q.upper().startswith("SELECT DISEASE")]
    exact, approximate = desk(), desk(auditor="delta2")
    for question in questions:
        decision = approximate.ask(question)
        if decision.verdict == "answered":
            assert exact.ask(question).answer == decision.answer
    with_count = approximate.ask("SELECT COUNT(*) FROM t WHERE disease = 'Flu'")
    assert (with_count.verdict, "delta2 auditor decides lists" in with_count.reason) == ("refused", True)


def test_decisions_survive_and_belong_to_their_data(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    first = DurableAuditor(desk(), SqliteStore(path), dataset="patients")
    made = [first.ask(question).verdict for question in list(read_log(LOG))[:2]]
    second = DurableAuditor(desk(), SqliteStore(path), dataset="patients")
    rest = [second.ask(question).verdict for question in list(read_log(LOG))[2:]]
    assert made + rest == [desk_.ask(question).verdict for desk_ in [desk()] for question in read_log(LOG)]
    assert first.ask(LOG.splitlines()[1]).verdict == "answered"  # catches up with the other one's decisions
    with pytest.raises(LedgerBroken, match="other rules"):
        DurableAuditor(desk(counterfeits=1), SqliteStore(path), dataset="patients")
    with sqlite3.connect(path) as raw:
        for tampering in ("UPDATE sfumato_audit SET verdict = 'refused' WHERE number = 1", "DELETE FROM sfumato_audit"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                raw.execute(tampering)
        raw.execute("DROP TRIGGER sfumato_audit_keep")
        raw.execute("UPDATE sfumato_audit SET verdict = 'refused' WHERE number = 1")
    with pytest.raises(LedgerBroken, match="Decision 1"):
        DurableAuditor(desk(), SqliteStore(path), dataset="patients")


_CHILD = """
import sys, polars as pl
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.audit_log import DurableAuditor
from sfumato.auditing.query_log import read_log
from sfumato.ledger.stores.sqlite import SqliteStore
inner = Auditor(pl.read_csv(sys.argv[1]), secrets=["value"], rules=AuditRules(k=2))
desk = DurableAuditor(inner, SqliteStore(sys.argv[2]), dataset="d")
print("ready", flush=True)
for question in read_log(open(sys.argv[3]).read()):
    made = desk.ask(question)
    print(made.verdict, made.answer, flush=True)
"""


def test_killed_in_mid_decision_and_restarted(tmp_path: Path) -> None:
    """Killed at several moments, each time restarted on the rest: the decisions are those of one that was not."""
    import numpy as np

    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"id": range(16), "value": rng.integers(0, 3, 16)})
    table, database, log = tmp_path / "t.csv", tmp_path / "ledger.db", tmp_path / "log.sql"
    frame.write_csv(table)
    questions = []
    for _ in range(9):
        chosen = np.flatnonzero(rng.random(16) < 0.5).tolist()
        questions.append(f"SELECT value FROM t WHERE id IN ({', '.join(map(str, chosen))})")
    log.write_text("\n".join(questions))
    rules = AuditRules(k=2)
    expected = [
        (m.verdict, m.answer) for d in [Auditor(frame, secrets=["value"], rules=rules)] for m in map(d.ask, questions)
    ]
    assert {verdict for verdict, _ in expected} == {"answered", "refused"}
    given: list[str] = []
    for delay in (0.0, 0.02, 0.05):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(table), str(database), str(log)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
        time.sleep(delay)
        os.kill(child.pid, signal.SIGKILL)
        given.extend(child.stdout.read().splitlines())
        child.wait()
    stored = sqlite3.connect(database).execute("SELECT question, verdict FROM sfumato_audit ORDER BY number").fetchall()
    answered = {question for question, verdict in stored if verdict == "answered"}
    after = DurableAuditor(Auditor(frame, secrets=["value"], rules=rules), SqliteStore(database), dataset="d")
    assert [((m := after.ask(question)).verdict, m.answer) for question in questions] == expected
    # Nothing was told that is not on disk.
    for line in given:
        if line.startswith("answered"):
            assert any(line == f"answered {answer}" and question in answered
                       for question, (_, answer) in zip(questions, expected, strict=True))  # fmt: skip


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.sql"
    log.write_text(LOG)
    code = main(["audit", str(log), "--data", str(PATIENTS), "--secret", "disease", "--k", "2", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 1
    assert document["refused"] == 2
    assert document["decisions"][1]["exposed"] == [3]
    assert "Flu" not in json.dumps([d["reason"] for d in document["decisions"]])
    code = main(["audit", str(log), "--data", str(PATIENTS), "--secret", "disease", "--k", "2", "--counterfeits", "2"])
    shown = capsys.readouterr().out
    assert code in (0, 1)  # the counterfeits are drawn, and the next query may be refused after them
    assert "counterfeit" in shown
    assert main(["audit", str(log), "--data", str(PATIENTS), "--secret", "ilness", "--k", "2"]) == 2
    assert main(["audit", str(log), "--data", str(PATIENTS), "--k", "2"]) == 2
    recipe = tmp_path / "sfumato.yaml"
    recipe.write_text(
        f"sfumato: 1\ndata: {PATIENTS}\ncolumns:\n  disease: {{role: sensitive}}\n  zip: {{role: quasi}}\n"
    )
    ledger = tmp_path / "ledger.db"
    for _ in range(2):
        assert main(["audit", str(log), "--recipe", str(recipe), "--k", "2", "--ledger", str(ledger), "--json"]) == 1
        again = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert [d["decision"] for d in again["decisions"]] == [d["decision"] for d in document["decisions"]]


def test_the_rules_of_the_document_are_those_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.sql").write_text(LOG)
    document = tmp_path / "ward.yaml"
    declared = "answering: {policy: {audit: {k: 2, simulatable: true}}}"
    document.write_text(
        f"sfumato: 1\ndataset: ward\nperson: row\n{declared}\ntables:\n  ward:\n    data: {PATIENTS}\n"
        "    columns:\n      disease: {role: sensitive}\n      zip: {role: quasi}\n"
    )
    queries = list(read_log(LOG))
    replay = replay_log(queries, audited_table(document=document))
    assert audited_table(document=document).auditor.rules == AuditRules(k=2, simulatable=True)
    assert audited_table(document=document, k=3).auditor.rules == AuditRules(k=3, simulatable=True)
    assert main(["audit", str(tmp_path / "log.sql"), "--recipe", str(document), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == replay.to_dict()
    written = document.read_text().replace(declared, "")
    document.write_text(written)
    with pytest.raises(BadParameter, match="`k` is required"):
        audited_table(document=document)
    with pytest.raises(BadParameter, match="equal to 2"):
        audited_table(document=document, k=1)
    direct = replay_log(queries, audited_table(PATIENTS, secrets=["disease"], k=2, simulatable=True))
    assert direct == replay


def test_the_ledger_knows_the_table_by_any_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path written differently, a copy under another name: what was answered about the table still counts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(PATIENTS.read_text())
    (tmp_path / "q.csv").write_text(PATIENTS.read_text())
    first, second = list(read_log(LOG))[:2]
    (tmp_path / "1.sql").write_text(first + "\n")
    (tmp_path / "2.sql").write_text(second + "\n")
    rest = ("--secret", "disease", "--ledger", "ledger.db")
    assert [d["decision"] for d in _decisions(capsys, "1.sql", "--data", "p.csv", *rest)] == ["answered"]
    for name in ("./p.csv", str(tmp_path / "p.csv"), "q.csv"):
        assert [d["decision"] for d in _decisions(capsys, "2.sql", "--data", name, *rest)] == ["refused"]
    (tmp_path / "p.csv").write_text(PATIENTS.read_text().replace("Flu", "Cold"))
    assert main(["audit", "2.sql", "--data", "p.csv", "--k", "2", *rest]) == 3  # broken, which is not a refusal
    assert "SFU-704" in capsys.readouterr().err


def _decisions(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert main(["audit", *arguments, "--k", "2", "--json"]) in (0, 1)
    decisions: list[dict[str, object]] = json.loads(capsys.readouterr().out)["decisions"]
    return decisions


def test_the_command_checks_every_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, data = tmp_path / "log.sql", tmp_path / "t.csv"
    log.write_text("SELECT s FROM t WHERE id < 10\n")
    pl.DataFrame({"id": range(30), "s": ["a", "b"] * 15}).write_csv(data)
    arguments = (str(log), "--data", str(data), "--secret", "s", "--simulatable")
    [sampled] = _decisions(capsys, *arguments, "--allow", "0.3", "--share", "s:a=0.5", "--share", "s:b=0.5")
    assert (sampled["decision"], sampled["reason"]) == ("answered", "most possible answers keep the rule")
    [every] = _decisions(capsys, *arguments, "--domain", "s:a,b")
    assert (every["decision"], every["reason"]) == ("refused", "a possible answer would break the rule")
    [blind] = _decisions(capsys, *arguments)
    assert "no declared list" in str(blind["reason"])
    assert main(["audit", *arguments, "--k", "2", "--allow", "0.3", "--share", "s=a"]) == 2


def test_the_command_decides_by_delta2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.sql"
    log.write_text("SELECT COUNT(*) FROM patients WHERE disease = 'Flu' AND zip = 12000\n")
    arguments = (str(log), "--data", str(PATIENTS), "--secret", "disease")
    [exact] = _decisions(capsys, *arguments)
    assert exact["decision"] == "answered"
    [approximate] = _decisions(capsys, *arguments, "--auditor", "delta2")
    assert approximate["decision"] == "refused"
    assert "delta2 auditor decides lists of values" in str(approximate["reason"])


def test_an_interrupted_decision_stops_the_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    inner = desk()
    stand = DurableAuditor(inner, SqliteStore(path), dataset="patients")
    ask = inner.ask

    def interrupted(question: str) -> object:
        ask(question)
        raise KeyboardInterrupt

    monkeypatch.setattr(inner, "ask", interrupted)
    first = next(read_log(LOG))
    with pytest.raises(KeyboardInterrupt):
        stand.ask(first)
    monkeypatch.undo()
    with pytest.raises(LedgerBroken, match="Open the audit again"):
        stand.ask(first)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM sfumato_audit").fetchone() == (0,)
    assert DurableAuditor(desk(), SqliteStore(path), dataset="patients").ask(first).verdict == "answered"
