"""Crosswalk of a run to rules and standards. Each framework is one YAML file in this folder.

The crosswalk helps the person who decides. It is no legal advice and no certificate: a requirement is ``shown`` only
where a figure of the run shows it, and everything else stays a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from sfumato.data.yaml_documents import parse_yaml
from sfumato.reports.evidence import EVIDENCE, Evidence
from sfumato.reports.report_data import ReportData

ItemState = Literal["shown", "not met", "answered", "open", "not applicable"]


@dataclass(frozen=True, kw_only=True)
class CrosswalkItem:
    """One requirement with what the run shows about it."""

    key: str
    """Under this key, ``about: {answers: ...}`` of the recipe has the answer."""
    reference: str
    asks: str
    state: ItemState
    """``shown`` by the run, ``not met`` by the run, ``answered`` by a person, ``open``, or ``not applicable``."""
    evidence: str
    """What the run shows, in words; empty if it shows nothing."""
    question: str
    """What a person has to answer; empty if nothing."""
    answer: str

    def to_dict(self) -> dict[str, str]:
        return {"key": self.key, "reference": self.reference, "asks": self.asks, "state": self.state,
                "evidence": self.evidence, "question": self.question, "answer": self.answer}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Framework:
    """A rule or standard with its requirements."""

    name: str
    title: str
    source: str
    items: tuple[CrosswalkItem, ...]

    @property
    def open(self) -> int:
        """Number of requirements that are not met or need an answer."""
        return sum(item.state in ("open", "not met") for item in self.items)

    def to_dict(self) -> dict[str, object]:
        items = [item.to_dict() for item in self.items]
        return {"name": self.name, "title": self.title, "source": self.source, "open": self.open, "items": items}


def crosswalk(report: ReportData) -> tuple[Framework, ...]:
    """The crosswalk of a run, for its owner. An external report has none: the answers are internal."""
    if report.audience != "internal":
        return ()
    found = {name: evidence(report) for name, evidence in EVIDENCE.items()}
    answers = report.about.get("answers") or {}
    return tuple(
        Framework(
            name=name,
            title=document["title"],
            source=document["source"],
            items=tuple(_item(name, entry, found, answers) for entry in document["items"]),
        )
        for name, document in _documents().items()
    )


def _item(
    framework: str, entry: Mapping[str, Any], found: Mapping[str, Evidence], answers: Mapping[str, Any]
) -> CrosswalkItem:
    key = f"{framework}.{entry['key']}"
    evidence = found[entry["evidence"]] if "evidence" in entry else Evidence()
    question, answer = str(entry.get("question", "")), str(answers.get(key, "")).strip()
    return CrosswalkItem(
        key=key,
        reference=str(entry["reference"]),
        asks=str(entry["asks"]),
        state=_state(evidence, question, answer),
        evidence=evidence.text,
        question="" if evidence.state == "not applicable" else question,
        answer=answer,
    )


def _state(evidence: Evidence, question: str, answer: str) -> ItemState:
    """A failure of the run stays one whatever is answered; a question stays open until it is answered."""
    if evidence.state in ("not met", "not applicable"):
        return evidence.state
    if answer:
        return "answered"
    return "open" if question or evidence.state == "open" else "shown"


@cache
def _documents() -> dict[str, Any]:
    """The frameworks by the names of their files, in the order that they state."""
    folder = files("sfumato.reports") / "compliance"
    found = {
        path.name.removesuffix(".yaml"): parse_yaml(path.read_text(encoding="utf-8"), source=path.name).value
        for path in folder.iterdir()
        if path.name.endswith(".yaml")
    }
    return dict(sorted(found.items(), key=lambda one: (one[1]["order"], one[0])))
