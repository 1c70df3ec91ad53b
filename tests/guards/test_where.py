"""`docs/where.md` names places that exist, and every package says what it holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
PAGE = (ROOT / "docs" / "where.md").read_text(encoding="utf-8")
ROWS = [row for row in PAGE.splitlines() if row.startswith("| ") and "?" in row.split("|")[1]]


def defined(module: Path) -> set[str]:
    body = ast.parse(module.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:50])
def test_every_place_exists(row: str) -> None:
    place: Path | None = None
    found = 0
    for name in re.findall(r"`([^`]+)`", row.split("|")[2]):
        if "/" in name or name.endswith(".py"):
            place = next((base / name for base in (SOURCE, ROOT) if (base / name).exists()), None)
            assert place is not None, name
            assert place.is_dir() == name.endswith("/"), name
            found += 1
        elif name[0].isupper() or "_" in name or f"` `{name}`" in row:
            assert place is not None, name
            assert name in defined(place), f"{place.name} does not define {name}"
    assert found


def test_forty_questions_are_answered() -> None:
    assert len(ROWS) >= 40


def test_every_package_says_what_it_holds() -> None:
    silent = [
        str(path.parent.relative_to(SOURCE))
        for path in SOURCE.rglob("__init__.py")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent
