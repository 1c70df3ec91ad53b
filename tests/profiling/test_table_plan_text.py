"""Drafts of plans of tables: what is proposed, and that the draft runs once a person has decided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.api.init import init
from sfumato.cli import main
from sfumato.errors import BadParameter
from sfumato.tables.plan import TablePlan


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """People with a postal code, a diagnosis, a column with gaps, one that nobody recognizes, and two amounts."""
    draw = np.random.default_rng(3)
    size = 200
    frame = pl.DataFrame(
        {
            "id": range(size),
            "zip": [f"0{code}" for code in draw.integers(2138, 2141, size)],
            "diagnosis": draw.choice(["flu", "asthma", "none"], size),
            "religion": [None, *draw.choice(["a", "b"], size - 1)],
            "xq": draw.choice(["u", "v"], size),
            "turnover": draw.gamma(2, 100, size).round(1),
            "profit": draw.normal(0, 100, size).round(1),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def test_the_draft_runs_as_it_is_printed(
    people: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(people.parent)
    assert main(["init", "people.csv", "--tables", "--out", "plan.yaml"]) == 0
    assert "Not there yet: `unit` and the number of the rule." in capsys.readouterr().err
    words = ["init", "people.csv", "--tables", "--k", "5", "--unit", "row", "--out", "plan.yaml", "--force"]
    assert main(words) == 0
    told = capsys.readouterr().err
    assert "Then: sfumato protect plan.yaml" in told
    assert "Only columns of a table have to be decided." in told
    assert "undecided" not in told
    plan = TablePlan.load(Path("plan.yaml"))
    assert plan.tables == (("zip", "diagnosis"),)
    assert plan.value is None
    assert plan.sensitive is not None
    assert plan.sensitive.threshold == 5
    assert main(["protect", "plan.yaml", "--out", "out"]) == 0
    total = pl.read_csv("out/tables.csv").filter(pl.col("zip").is_null(), pl.col("diagnosis").is_null())
    assert total["value"].to_list() == [200]


def test_columns_with_gaps_and_amounts_below_zero_are_not_proposed(people: Path) -> None:
    text = " ".join(str(init(people, folder=people.parent, table_plan=True, k=5, unit="row")).split())
    assert "and without gaps: zip, diagnosis, xq." in text
    assert "With gaps, which need a category of their own: religion." in text
    assert "instead of counting rows: turnover." in text
    assert "# value: turnover" in text


def test_without_a_threshold_the_rule_is_left_to_a_person(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = people.parent / "plan.yaml"
    assert main(["init", str(people), "--tables", "--unit", "row", "--out", str(plan)]) == 0
    assert "Not there yet: the number of the rule." in capsys.readouterr().err
    assert main(["protect", str(plan), "--out", str(people.parent / "out")]) == 2
    assert "needs either `sensitive`" in capsys.readouterr().err
    plan.write_text(plan.read_text().replace("# sensitive: {threshold: }", "sensitive: {threshold: 4}"))
    assert main(["protect", str(plan), "--out", str(people.parent / "out")]) == 0


def test_an_undecided_column_is_refused_until_somebody_decides(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, out = people.parent / "plan.yaml", str(people.parent / "out")
    assert main(["init", str(people), "--tables", "--k", "5", "--unit", "row", "--out", str(plan)]) == 0
    plan.write_text(plan.read_text().replace("[zip, diagnosis]", "[zip, xq]"))
    assert main(["protect", str(plan), "--out", out]) == 2
    assert "undecided" in capsys.readouterr().err
    assert main(["decide", str(plan), "xq=quasi", "--by", "A. Steward"]) == 0
    assert main(["protect", str(plan), "--out", out]) == 0


def test_a_misspelt_column_is_corrected(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = people.parent / "plan.yaml"
    assert main(["init", str(people), "--tables", "--k", "5", "--unit", "row", "--out", str(plan)]) == 0
    plan.write_text(plan.read_text().replace("[zip, diagnosis]", "[zip, diagnosys]"))
    assert main(["protect", str(plan), "--out", str(people.parent / "out")]) == 2
    assert "diagnosis" in capsys.readouterr().err


def test_a_preset_is_refused(people: Path) -> None:
    with pytest.raises(BadParameter, match="preset"):
        init(people, table_plan=True, preset="research-file")
    assert main(["init", str(people), "--tables", "--preset", "research-file"]) == 2
