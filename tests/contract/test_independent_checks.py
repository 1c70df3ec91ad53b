"""The independent check of a model shares no code with the model: the names that each uses are followed."""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path

import pytest

from sfumato.masking.model import PrivacyModel
from sfumato.registry import registry

PLAIN = {"math", "fractions", "collections", "dataclasses", "typing", "scipy.special"}
"""Libraries that a check may use: no arrays, no tables."""
COUNTS = "sfumato.release.class_counts"
"""The counts that checks work on, filled by SQL."""


@cache
def definitions(module: str) -> dict[str, ast.AST | tuple[str, str]]:
    """Top-level names of a module: what defines each, or the module and name it is imported from."""
    source = Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8")
    names: dict[str, ast.AST | tuple[str, str]] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: (alias.name, "") for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return names


def reached(module: str, node: ast.AST, seen: set[tuple[str, str]] | None = None) -> set[tuple[str, str]]:
    """(module, name) of everything that the code of ``node`` leads to, through all modules of sfumato."""
    seen = set() if seen is None else seen
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom):
            seen |= {(part.module or "", alias.name) for alias in part.names}
        if not isinstance(part, ast.Name) or part.id not in (names := definitions(module)):
            continue
        origin = names[part.id]
        place = origin if isinstance(origin, tuple) else (module, part.id)
        if place in seen:
            continue
        seen.add(place)
        if isinstance(origin, tuple):
            if place[0].startswith("sfumato.") and place[1] in (there := definitions(place[0])):
                target = there[place[1]]
                if isinstance(target, ast.AST):
                    reached(place[0], target, seen)
        else:
            reached(module, origin, seen)
    return seen


def method(kind: type[PrivacyModel], name: str) -> ast.FunctionDef:
    body = definitions(kind.__module__)[kind.__name__]
    assert isinstance(body, ast.ClassDef)
    return next(node for node in body.body if isinstance(node, ast.FunctionDef) and node.name == name)


def everything_else(kind: type[PrivacyModel]) -> set[tuple[str, str]]:
    """What the model's own methods lead to, except its independent check."""
    body = definitions(kind.__module__)[kind.__name__]
    assert isinstance(body, ast.ClassDef)
    seen = {(kind.__module__, kind.__name__)}  # an annotation that names the class is not a call
    for node in body.body:
        if isinstance(node, ast.FunctionDef) and node.name != "independent_check":
            reached(kind.__module__, node, seen)
    return seen


MODELS = [pytest.param(kind, id=kind.part_name()) for kind in registry("model")]


@pytest.mark.parametrize("kind", MODELS)
def test_a_check_uses_plain_python_only(kind: type[PrivacyModel]) -> None:
    for module, name in reached(kind.__module__, method(kind, "independent_check")):
        own = module == kind.__module__ or module.startswith("sfumato.masking.models._") or module == COUNTS
        assert own or module in PLAIN or module.startswith("collections"), f"the check uses {module}.{name}"


@pytest.mark.parametrize("kind", MODELS)
def test_a_check_shares_nothing_with_the_model(kind: type[PrivacyModel]) -> None:
    check = {p for p in reached(kind.__module__, method(kind, "independent_check")) if p[0].startswith("sfumato.")}
    shared = {(module, name) for module, name in check & everything_else(kind) if module != COUNTS}
    assert not shared
    assert check & {(COUNTS, "ReleaseCounts")}


def test_a_shared_helper_is_seen() -> None:
    """The test above would notice: bind and the rule of l-diversity share ``secret_values`` with (alpha, k)."""
    kind = registry("model").get("alpha-k")
    assert issubclass(kind, PrivacyModel)
    used = reached(kind.__module__, method(kind, "bind"))
    assert ("sfumato.masking.models.l_diversity", "secret_values") in used
    assert ("numpy", "") in used
    assert inspect.getdoc(kind.independent_check)
