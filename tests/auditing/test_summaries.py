"""Summaries under `summary-only`: what is answered leaves everybody an interval, and other forms are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.attacks.query import evaluate_query_attack
from sfumato.attacks.query.leave_one_out import LeaveOneOut
from sfumato.auditing.policies.exact import Exact
from sfumato.auditing.policies.summary_only import SummaryOnly
from sfumato.dataset.document import Dataset
from sfumato.errors import AnswerDenied, BadParameter, QueryRefused
from sfumato.query.open_session import open_session
from sfumato.query.session import Session
from sfumato.rng import Rng

PEOPLE = 40
DECLARED = "{summary-only: {groupings: [ward], predictors: [age], variance: true, leverage: 0.3}}"
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
      ward: {kind: category}
      age: {kind: integer}
      alone: {kind: integer}
      bill: {kind: number, role: sensitive}
      rare: {kind: number, role: sensitive}
"""


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    bills = rng.lognormal(6, 1, PEOPLE).round(2)
    return pl.DataFrame({
        "id": range(PEOPLE), "ward": [f"w{i % 5}" for i in range(PEOPLE)], "age": rng.integers(20, 90, PEOPLE),
        "alone": [int(i == 7) for i in range(PEOPLE)], "bill": bills,
        "rare": [bill if i < 12 else None for i, bill in enumerate(bills)],
    })  # fmt: skip


def opened(folder: Path, frame: pl.DataFrame, policy: str) -> Session:
    frame.write_csv(folder / "t.csv")
    (folder / "m.yaml").write_text(METADATA.replace("POLICY", policy))
    return open_session(Dataset.load(folder / "m.yaml"), analyst="eve")


def test_summaries_are_those_of_numpy(tmp_path: Path, frame: pl.DataFrame) -> None:
    session = opened(tmp_path, frame, DECLARED)
    bill, age = frame["bill"].to_numpy(), frame["age"].to_numpy()
    slope, intercept = np.polyfit(age, bill, 1)
    inside = (frame["ward"] == "w1").to_numpy()
    for item, expected in {
        "SUM(bill)": bill.sum(), "VAR_SAMP(bill)": bill.var(ddof=1), "VARIANCE(bill)": bill.var(ddof=1),
        "VAR_POP(bill)": bill.var(), "STDDEV(bill)": bill.std(ddof=1), "STDDEV_POP(bill)": bill.std(),
        "REGR_SLOPE(bill, age)": slope, "REGR_INTERCEPT(bill, age)": intercept,
        "CORR(bill, age)": np.corrcoef(bill, age)[0, 1],
    }.items():  # fmt: skip
        assert session.ask(f"SELECT {item} FROM t").value == pytest.approx(expected), item
    assert session.ask("SELECT SUM(bill) FROM t WHERE ward = 'w1'").value == pytest.approx(bill[inside].sum())
    assert session.ask("SELECT AVG(bill) FROM t WHERE ward = 'w1'").value == pytest.approx(bill[inside].mean())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT VAR_POP(bill) FROM t WHERE id <> 7",
        "SELECT REGR_SLOPE(bill, age) FROM t WHERE NOT id = 7",
        "SELECT VAR_POP(bill) FROM t WHERE ward = 'w1'",
        "SELECT SUM(bill) FROM t WHERE ward = 'w1' AND id <> 6",
        "SELECT SUM(bill) FROM t WHERE ward <> 'w1'",
        "SELECT SUM(bill) FROM t WHERE id = 7",
        "SELECT VAR_POP(bill) FROM t WHERE bill > 100",
        "SELECT SUM(id) FROM t WHERE NOT (id = 7 AND bill < 100)",
        "SELECT COUNT(*) FROM t WHERE bill > 100",
        "SELECT REGR_SLOPE(bill, alone) FROM t",
        "SELECT REGR_SLOPE(bill, id) FROM t",
        "SELECT REGR_SLOPE(bill, CASE WHEN id = 7 THEN 1 ELSE 0 END) FROM t",
        "SELECT CORR(bill, rare) FROM t",
        "SELECT VAR_POP(CASE WHEN id < 2 THEN bill END) FROM t",
        "SELECT MAX(bill) FROM t",
    ],
)
def test_other_forms_are_refused(tmp_path: Path, frame: pl.DataFrame, sql: str) -> None:
    with pytest.raises((AnswerDenied, QueryRefused)):
        opened(tmp_path, frame, DECLARED).ask(sql)


