"""RAPPOR at the command line: both losses, a memory that keeps the permanent response, refusals, estimates."""

from __future__ import annotations

import json
from math import log
from pathlib import Path

import pytest

from sfumato.cli import main

PLAN = """
survey: homepages
words: 2
rappor: {bits: 64, hashes: 2, cohorts: 4, f: 1/4, p: 1/4, q: 3/4, salt: poll}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_a_device_spends_the_loss_once_per_word(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "rappor", "design", str(plan), "--json"]) == 0
    losses = said(capsys)["epsilon"]
    assert isinstance(losses, dict)
    assert losses["all_reports_of_a_word"] == pytest.approx(4 * log(7))
    assert losses["device"] == pytest.approx(8 * log(7))
    assert losses["one_report"] < losses["all_reports_of_a_word"]


def test_the_permanent_response_is_kept_and_words_are_counted(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = ["collect", "rappor", "report", str(plan), "--memory", "device.json", "--word"]
    lines = []
    for _ in range(20):
        assert main([*report, "visited"]) == 0
        lines.append(said(capsys))
    kept = json.loads(Path("device.json").read_text())
    assert set(kept["permanent"]) == {"visited"}
    assert len({line["cohort"] for line in lines}) == 1  # one permanent response
    assert len({str(line["report"]) for line in lines}) > 1  # randomized again in every report
    assert main([*report, "other"]) == 0
    assert json.loads(Path("device.json").read_text())["permanent"]["visited"] == kept["permanent"]["visited"]
    assert main([*report, "third"]) == 2
    assert "third" not in Path("device.json").read_text()
    Path("device.json").write_text("{}")
    assert main([*report, "visited"]) == 2
    assert "damaged" in capsys.readouterr().err


def test_frequent_words_are_found_and_reports_of_another_plan_refused(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("words.csv").write_text("word\n" + "alpha\n" * 6000 + "beta\n" * 2000)
    trial = ["collect", "rappor", "report", str(plan), "words.csv", "--column", "word", "--out", "reports.jsonl"]
    assert main(trial) == 0
    estimate = ["collect", "rappor", "estimate", "PLAN", "reports.jsonl", "--json"]
    estimate += [word for name in ("alpha", "beta", "gamma") for word in ("--candidate", name)]
    capsys.readouterr()
    assert main([str(plan) if word == "PLAN" else word for word in estimate]) == 0
    found = said(capsys)
    assert found["reports"] == 8000
    words = found["words"]
    assert isinstance(words, list)
    assert [word["word"] for word in words] == ["alpha", "beta"]
    assert words[0]["low"] < 6000 < words[0]["high"]
    Path("other.yaml").write_text(PLAN.replace("salt: poll", "salt: other"))
    assert main(["other.yaml" if word == "PLAN" else word for word in estimate]) == 2
