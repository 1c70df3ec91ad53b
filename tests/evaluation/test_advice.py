"""What to change: each sentence has its reason, and nothing is said where nothing is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from report_sample import attack, sample_account
from sfumato.evaluation.advice import _targets_needed, advice
from sfumato.registry import registry
from sfumato.reports import report_html, report_json
from sfumato.stats import wilson

RISK = {"limit": "risk", "wanted": 0.09, "value": 0.5, "met": False}
SWAPPED = {"steps": [{"step": "rank-swap", "parameters": {"p": 5}, "columns": ["zip"]}], "models": []}
COARSE = {"steps": [{"step": "generalize", "truthful": True}], "models": [{"k-anonymity": {"k": 5}}]}


def said(item: dict[str, Any], manifest: dict[str, Any], limit: dict[str, Any] = RISK) -> str:
    [found] = advice([item], [limit], manifest)
    return " ".join((found.finding, *found.changes))


def test_nothing_is_said_within_the_limit_without_one_or_without_a_risk() -> None:
    low = attack("linkage", "identity", 1, 1000, 0.0)
    assert advice([low], [{**RISK, "met": True}], SWAPPED) == ()
    assert advice([attack("linkage", "identity", 500, 1000, 0.0)], [], SWAPPED) == ()
    silent = {"attack": "linkage", "discloses": "identity", "risk": None, "reason": "Stopped."}
    assert advice([silent], [{**RISK, "value": None, "met": None}], SWAPPED) == ()


def test_parameters_are_turned_the_right_way() -> None:
    found = said(attack("posterior-linkage", "identity", 500, 1000, 0.0), SWAPPED)
    assert "finds 50% of the targets" in found
    assert "Raise “p” of rank swap (now 5)." in found
    assert "Keeping rank swap secret is no protection" in found
    grouped = {"steps": [{"step": "microaggregate", "parameters": {"groups": [{"columns": ["zip"], "k": 3}]}}]}
    assert "Raise “k” of microaggregate (now 3)." in said(
        attack("distance-linkage", "identity", 500, 1000, 0.0), grouped
    )
    kept = {"steps": [{"step": "pram", "parameters": {"keep": 0.9}, "columns": ["zip"]}]}
    assert "Lower “keep” of pram (now 0.9)." in said(attack("posterior-linkage", "identity", 500, 1000, 0.0), kept)
    elsewhere = {"steps": [{"step": "rank-swap", "parameters": {"p": 5}, "columns": ["salary"]}]}
    assert "Raise" not in said(attack("linkage", "identity", 500, 1000, 0.0), elsewhere)


def test_k_is_computed_from_the_limit() -> None:
    assert "Raise k of k-anonymity from 5 to 12" in said(attack("linkage", "identity", 200, 1000, 0.0), COARSE)
    bare = {**COARSE, "models": []}
    assert "Require k-anonymity with k = 12" in said(attack("linkage", "identity", 200, 1000, 0.0), bare)


def test_columns_are_blamed_by_what_is_left_without_them_or_by_their_share() -> None:
    without = {"zip": {"risk": 0.05, "low": 0.03, "high": 0.08}, "sex": {"risk": 0.45, "low": 0.4, "high": 0.5}}
    found = said(attack("linkage", "identity", 500, 1000, 0.0, without=without), COARSE)
    assert "falls to 5% without “zip” and 45% without “sex”" in found
    assert "Removing “zip” alone would be enough" in found
    shares = {"columns": {"zip": 0.7, "birth": 0.2, "sex": 0.1}}
    assert "contribute most to this attack: “zip” (70%). Mask it more" in said(
        attack("learned-linkage", "identity", 500, 1000, 0.0, detail=shares), SWAPPED
    )
    even = {"columns": {"zip": 1.0, "birth": 1.0, "sex": 1.0}}
    assert "All known columns contribute about equally" in said(
        attack("posterior-linkage", "identity", 500, 1000, 0.0, detail=even), SWAPPED
    )


def test_records_are_left_out_only_when_certainty_is_certain_and_rare() -> None:
    few = attack("linkage", "identity", 100, 1000, 0.0, certain=60, certain_hits=60)
    assert "6% of all, would reduce the risk to about 4%, which would be enough" in said(few, COARSE)
    many = attack("linkage", "identity", 500, 1000, 0.0, certain=400, certain_hits=400)
    assert "too many to suppress one by one" in said(many, COARSE)
    wrong = attack("distance-linkage", "identity", 100, 1000, 0.0, certain=1000, certain_hits=100)
    assert "certain" not in said(wrong, SWAPPED)


def test_a_wide_interval_asks_for_more_people() -> None:
    """So many people that the interval of the same share ends below the limit, and not many more than needed."""
    short = attack("linkage", "identity", 4, 60, 0.0, stopped=True, planned=5000)
    assert "time ran out after 60 targets" in said(short, COARSE)
    for share, wanted in ((0.05, 0.09), (0.001, 0.01), (0.3, 0.33)):
        needed = _targets_needed(share, wanted)
        assert needed is not None
        assert wilson(share * needed, needed)[1] <= wanted * 1.0001
        assert wilson(share * needed * 0.9, int(needed * 0.9))[1] > wanted
    assert _targets_needed(0.2, 0.1) is None


def test_secrets_and_repetitions() -> None:
    item = attack("attribute-linkage", "attribute", 800, 1000, 0.2, secret="diagnosis")
    limit = {"limit": "attribute", "wanted": 0.1, "value": 0.8, "met": False}
    assert "l-diversity or t-closeness on “diagnosis”" in said(item, COARSE, limit)
    assert "Tighten t-closeness" in said(item, {**COARSE, "models": [{"t-closeness": {"t": 0.2}}]}, limit)
    first, second = advice(
        [attack("posterior-linkage", "identity", 500, 1000, 0.0), attack("assignment", "identity", 400, 1000, 0.0)],
        [RISK],
        SWAPPED,
    )
    assert first.attack == "posterior linkage"
    assert not set(first.changes) & set(second.changes)
    assert second.changes == ("The changes above also address this attack.",)


@pytest.mark.parametrize("kind", list(registry("method")), ids=lambda kind: kind.part_name())
def test_what_protects_more_is_a_parameter(kind: Any) -> None:
    assert set(kind.stronger) <= set(kind.model_fields)
    assert set(kind.stronger.values()) <= {"more", "less"}


def test_only_the_owner_reads_it() -> None:
    beyond = attack("linkage", "identity", 500, 1000, 0.0, certain=60, certain_hits=60)
    told = replace(sample_account(), attacks=(beyond,), limits=(RISK,))
    inside, outside = report_html(told, "internal"), report_html(told, "external")
    assert "It finds 50% of the targets" in inside
    assert 'href="#change"' in inside
    assert "What to change" not in outside
    assert json.loads(report_json(told, "internal"))["advice"][0]["attack"] == "linkage"
    assert "advice" not in json.loads(report_json(told, "external"))
    fine = replace(told, attacks=(attack("linkage", "identity", 1, 1000, 0.0),), limits=({**RISK, "met": True},))
    assert "Nothing has to change" in report_html(fine, "internal")