@pytest.mark.parametrize(
    ("policy", "sql"),
    [
        ("{summary-only: {predictors: [alone]}}", "SELECT REGR_SLOPE(bill, alone) FROM t"),
        ("{summary-only: {predictors: [alone]}}", "SELECT SUM(bill) FROM t"),
        ("{summary-only: {groupings: [id]}}", "SELECT SUM(bill) FROM t WHERE id = 7"),
        ("{summary-only: {groupings: [alone]}}", "SELECT SUM(bill) FROM t"),
        (
            "{summary-only: {groupings: [ward]}}",
            "SELECT SUM(rare) FROM t",
        ),  # three or two people with a value in a ward
    ],
)
def test_declarations_that_tell_about_one_person_are_refused(
    tmp_path: Path, frame: pl.DataFrame, policy: str, sql: str
) -> None:
    """The summaries that are declared together count, not the one that is asked for."""
    with pytest.raises(AnswerDenied, match="too much about one person"):
        opened(tmp_path, frame, policy).ask(sql)


def test_a_total_needs_five_people_with_a_value(tmp_path: Path, frame: pl.DataFrame) -> None:
    assert opened(tmp_path, frame, "summary-only").ask("SELECT SUM(rare) FROM t").value > 0
    few = frame.with_columns(rare=pl.when(pl.col("id") < 4).then(pl.col("bill")))
    other = tmp_path / "other"  # another ledger: one that has answered about these people refuses a changed table
    other.mkdir()
    with pytest.raises(AnswerDenied):
        opened(other, few, "summary-only").ask("SELECT SUM(rare) FROM t")


def test_a_variance_that_completes_the_summaries_is_an_error_for_the_owner(tmp_path: Path, frame: pl.DataFrame) -> None:
    for fixed in (frame.with_columns(bill=pl.lit(2.5)), frame.with_columns(bill=pl.col("age") * 3.0)):
        with pytest.raises(BadParameter, match="would together fix its values"):
            opened(tmp_path, fixed, DECLARED).ask("SELECT VAR_POP(bill) FROM t")
    with pytest.raises(BadParameter, match="not sensitive"):
        opened(tmp_path, frame, "{summary-only: {groupings: [bill]}}").ask("SELECT COUNT(*) FROM t")


def test_everybody_keeps_the_interval_of_the_theorem(frame: pl.DataFrame) -> None:
    """For everyone, a table with the same summaries has the person's value at the end of the interval."""
    from sfumato.auditing.policies._summaries import span_basis

    bill, age = frame["bill"].to_numpy(), frame["age"].to_numpy().astype(float)
    wards = [(frame["ward"] == ward).to_numpy().astype(float) for ward in frame["ward"].unique()]
    basis = span_basis(np.column_stack([np.ones(PEOPLE), *wards, age]))
    leverage = (basis**2).sum(axis=1)
    assert leverage.max() <= 0.3
    fitted = basis @ (basis.T @ bill)
    rest = float(((bill - fitted) ** 2).sum())
    for person in range(PEOPLE):
        towards = -(basis @ basis[person])
        towards[person] += 1
        other = fitted + towards * np.sqrt(rest / (1 - leverage[person]))
        assert other[person] - fitted[person] == pytest.approx(np.sqrt((1 - leverage[person]) * rest))
        assert [m @ other for m in (*wards, age)] == pytest.approx([m @ bill for m in (*wards, age)])
        assert other.var() == pytest.approx(bill.var())


def test_leaving_one_out_breaks_exact_answers_and_not_summaries() -> None:
    bits = np.random.default_rng(5).integers(0, 2, 60)
    attack = LeaveOneOut(targets=20)
    broken = evaluate_query_attack(attack, Exact(), bits, Rng(1))
    assert (broken.hits, broken.made) == (20, 20)
    kept = evaluate_query_attack(attack, SummaryOnly(predictors=("id",), variance=True), bits, Rng(1))
    assert kept.made == 0
    assert kept.refused > 0


def test_variances_alone_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaveOneOut, "_sum", lambda *_: None)
    bits = np.random.default_rng(6).integers(0, 2, 60)
    assert evaluate_query_attack(LeaveOneOut(targets=20), Exact(), bits, Rng(1)).hits == 20
