"""Imports point one way: a layer knows the layers below it and nothing above."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "field_docs", "wording"),
    ("params", "progress", "extras", "secret"),
    ("registry", "rng", "kernels", "rationals", "deadline", "memory", "threads", "stats"),
    ("data",),
    ("dataset",),
    ("dp", "engines"),
    ("release",),
    ("ledger",),
    ("masking", "query", "profiling", "graphs"),
    ("synthesis", "tables", "collecting", "learning", "events", "documents"),
    ("auditing", "parties", "integral"),
    ("attacks",),
    ("measures",),
    ("recipe",),
    ("evaluation",),
    ("reports",),
    ("studies",),
    ("api",),
    ("web",),
    ("server",),
    ("demos", "manual"),
    ("app",),
    ("testing",),
    ("cli",),
)
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}
"""Modules of one line stand side by side and do not know each other."""
ROOMS = {"commands": "cli", "demos": "demos", "report": "studies"}
"""Rooms of a family that stand as high as the layer of their trade: its commands, demos and reports."""


def imports(path: Path) -> set[str]:
    """Second part of every ``sfumato.X`` that the file imports, wherever in the file it does so."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [f"sfumato.{alias.name}" for alias in node.names] if base == "sfumato" else [base]
        else:
            continue
        found.update(name.split(".")[1] for name in names if name.startswith("sfumato."))
    return found


def own_layer(path: Path) -> str:
    first, *rooms = path.relative_to(SOURCE).with_suffix("").parts
    return ROOMS.get(rooms[0], first) if rooms and first in ("auditing", "parties", "integral") else first


MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE or not path.name.startswith("__")]


def test_every_module_belongs_to_a_layer() -> None:
    assert {own_layer(path) for path in MODULES} <= set(HEIGHT)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards(path: Path) -> None:
    here = own_layer(path)
    wrong = {name for name in imports(path) if name in HEIGHT and name != here and HEIGHT[name] >= HEIGHT[here]}
    assert not wrong, f"{path.relative_to(SOURCE)} imports {sorted(wrong)}, which stand beside or above it"


def test_the_guard_sees_an_upward_import(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("def f():\n    from sfumato.cli import main\n    import sfumato.reports.report_data\n")
    assert imports(file) == {"cli", "reports"}
