"""One redaction for outside readers and one skeleton for all pages."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.evaluation.formatting import interval_ends
from sfumato.release.public_folder import Why
from sfumato.reports.redaction import SECTIONS, external
from sfumato.reports.text import achieved

ATTACK = {
    "attack": "degree-matching",
    "discloses": "identity",
    "risk": 0.123456,
    "low": 0.101999,
    "high": 0.150001,
    "baseline": 0.010101,
    "tried": 81,
    "hits": 10,
    "parameters": {"seed": 3},
}


def test_risks_are_rounded_alike_intervals_grow_and_reasons_stay_with_the_owner() -> None:
    refused = {"attack": "x", "discloses": "identity", "risk": None, "reason": "Only 3 of 81 nodes have edges."}
    document = {"attacks": [ATTACK, refused], "original_rows": 81, "advice": ["mask node 7"], "pictures": ["<svg>"]}
    shown = {key: leaving.value for key, leaving in external(document).items()}
    assert set(shown) == {"attacks"}
    first, second = shown["attacks"]
    assert (first["risk"], first["low"], first["high"], first["baseline"]) == (0.123, 0.101, 0.151, 0.01)
    assert not {"tried", "hits", "parameters"} & set(first)
    assert "81" not in json.dumps(shown)
    assert second["reason"]


def test_a_share_that_was_computed_for_all_records_stays_one_figure_and_is_called_so() -> None:
    exact = {**ATTACK, "low": 0.123456, "high": 0.123456}
    [shown] = external({"attacks": [exact]})["attacks"].value  # type: ignore[misc,attr-defined]
    assert (shown["risk"], shown["low"], shown["high"]) == (0.123, 0.123, 0.123)
    assert "computed for all records" in achieved(shown)
    assert "interval" not in achieved(shown)
    assert interval_ends(shown["low"], shown["high"]) == "exact"


def test_the_owner_and_outside_readers_read_the_same_interval() -> None:
    [shown] = external({"attacks": [ATTACK]})["attacks"].value  # type: ignore[misc,attr-defined]
    assert interval_ends(shown["low"], shown["high"]) == interval_ends(0.101999, 0.150001) == "10.1% to 15.1%"


def test_nothing_measured_leaves_beside_a_promise() -> None:
    document = {name: [] for name in SECTIONS}
    left = external(document, promised=True)
    assert "attacks" not in left
    assert Why.MEASURED not in {leaving.why for leaving in left.values()}


def test_the_public_report_of_a_graph_is_redacted_like_that_of_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [(a, b) for a in range(12) for b in range(a + 1, 12) if (a * b) % 5 == 1 or b == a + 1]
    pl.DataFrame(pairs, schema=["a", "b"], orient="row").write_csv(tmp_path / "edges.csv")
    (tmp_path / "g.yaml").write_text("sfumato: 1\ngraph: {edges: edges.csv}\nattacks: [degree-matching]\nsteps: []\n")
    out = tmp_path / "out"
    assert (
        main(["protect", str(tmp_path / "g.yaml"), "--out", str(out), "--json", "--targets", "12", "--seed", "1"]) == 0
    )
    capsys.readouterr()
    inside = json.loads((tmp_path / "out-private" / "report.json").read_text())["attacks"]
    outside = json.loads((out / "report.json").read_text())
    assert not {"original_rows", "original_edges", "advice", "pictures"} & set(outside)
    for before, after in zip(inside, outside["attacks"], strict=True):
        assert "tried" not in after
        assert after["low"] <= before["low"]
        assert after["high"] >= before["high"]
        assert after["risk"] == round(before["risk"], 3)
    assert "Content-Security-Policy" in (out / "report.html").read_text()


def test_every_page_has_the_skeleton_and_its_policy() -> None:
    parts = {"_page.html", "method.html"}  # the skeleton itself, and a part of one page
    for template in files("sfumato.reports").joinpath("templates").iterdir():
        if template.name.endswith(".html") and template.name not in parts:
            assert template.read_text(encoding="utf-8").startswith('{% extends "_page.html" %}'), template.name
