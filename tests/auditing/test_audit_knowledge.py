"""What the adversary knows besides the answers: public shares of the values, and values of some people."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.auditing.atoms import AnswerConstraint, Atoms
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.linear_system import CountSystem
from sfumato.auditing.posterior import posterior
from sfumato.auditing.rules import AuditRules
from sfumato.cli import main
from sfumato.dataset import RangeDomain
from sfumato.errors import AnswerDenied, BadParameter

VALUES = 3


def random_answer(rng: np.random.Generator, values: int) -> Any:
    """A function from counts of values to an answer: a list, a sum, a maximum or a count."""
    numbers, groups = np.arange(values), [0] + [1] * (values - 1)
    return [
        lambda counts: AnswerConstraint.plain(counts),
        lambda counts: AnswerConstraint.total(counts, numbers),
        lambda counts: AnswerConstraint.extreme(counts, numbers, largest=True),
        lambda counts: AnswerConstraint.grouped(counts, groups),
    ][rng.integers(4)]


def same(one: AnswerConstraint, other: AnswerConstraint) -> bool:
    return np.array_equal(one.totals, other.totals) and np.array_equal(one.weights, other.weights)


def test_probabilities_are_those_of_enumeration() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        people, values = int(rng.integers(3, 7)), int(rng.integers(2, 4))
        shares = rng.dirichlet(np.ones(values))
        atoms = Atoms(rng.choice(values, people), values)
        asked = []
        for _ in range(int(rng.integers(1, 4))):
            rows, form = np.flatnonzero(rng.random(people) < 0.6), random_answer(rng, values)
            if len(rows):
                asked.append((rows, form, form(atoms.count(rows))))
                atoms.commit(atoms.split(rows))
        answers = [answer for _, _, answer in asked]
        system = CountSystem(
            member=atoms.member, answers=answers, sizes=atoms.truth.sum(axis=1), known=atoms.truth
        )  # fmt: skip
        expected = np.zeros((people, values))
        for world in map(np.array, product(range(values), repeat=people)):
            if all(same(form(np.bincount(world[rows], minlength=values)), answer) for rows, form, answer in asked):
                expected[np.arange(people), world] += np.prod(shares[world])
        found = posterior(system, shares.tolist(), effort=30)
        assert found is not None
        assert found[atoms._atom] == pytest.approx(expected / expected.sum(axis=1, keepdims=True), abs=1e-9)


def test_too_many_possibilities_have_no_result() -> None:
    atoms = Atoms(np.arange(400) % 10, 10)
    for rows in (np.arange(300), np.arange(100, 400)):
        atoms.commit(atoms.split(rows))
    answers = [AnswerConstraint.plain(atoms.count(rows)) for rows in (np.arange(300), np.arange(100, 400))]
    system = CountSystem(member=atoms.member, answers=answers, sizes=atoms.truth.sum(axis=1), known=atoms.truth)
    assert posterior(system, [0.1] * 10, effort=1) is None


def worlds_left(frame: pl.DataFrame, told: list[tuple[str, Any]], fixed: dict[int, int] | None = None) -> np.ndarray:
    """All assignments that agree with the answers and with the known values."""
    ids, left = frame["id"].to_numpy(), []
    for world in map(np.array, product(range(VALUES), repeat=frame.height)):
        if all(world[row] == value for row, value in (fixed or {}).items()) and all(
            _true(sql, ids, world) == answer for sql, answer in told
        ):
            left.append(world)
    return np.array(left)


def _true(sql: str, ids: np.ndarray, world: np.ndarray) -> Any:
    item, _, condition = sql.removeprefix("SELECT ").partition(" FROM t WHERE id IN ")
    values = world[np.isin(ids, [int(i) for i in condition.strip("()").split(", ")])]
    match item:
        case "v":
            return sorted(values.tolist())
        case "SUM(v)":
            return int(values.sum())
        case _:
            return int(values.max())


def random_log(rng: np.random.Generator, people: int, length: int) -> list[str]:
    log = []
    for _ in range(length):
        chosen = sorted(rng.choice(people, int(rng.integers(2, people + 1)), replace=False).tolist())
        item = rng.choice(["v", "SUM(v)", "MAX(v)"])
        log.append(f"SELECT {item} FROM t WHERE id IN ({', '.join(map(str, chosen))})")
    return log


def table(rng: np.random.Generator, people: int) -> pl.DataFrame:
    values = np.concatenate([np.arange(VALUES), rng.integers(0, VALUES, people - VALUES)])
    return pl.DataFrame({"id": range(people), "v": rng.permutation(values)})


def test_no_value_becomes_more_probable_than_declared() -> None:
    """Every answer keeps the bound, every refusal for this reason is right, and k alone would have broken it."""
    rng, shares, most = np.random.default_rng(2), np.array([0.4, 0.3, 0.3]), 0.65
    named = {"v": {str(value): float(share) for value, share in enumerate(shares)}}
    refused = broken = answered = 0
    for _ in range(12):
        frame = table(rng, 6)
        auditor = Auditor(frame, secrets=["v"], rules=AuditRules(k=2, probable=most, shares=named))
        told: list[tuple[str, Any]] = []
        for sql in random_log(rng, 6, 5):
            made = auditor.ask(sql)
            truth = _true(sql, frame["id"].to_numpy(), frame["v"].to_numpy())
            worlds = worlds_left(frame, [*told, (sql, truth)])
            weight = shares[worlds].prod(axis=1)
            pairs = product(range(6), range(VALUES))
            likely = max(weight[worlds[:, person] == value].sum() / weight.sum() for person, value in pairs)
            if made.verdict == "answered":
                assert made.answer == truth
                assert likely <= most + 1e-9
                told.append((sql, truth))
                answered += 1
            elif "probable" in made.reason:
                assert likely > most
                refused += 1
                broken += all(len(set(worlds[:, person])) >= 2 for person in range(6))
    assert answered >= 10
    assert broken == refused >= 5


@pytest.mark.parametrize("simulatable", [False, True])
def test_people_whose_value_is_not_known_keep_k_values(simulatable: bool) -> None:
    rng = np.random.default_rng(4)
    answered = broken = 0
    for _ in range(10):
        frame = table(rng, 6)
        known = {row: frame["v"][row] for row in (0, 1)}
        rules = AuditRules(k=2, simulatable=simulatable, known={"v": "id < 2"})
        auditor, naive = (
            Auditor(frame, secrets=["v"], rules=r, domains={"v": RangeDomain(low=0, high=VALUES - 1)})
            for r in (rules, AuditRules(k=2, simulatable=simulatable))
        )
        told: dict[bool, list[tuple[str, Any]]] = {True: [], False: []}
        for sql in random_log(rng, 6, 5):
            truth = _true(sql, frame["id"].to_numpy(), frame["v"].to_numpy())
            for aware, asked in ((True, auditor), (False, naive)):
                if asked.ask(sql).verdict == "answered":
                    told[aware].append((sql, truth))
        answered += len(told[True])
        keeps = [worlds_left(frame, told[aware], known) for aware in (True, False)]
        assert all(len(set(keeps[0][:, person])) >= 2 for person in range(2, 6))
        broken += any(len(set(keeps[1][:, person])) < 2 for person in range(2, 6))
    if not simulatable:
        assert answered >= 8
        assert broken >= 3


def test_known_numbers() -> None:
    """Sums and extremes of amounts in cents, where the adversary knows one of two people."""
    frame = pl.DataFrame({"id": range(5), "bill": [10.5, 20.25, 30.0, 44.75, 50.5]})
    for item in ("SUM(bill)", "AVG(bill)", "MAX(bill)"):
        queries = f"SELECT {item} FROM t WHERE id IN (0, 1)", f"SELECT {item} FROM t WHERE id IN (2, 3, 4)"
        cents = {"bill": RangeDomain(low=0, high=100, step=0.01)}
        knows = AuditRules(k=2, known={"bill": "id IN (0, 4)"})
        plain = Auditor(frame, secrets=["bill"], rules=AuditRules(k=2), domains=cents)
        aware = Auditor(frame, secrets=["bill"], rules=knows, domains=cents)
        assert [plain.ask(sql).verdict for sql in queries] == ["answered", "answered"]
        last = "refused" if item != "MAX(bill)" else "answered"  # the known 50.5 is the maximum of the second
        assert [aware.ask(sql).verdict for sql in queries] == ["refused", "answered"], last
        assert aware.ask(queries[1]).answer == plain.ask(queries[1]).answer


def test_rules_that_contradict_each_other_are_refused() -> None:
    shares = {"v": {"0": 0.9, "1": 0.1}}
    for wrong in (
        {"probable": 0.8}, {"shares": shares}, {"probable": 0.8, "shares": shares},
        {"probable": 0.95, "shares": shares, "counterfeits": 1},
        {"probable": 0.95, "shares": shares, "auditor": "delta2"},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"prob|shares"):
            AuditRules.model_validate({"k": 2, **wrong})
    frame = pl.DataFrame({"id": range(4), "v": [0, 1, 0, 1], "w": [1.5, 2.25, 7.1, 8.0]})
    for known, words in (
        ({"id": "v = 1"}, "`id` is none"),
        ({"v": "v = 1"}, "condition"),
        ({"v": "shoe = 1"}, "condition"),
    ):
        with pytest.raises(BadParameter, match=words):
            Auditor(frame, secrets=["v"], rules=AuditRules(k=2, known=known))
    rules = AuditRules(k=2, probable=0.95, shares=shares)
    tenths = {"w": RangeDomain(low=0, high=9, step=0.05)}
    auditor = Auditor(frame, secrets=["w"], rules=rules, domains=tenths)
    assert "`probable` and `simulatable` are not decided" in auditor.ask("SELECT SUM(w) FROM t").reason


METADATA = """\
sfumato: 1
dataset: ward
ledger: ledger.db
answering: {policy: {audit: {k: 2, probable: 0.7, shares: {ill: {"no": 0.5, "yes": 0.5}}, known: {ill: "id = 0"}}}}
person: row
tables:
  t:
    data: t.csv
    columns: {id: {kind: integer}, ill: {kind: category, role: sensitive, domain: {values: ["no", "yes"]}}}
