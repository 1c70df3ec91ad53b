"""No test without an assertion: one that cannot fail proves nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def asserts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the body holds an assertion: a statement, ``pytest.raises``, or a call of a ``check_…`` function."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("raises", "warns", "fail") or name.startswith(("check_", "assert_")):
                return True
    return False


def hollow(text: str) -> list[str]:
    return [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test")
        and not asserts(node)
    ]


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_every_test_asserts(path: Path) -> None:
    assert not hollow(path.read_text(encoding="utf-8"))


def test_the_guard_sees_a_hollow_test() -> None:
    assert hollow("def test_nothing():\n    compute()\n") == ["test_nothing"]
