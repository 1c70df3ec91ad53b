"""The JSON Schema of reports describes the reports that are written, key by key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from report_sample import sample_account
from sfumato.cli import main
from sfumato.reports.page import report_json
from sfumato.reports.report_data import Audience
from sfumato.reports.report_schema import ReportDocument, report_schema

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("audience", ["internal", "external"])
def test_a_sample_report_has_the_form_of_the_schema(audience: Audience) -> None:
    document = json.loads(report_json(sample_account(), audience))
    assert ReportDocument.model_validate(document).audience == audience
    with pytest.raises(ValidationError, match="surprise"):
        ReportDocument.model_validate({**document, "surprise": 1})


def test_the_reports_of_a_release_have_the_form_of_the_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = np.random.default_rng(1)
    frame = pl.DataFrame({"age": draw.integers(20, 60, 200), "ill": draw.choice(["no", "yes"], 200)})
    frame.write_csv(tmp_path / "people.csv")
    columns = {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}, "ill": "sensitive"}
    recipe: dict[str, Any] = {
        "sfumato": 1,
        "data": "people.csv",
        "columns": columns,
        "models": [{"k-anonymity": 5}],
        "steps": ["generalize"],
        "attacks": ["linkage", "attribute-linkage"],
        "limits": {"risk": 0.001},
    }
    (tmp_path / "r.yaml").write_text(json.dumps(recipe))
    out = tmp_path / "out"
    assert main(["protect", str(tmp_path / "r.yaml"), "--out", str(out), "--unmet", "--targets", "20", "--json"]) == 1
    capsys.readouterr()
    inside = ReportDocument.model_validate_json((tmp_path / "out-private" / "report.json").read_text())
    outside = ReportDocument.model_validate_json((out / "report.json").read_text())
    assert inside.standing == outside.standing == "not met"
    assert inside.advice
    assert not outside.advice
    assert {entry.tried for entry in outside.attacks} == {None}


def test_the_committed_schema_is_current() -> None:
    written = json.loads((DOCS / "reference" / "report.schema.json").read_text(encoding="utf-8"))
    assert written == report_schema(), "run `make docs`"
