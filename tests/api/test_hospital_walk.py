"""One hospital from its document to the ledger: every kind that costs is charged to the same people."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato
from sfumato.api.ledger import ledger_overview
from sfumato.dataset.document import Dataset
from sfumato.demos.parts.walk import WalkDemo


@pytest.mark.slow
def test_one_document_and_one_ledger(tmp_path: Path) -> None:
    lines: list[str] = []
    WalkDemo(seed=7).run(tmp_path, lines.append)
    overview = ledger_overview(tmp_path / "hospital.yaml")
    charged = [line.to_dict() for line in overview.register if line.to_dict().get("loss")]
    assert {str(line["kind"]) for line in charged} >= {"tables", "model", "graph-statistics"}
    assert {account.unit for account in overview.accounts} == {"patient"}  # every loss is that of a patient
    assert {account.dataset for account in overview.accounts} == {"hospital"}
    whole = next(account for account in overview.accounts if not account.analyst)
    assert whole.balance.cap is not None
    assert str(whole.balance.spent) != "ε = 0"
    assert "1 answer; by ana" in lines[-1]
    hospital = Dataset.load(tmp_path / "hospital.yaml")  # the draft of `init`, decided and completed
    assert hospital.tables["rooms"].links == {"patient": "patients", "roommate": "patients"}
    assert hospital.tables["patients"].columns["nights"].decided_by == "A. Steward"
    assert "Risk" in (tmp_path / "report.html").read_text()
    released = sfumato.check(tmp_path / "release", original=tmp_path / "tables" / "patients.csv")
    assert released.met
