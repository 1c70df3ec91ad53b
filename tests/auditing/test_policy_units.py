"""Noise and rounding hide people: in units of what one of them contributes, for sets that tell nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import AnswerDenied, InvalidRecipe, MetadataMissing, QueryRefused
from sfumato.query.session import Session

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
      id: {kind: integer, domain: {low: 1000, high: 1099}}
      zip: {kind: integer}
      disease: {kind: category, role: sensitive}
      bill: {kind: number, role: sensitive, domain: {low: -100, high: 5000}}
      days: {kind: integer, role: sensitive, domain: {values: [0, 3, 90]}}
"""
POLICIES = ("{bounded-noise: {bound: 3, smallest: 4}}", "{consistent-noise: {bound: 3, smallest: 4}}",
            "{rounding: {base: 3, smallest: 4}}")  # fmt: skip


def opened(folder: Path, policy: str, metadata: str = METADATA) -> Session:
    draw = np.random.default_rng(5)
    rows = [
        f"{1000 + i},{i % 4},{'Flu' if i % 3 else 'Cold'},{bill},{day}"
        for i, (bill, day) in enumerate(zip(draw.integers(0, 5000, 60), draw.choice([0, 3, 90], 60), strict=True))
    ]
    (folder / "t.csv").write_text("\n".join(["id,zip,disease,bill,days", *rows]) + "\n")
    (folder / "m.yaml").write_text(metadata.replace("POLICY", policy))
    return sfumato.session(folder / "m.yaml")


@pytest.mark.parametrize("policy", POLICIES)
def test_one_question_tells_nobodys_disease(tmp_path: Path, policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    """SUM(id) of one person with a condition on the disease was 0 or the number, whatever the noise."""
    session = opened(tmp_path, policy)
    for sql in ("SELECT SUM(id) FROM t WHERE id = 1007 AND disease = 'Flu'",
                "SELECT COUNT(*) FROM t WHERE disease = 'Flu'", "SELECT COUNT(*) FROM t WHERE zip = 1 AND bill > 100",
                "SELECT SUM(id) FROM t WHERE days = 3 OR id = 1007"):  # fmt: skip
        with pytest.raises(QueryRefused, match="sensitive"):
            session.ask(sql)
        assert main(["query", str(tmp_path / "m.yaml"), sql]) == 2
    for sql in ("SELECT SUM(bill) FROM t WHERE id = 1007", "SELECT COUNT(*) FROM t WHERE id IN (1007, 1008, 1009)"):
        with pytest.raises(AnswerDenied):
            session.ask(sql)
    told = session.ask("SELECT COUNT(*) FROM t WHERE zip = 1")
    assert any("Attacks that break it: averaging" in note for note in told.notes)
    assert not any("guarantee" in note for note in told.notes)
    capsys.readouterr()


@pytest.mark.parametrize("policy", POLICIES[:2])
@pytest.mark.parametrize(("column", "unit"), [("bill", 5100), ("days", 90), ("id", 1099), (None, 1)])
def test_noise_is_as_large_as_people(tmp_path: Path, policy: str, column: str | None, unit: int) -> None:
    """The largest of 20 errors is above half of the bound except with probability 1e-6, and never above the bound."""
    session = opened(tmp_path, policy)
    rows = [line.split(",") for line in (tmp_path / "t.csv").read_text().splitlines()[1:]]
    values = np.array([1.0 if column is None else float(r[["id", "zip", "disease", "bill", "days"].index(column)])
                       for r in rows])  # fmt: skip
    what = "COUNT(*)" if column is None else f"SUM({column})"
    errors = [abs(session.ask(f"SELECT {what} FROM t WHERE id > {1000 + i}").value - values[i + 1 :].sum())
              for i in range(20)]  # fmt: skip
    assert 1.5 * unit < max(errors) <= 3 * unit + 1e-6


def test_rounding_is_to_multiples_of_people(tmp_path: Path) -> None:
    session = opened(tmp_path, POLICIES[2])
    for item, unit in (("SUM(bill)", 5100), ("SUM(days)", 90), ("COUNT(*)", 1)):
        assert session.ask(f"SELECT {item} FROM t WHERE zip < 3").value % (3 * unit) == 0


def test_equal_answers_tell_nothing_about_secrets(tmp_path: Path) -> None:
    """Whether two columns, or a column and a count, have the same gaps: each total has noise of its own."""
    session = opened(tmp_path, POLICIES[1])
    everybody = session.ask("SELECT COUNT(*) FROM t WHERE zip < 3").value
    assert everybody == session.ask("SELECT COUNT(*) FROM t WHERE NOT zip >= 3").value
    assert everybody != session.ask("SELECT COUNT(bill) FROM t WHERE zip < 3").value  # nobody has a gap
    assert everybody != session.ask("SELECT COUNT(disease) FROM t WHERE zip < 3").value
    total, mean = (session.ask(f"SELECT {f}(bill) FROM t WHERE zip < 3").value for f in ("SUM", "AVG"))
    count = session.ask("SELECT COUNT(bill) FROM t WHERE zip < 3").value
    assert total / count == pytest.approx(mean)  # the mean draws nothing new


@pytest.mark.parametrize("policy", POLICIES)
def test_what_must_be_declared(tmp_path: Path, policy: str) -> None:
    with pytest.raises(QueryRefused, match="needs declared bounds of `zip`"):
        opened(tmp_path, policy).ask("SELECT SUM(zip) FROM t")
    with pytest.raises(InvalidRecipe, match="role: sensitive"):
        opened(tmp_path, policy, METADATA.replace(", role: sensitive", ""))
    with pytest.raises(MetadataMissing, match="bounds declared"):
        opened(tmp_path, policy, METADATA.replace("high: 5000", "high: 50").replace("ledger.db", "other.db"))


def test_the_manual_names_the_attacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods", "consistent-noise"]) == 0
    shown = capsys.readouterr().out
    assert "Attacks that break it" in shown
    assert "averaging" in shown
