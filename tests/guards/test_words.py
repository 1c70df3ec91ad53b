"""Retired words stay retired: private vocabulary of version 0.1 as identifiers, and as phrases in texts.

Part names, recipe keys, JSON keys and command-line options are frozen and not checked here.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
MODULES = sorted(SOURCE.rglob("*.py"))
HISTORY = ROOT / "CHANGELOG.md"
"""Its notes on version 0.1 are left as they were published."""
TEXTS = [*MODULES, *SOURCE.rglob("*.html"), *(ROOT / "docs").rglob("*.md"), *({*ROOT.glob("*.md")} - {HISTORY})]

RETIRED = {
    "verbal": "a plain function",
    "Sealed": "SecretValue",
    "hurry": "check_deadline",
    "portions": "batches",
    "silenced": "quiet",
    "give_back": "to_native",
    "Ladder": "BoundHierarchy",
    "ladder": "bound hierarchy",
    "ladders": "bound hierarchies",
    "Shown": "ReleaseCounts",
    "crowds": "wildcard_matching",
    "Forest": "hierarchy_arrays",
    "woods": "hierarchy_arrays",
    "Closure": "Monotonicity",
    "Attach": "PublicJoin",
    "Stack": "UnionAll",
    "Trim": "Project",
    "PerUnit": "GroupByUnit",
    "fan": "max_row_multiplicity",
    "loose": "unbounded_joins",
    "paced": "quantize_response",
    "Desk": "Responder or Auditor",
    "OpenDesk": "Responder",
    "desk": "responder or auditor",
    "Scene": "AttackScenario",
    "scene": "scenario",
    "examiner": "evaluation",
    "people_like": "RecordInterpolation",
    "given_together": "min_cost_assignment",
    "besiege": "evaluate_query_attack",
    "intruder": "adversary",
    "glimpse": "preview",
    "columnar": "sql_quoting",
    "Tracked": "tracked columns",
    "blamed": "column_attribution",
}
"""Identifier, and the word of the field that replaced it."""

PHRASES = {
    r"\bintruders?\b": "adversary, or attacker in texts for users",
    r"\bmade-up\b": "synthetic",
    r"\bexaminer\b": "evaluation",
    r"\bpeople sought\b": "targets",
    r"\b[Ss]?[Hh]e (?:knows|finds|drops|sees|learns|or)\b": "they",
    r"\bplease decide\b": "choose a role",
    r"\bJSON twin\b": "JSON report",
    r"\b[Ss]ecret columns?\b": "sensitive column",
    r"\bunder siege\b|\bbesieg": "attack",
}
"""Regular expression of a phrase in docstrings, messages or documentation, and what to say instead."""

SAME_NAME_ALLOWED: frozenset[str] = frozenset()
"""Public class names that are defined twice on purpose."""


def retired_identifiers(source: str) -> set[str]:
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    names = {
        token.string
        for before, dot, token in zip(["", "", *tokens], ["", *tokens], tokens, strict=False)
        # exp.Trim is a class of the SQL parser, not ours
        if token.type == tokenize.NAME and (getattr(before, "string", ""), getattr(dot, "string", "")) != ("exp", ".")
    }
    return names & set(RETIRED)


def retired_phrases(text: str) -> set[str]:
    return {better for phrase, better in PHRASES.items() if re.search(phrase, text)}


def public_classes(source: str) -> list[str]:
    body = ast.parse(source).body
    return [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def test_no_identifier_is_a_retired_word() -> None:
    used = {str(path.relative_to(ROOT)): retired_identifiers(path.read_text(encoding="utf-8")) for path in MODULES}
    assert len(used) > 300
    assert not {path: {word: RETIRED[word] for word in words} for path, words in used.items() if words}


def test_no_text_uses_a_retired_phrase() -> None:
    used = {str(path.relative_to(ROOT)): retired_phrases(path.read_text(encoding="utf-8")) for path in TEXTS}
    assert any(path.startswith("docs") for path in used)
    assert not {path: f"say: {', '.join(better)}" for path, better in used.items() if better}


def test_no_public_class_name_is_defined_twice() -> None:
    places = defaultdict(list)
    for path in MODULES:
        for name in public_classes(path.read_text(encoding="utf-8")):
            places[name].append(str(path.relative_to(SOURCE)))
    assert len(places) > 200
    assert not {name: paths for name, paths in places.items() if len(paths) > 1 and name not in SAME_NAME_ALLOWED}


def test_the_guards_see_planted_examples() -> None:
    assert retired_identifiers("def f(ladder):\n    '''scene'''\n    return ladder.besiege\n") == {"ladder", "besiege"}
    assert retired_phrases("What the intruder knows.") == {PHRASES[r"\bintruders?\b"]}
    assert public_classes("class A: ...\nclass _B: ...\ndef f():\n    class C: ...\n") == ["A"]


@pytest.mark.parametrize("phrase", PHRASES)
def test_every_phrase_is_a_valid_pattern(phrase: str) -> None:
    assert re.compile(phrase).groups == 0
