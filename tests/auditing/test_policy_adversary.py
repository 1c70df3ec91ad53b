"""An adversary at the SQL front: no expression may undo what a policy does to sums over sets of people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.dataset.document import Dataset
from sfumato.errors import AnswerDenied, QueryRefused
from sfumato.query.open_session import open_session
from sfumato.query.session import Session

PEOPLE = 40
METADATA = """\
sfumato: 1
dataset: ward
ledger: ledger.db
answering: {policy: POLICY}
person: row
tables:
  t:
    data: t.csv
    columns:
      id: {kind: integer}
      bill: {kind: number, role: sensitive, domain: {low: 0, high: 5000}}
      rare: {kind: number, role: sensitive, domain: {low: 0, high: 5000}}
"""
POLICIES = ("summary-only", "{size-control: 5}", "{rounding: {base: 1, smallest: 5}}",
            "{bounded-noise: {bound: 1, smallest: 5}}",
            "{consistent-sample: {share: 0.9, smallest: 5}}", "{fresh-sample: {share: 0.9, smallest: 5}}")  # fmt: skip


@pytest.fixture(scope="module")
def bills() -> np.ndarray:
    return np.random.default_rng(7).uniform(10, 5000, PEOPLE).round(2)


def opened(folder: Path, policy: str, bills: np.ndarray) -> Session:
    rows = [f"{i},{bill},{bill if i == 3 else ''}" for i, bill in enumerate(bills)]
    (folder / "t.csv").write_text("\n".join(["id,bill,rare", *rows]) + "\n")
    (folder / "m.yaml").write_text(METADATA.replace("POLICY", policy))
    return open_session(Dataset.load(folder / "m.yaml"), analyst="eve")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "expression",
    [
        "SUM(CASE WHEN id = 7 THEN bill ELSE 0 END)",
        "SUM(bill * 1000000)",
        "SUM(bill + 0)",
        "AVG(CASE WHEN id = 7 THEN bill END)",
        "COUNT(CASE WHEN id = 7 AND bill > 100 THEN 1 END)",
        "COUNT(NULLIF(id, 7))",
        "SUM(ABS(bill))",
        "SUM(CAST(bill AS INTEGER))",
        "SUM(1)",
    ],
)
def test_expressions_are_refused_by_their_text(tmp_path: Path, bills: np.ndarray, policy: str, expression: str) -> None:
    session = opened(tmp_path, policy, bills)
    with pytest.raises(QueryRefused, match="not about expressions"):
        session.ask(f"SELECT {expression} FROM t WHERE id < 35")


@pytest.mark.parametrize("policy", POLICIES[:2] + POLICIES[4:])
def test_one_person_is_refused_however_selected(tmp_path: Path, bills: np.ndarray, policy: str) -> None:
    session = opened(tmp_path, policy, bills)
    for person in range(0, PEOPLE, 5):
        with pytest.raises(AnswerDenied):
            session.ask(f"SELECT AVG(bill) FROM t WHERE id = {person}")
        with pytest.raises(AnswerDenied):
            session.ask(f"SELECT SUM(bill) FROM t WHERE id = {person} OR id = 100")


@pytest.mark.parametrize("policy", [POLICIES[1], *POLICIES[4:]])
def test_people_without_a_value_do_not_count(tmp_path: Path, bills: np.ndarray, policy: str) -> None:
    """The condition selects 20 people, and one of them has a value: the answer is about one person."""
    session = opened(tmp_path, policy, bills)
    for aggregate in ("SUM(rare)", "AVG(rare)", "COUNT(rare)"):
        with pytest.raises(AnswerDenied):
            session.ask(f"SELECT {aggregate} FROM t WHERE id < 20")
    assert session.ask("SELECT COUNT(*) FROM t WHERE id < 20").value > 0


GAPS = METADATA.replace("{kind: integer}", "{kind: integer}\n      score: {kind: integer}")


def asked(session: Session, sql: str) -> object:
    """The answer, or the text of the refusal."""
    try:
        return session.ask(sql).value
    except AnswerDenied as denied:
        return str(denied)


@pytest.mark.parametrize("policy", [POLICIES[1], *POLICIES[4:]])
@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "COUNT"])
def test_nothing_said_depends_on_who_has_no_value(tmp_path: Path, policy: str, aggregate: str) -> None:
    """Two tables that differ in who has no bill; sets of 4 to 6 people, of whom 4 to 6 have one. A public column with
    the same gaps is answered by the number of people with a value, as who they are is public."""
    told: dict[str, list[list[object]]] = {"rare": [], "score": []}
    for absent in ({0, 5, 6}, {1, 2, 7, 8}):
        folder = tmp_path / str(len(absent))
        folder.mkdir()
        rows = [f"{i},{'' if i in absent else i},{i + 1},{'' if i in absent else i + 1}" for i in range(PEOPLE)]
        (folder / "t.csv").write_text("\n".join(["id,score,bill,rare", *rows]) + "\n")
        (folder / "m.yaml").write_text(GAPS.replace("POLICY", policy))
        session = open_session(Dataset.load(folder / "m.yaml"), analyst="eve")
        for column, said in told.items():
            ends = [(low, high) for low in range(0, 11, 2) for high in range(low + 3, low + 6)]
            said.append(
                [asked(session, f"SELECT {aggregate}({column}) FROM t WHERE id BETWEEN {a} AND {b}") for a, b in ends]
            )
        assert asked(session, f"SELECT {aggregate}(bill) FROM t WHERE id < 20") != 0
        assert not isinstance(asked(session, "SELECT COUNT(*) FROM t WHERE id < 20 AND rare IS NULL"), str)
    first, second = told["rare"]
    assert first == second
    assert set(map(type, first)) == {str}
    for answers in told["score"]:
        assert set(map(type, answers)) > {str}
    assert told["score"][0] != told["score"][1]


@pytest.mark.parametrize("policy", POLICIES[4:])
def test_a_sample_needs_a_smallest_set(tmp_path: Path, bills: np.ndarray, policy: str) -> None:
    from sfumato.errors import InvalidRecipe

    with pytest.raises(InvalidRecipe, match="smallest"):
        opened(tmp_path, policy.replace(", smallest: 5", ""), bills)


LIMITED = (POLICIES[1], *POLICIES[4:])


@pytest.mark.parametrize("policy", LIMITED)
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) FROM t WHERE NOT (id = 7 AND bill < 100)", "combine a sensitive column"),
        ("SELECT COUNT(*) FROM t WHERE id < 20 AND (bill > 100 OR id <> 7)", "combine a sensitive column"),
        ("SELECT SUM(id) FROM t WHERE id < 20 AND NOT (rare IS NULL AND id = 7)", "combine a sensitive column"),
        ("SELECT SUM(bill) FROM t WHERE id < 20 AND bill > 4000", "selected by columns that are not sensitive"),
        ("SELECT COUNT(rare) FROM t WHERE bill > 100", "selected by columns that are not sensitive"),
    ],
)
def test_refusals_do_not_tell_who_meets_a_condition(
    tmp_path: Path, bills: np.ndarray, policy: str, sql: str, reason: str
) -> None:
    """Answered or refused by how many people have a bill above 100, each of these would tell a bill by bisection."""
    with pytest.raises(QueryRefused, match=reason):
        opened(tmp_path, policy, bills).ask(sql)


@pytest.mark.parametrize("policy", LIMITED)
def test_the_set_is_who_public_columns_select(tmp_path: Path, bills: np.ndarray, policy: str) -> None:
    """However many people meet the condition on the bill: the decision depends on the five or four people named."""
    session, above = opened(tmp_path, policy, bills), float(np.sort(bills[:5])[3])
    for threshold in (0, above, 9999):
        assert session.ask(f"SELECT COUNT(*) FROM t WHERE id < 5 AND bill > {threshold}").value >= 0
        with pytest.raises(AnswerDenied):
            session.ask(f"SELECT COUNT(*) FROM t WHERE id < 4 AND bill > {threshold}")


def test_size_control_counts_all_but_one_as_too_many(tmp_path: Path, bills: np.ndarray) -> None:
    """Differencing by a count with a condition on the bill: both sets have half of the people who meet it."""
    session, middle = opened(tmp_path, "{size-control: 5}", bills), float(np.median(bills))
    for person in range(0, PEOPLE, 8):
        with pytest.raises(AnswerDenied):
            session.ask(f"SELECT COUNT(*) FROM t WHERE bill > {middle} AND id <> {person}")
    assert session.ask(f"SELECT COUNT(*) FROM t WHERE bill > {middle} AND id < 20").value == (bills[:20] > middle).sum()
