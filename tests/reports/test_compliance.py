"""Compliance crosswalk: filled from the run, never better than the run, open where a person has to answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sfumato.reports
from report_sample import sample_account
from sfumato.data.yaml_documents import parse_yaml
from sfumato.recipe.about import AboutRelease
from sfumato.reports import ColumnSummary, ReportData, report_html, report_json
from sfumato.reports.crosswalk import CrosswalkItem, crosswalk
from sfumato.reports.evidence import EVIDENCE

FOLDER = Path(sfumato.reports.__file__).parent / "compliance"


def line(column: str, role: str, **more: Any) -> ColumnSummary:
    facts = {"done": "", "released": True, "unchanged": False, **more}
    return ColumnSummary(column=column, role=role, **facts)


TABLE = (
    line("name", "identifier", released=False, done="removed"),
    line("zip", "quasi", done="last 2 characters masked", decided_by="A. Steward"),
    line("diagnosis", "sensitive", unchanged=True, decided_by="A. Steward"),
)


def items(report: ReportData) -> dict[str, CrosswalkItem]:
    return {item.key: item for framework in crosswalk(report) for item in framework.items}


def attacked(*, met: bool | None, limit: str = "risk") -> ReportData:
    judged = {"limit": limit, "wanted": 0.09, "value": 0.05, "met": met, "attack": "linkage"}
    return sample_account(column_table=TABLE, limits=(judged,))


def test_all_frameworks_are_there_with_unique_keys_and_known_evidence() -> None:
    names = [framework.name for framework in crosswalk(sample_account())]
    assert names == ["hipaa-safe-harbor", "hipaa-expert-determination", "wp216", "gdpr-recital-26", "iso-27559",
                     "nist-800-188", "nist-800-226"]  # fmt: skip
    used = set()
    for path in FOLDER.glob("*.yaml"):
        document = parse_yaml(path.read_text(encoding="utf-8")).value
        keys = [entry["key"] for entry in document["items"]]
        assert len(set(keys)) == len(keys), path.name
        for entry in document["items"]:
            assert set(entry) <= {"key", "reference", "asks", "evidence", "question"}
            assert "evidence" in entry or "question" in entry, (path.name, entry["key"])
            used.add(entry.get("evidence", "limits"))
    assert used <= set(EVIDENCE)


def test_a_requirement_is_shown_only_by_a_figure_of_the_run() -> None:
    bare = sample_account(attacks=(), attacks_before=(), limits=(), column_table=(), measures=(), about={})
    by_state = {item.key for item in items(bare).values() if item.state == "shown"}
    assert by_state == {
        "hipaa-expert-determination.documentation", "wp216.technique", "iso-27559.mitigation",
        "nist-800-188.transformation",
    }  # fmt: skip


@pytest.mark.parametrize(("met", "state"), [(True, "shown"), (False, "not met"), (None, "open")])
def test_the_limit_of_the_recipe_decides(met: bool | None, state: str) -> None:
    found = items(attacked(met=met))
    assert found["gdpr-recital-26.risk"].state == state
    assert found["iso-27559.quantified"].state == state
    assert found["wp216.inference"].state == "open", "a limit on identity says nothing about inference"
    assert "linkage" in found["gdpr-recital-26.risk"].evidence


def test_an_identifier_that_leaves_is_not_met_whatever_is_answered() -> None:
    key = "hipaa-safe-harbor.identifiers"
    leaving = (line("name", "identifier", unchanged=True), *TABLE[1:])
    report = attacked(met=True)
    assert items(report)[key].state == "open", "free text may hold identifiers: a person looks"
    answered = replace(report, about={"answers": {key: "no free text"}})
    assert (items(answered)[key].state, items(answered)[key].answer) == ("answered", "no free text")
    assert items(replace(answered, column_table=leaving))[key].state == "not met"
    pseudonym = (line("name", "identifier", done="replaced by pseudonyms"), *TABLE[1:])
    assert items(replace(report, column_table=pseudonym))[key].evidence.startswith("Identifiers leave in another form")


@pytest.mark.parametrize(
    ("state", "of_dates", "words"), [("holds", "open", "holds for"), ("fails", "not met", "fails"), (None, "open", "")]
)
def test_the_form_of_safe_harbor_is_judged_by_its_model(state: str | None, of_dates: str, words: str) -> None:
    report = attacked(met=True)
    verdicts = ({"model": "safe-harbor", "state": state, "worst": 0, "wanted": 0, "failing": 0, "reason": ""},)
    found = items(replace(report, verdicts=verdicts) if state else report)
    for key in ("hipaa-safe-harbor.dates", "hipaa-safe-harbor.places"):
        assert found[key].state == of_dates
        assert words in found[key].evidence
        assert ("safe-harbor" in found[key].evidence) is (state is not None)


def test_roles_need_a_named_person_for_every_column() -> None:
    key = "iso-27559.features"
    assert items(attacked(met=True))[key].state == "open"
    decided = tuple(replace(column, decided_by="A. Steward") for column in TABLE)
    assert items(replace(attacked(met=True), column_table=decided))[key].state == "shown"


def test_differential_privacy_is_asked_only_where_it_is_claimed() -> None:
    report = attacked(met=True)
    of_nist = [item for key, item in items(report).items() if key.startswith("nist-800-226.")]
    assert {item.state for item in of_nist} == {"not applicable"}
    assert not any(item.question for item in of_nist)
    steps = [{"step": "private-synthesis", "parameters": {"epsilon": 1.5, "delta": 1e-6}}]
    private = replace(report, manifest={**report.manifest, "steps": steps})
    found = items(private)["nist-800-226.parameters"]
    assert (found.state, found.evidence) == ("open", "private-synthesis: ε = 1.5, δ = 1e-06.")


def test_the_crosswalk_and_its_answers_are_internal() -> None:
    secret = "the registry of 1987"
    answers = {"wp216.linkability": secret}
    report = replace(attacked(met=True), about={"purpose": "study", "answers": answers})
    assert secret in report_html(report, "internal")
    assert json.loads(report_json(report, "internal"))["compliance"][2]["items"][1]["answer"] == secret
    for outside in (report_html(report, "external"), report_json(report, "external")):
        assert secret not in outside
        assert "crosswalk" not in outside.lower()
    assert crosswalk(report.external()) == ()
    assert AboutRelease(purpose="study", answers=answers).public() == {"purpose": "study"}