"""


def test_from_the_metadata_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("id,ill\n0,no\n1,no\n2,yes\n3,no\n4,yes\n5,no\n")
    (tmp_path / "ward.yaml").write_text(METADATA)
    session = sfumato.session(tmp_path / "ward.yaml")
    with pytest.raises(AnswerDenied, match=r"more probable than 0\.7"):  # 3 of 4 are not ill
        session.ask("SELECT COUNT(*) FROM t WHERE ill = 'yes' AND id IN (1, 3, 4, 5)")
    assert session.ask("SELECT COUNT(*) FROM t WHERE ill = 'yes'").value == 2  # of the 5 others, 3 are not ill
    log = tmp_path / "log.sql"
    log.write_text("SELECT ill FROM t WHERE id IN (1, 3, 4, 5)\nSELECT ill FROM t\n")
    options = ["--data", str(tmp_path / "t.csv"), "--secret", "ill", "--k", "2", "--probable", "0.7"]
    shares = ["--share", "ill:no=0.5", "--share", "ill:yes=0.5", "--known", "ill:id = 0"]
    assert main(["audit", str(log), *options, *shares]) == 1
    printed = capsys.readouterr().out
    assert printed.count("answered") >= 1
    assert "more probable than 0.7" in " ".join(printed.split())
    assert main(["audit", str(log), *options]) == 2
    assert main(["audit", str(log), *options[:6], "--known", "ill"]) == 2


def test_known_values_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file counts as the condition does, from the metadata file and from the command line, wherever it lies."""
    (tmp_path / "t.csv").write_text("id,ill\n0,no\n1,no\n2,yes\n3,no\n4,yes\n5,no\n")
    (tmp_path / "known.csv").write_text("id,ill\n0,no\n4,\n")
    (tmp_path / "ward.yaml").write_text(
        METADATA.replace('{ill: "id = 0"}', "known.csv").replace(
            'probable: 0.7, shares: {ill: {"no": 0.5, "yes": 0.5}}, ', ""
        )
    )
    session = sfumato.session(tmp_path / "ward.yaml")
    with pytest.raises(AnswerDenied):  # the one ill person of the two is not number 0
        session.ask("SELECT COUNT(*) FROM t WHERE ill = 'yes' AND id IN (0, 2)")
    assert "known.csv" not in " ".join(session.ask("SELECT COUNT(*) FROM t WHERE ill = 'yes' AND id IN (3, 4)").notes)
    log, moved = tmp_path / "log.sql", tmp_path / "moved.csv"
    log.write_text("SELECT ill FROM t WHERE id IN (3, 4)\nSELECT ill FROM t WHERE id IN (0, 2)\n")
    run = ["audit", str(log), "--data", str(tmp_path / "t.csv"), "--secret", "ill", "--k", "2"]
    assert main(run) == 0
    for file in (tmp_path / "known.csv", moved):
        moved.write_text("id,ill\n0,no\n")
        assert main([*run, "--known", str(file), "--ledger", str(tmp_path / "kept.db")]) == 1
    moved.write_text("id,ill\n0,no\n1,no\n")
    assert main([*run, "--known", str(moved), "--ledger", str(tmp_path / "kept.db")]) == 3  # other knowledge
    capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,v\n0,0\n9,1\n", r"line 3 matches nobody"),
        ("id,v\n0,0\n1,0\n", r"line 3 has another `v`"),
        ("half,v\n0,0\n", r"line 2 has another `v`"),
        ("id,v\nten,0\n", r"line 2: the value of `id` is not of the column's kind"),
        ("id,w\n1,1\n", "has a column `w`"),
        ("id\n1\n", "needs a column"),
        ("v\n1\n", "needs a column"),
        ("", "cannot be read"),
    ],
)
def test_a_file_that_does_not_fit_the_table_is_refused(tmp_path: Path, text: str, words: str) -> None:
    frame = pl.DataFrame({"id": range(4), "half": [0, 0, 1, 1], "v": [0, 1, 0, 1]})
    (tmp_path / "known.csv").write_text(text)
    with pytest.raises(BadParameter, match=words):
        Auditor(frame, secrets=["v"], rules=AuditRules(k=2, known=tmp_path / "known.csv"))


def test_a_key_of_several_people_makes_all_of_them_known(tmp_path: Path) -> None:
    frame = pl.DataFrame({"zip": ["01", "01", "02", "02"], "age": [1, 2, 3, 4], "v": [True, True, False, True]})
    (tmp_path / "known.csv").write_text("zip,v\n01,true\n")
    auditor = Auditor(frame, secrets=["v"], rules=AuditRules(k=2, known=tmp_path / "known.csv"))
    assert auditor.known["v"].tolist() == [0, 1]
    assert auditor.ask("SELECT v FROM t WHERE age < 4").verdict == "refused"
    assert auditor.ask("SELECT v FROM t").verdict == "answered"
