"""A missing optional library: the error names the extra and repeats the way sfumato was installed."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from sfumato.errors import ExtraMissing
from sfumato.extras import missing_extra

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "`pip install 'sfumato[excel]'`."),
        ({"url": "file:///src/sfumato", "dir_info": {"editable": True}}, "`pip install '.[excel]'` in the folder"),
        ({"url": "file:///src/sfumato", "dir_info": {}}, "`pip install '.[excel]'` in the folder of the checkout."),
        (
            {"url": "https://example.org/sfumato.git", "vcs_info": {"vcs": "git"}},
            "`pip install 'sfumato[excel] @ git+https://example.org/sfumato.git'`.",
        ),
        (
            {"url": "file:///tmp/sfumato-0.2-py3-none-any.whl", "archive_info": {}},
            "`pip install 'sfumato[excel] @ file:///tmp/sfumato-0.2-py3-none-any.whl'`.",
        ),
    ],
)
def test_the_fix_repeats_how_it_was_installed(
    origin: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = None if origin is None else json.dumps(origin)
    installed = SimpleNamespace(read_text=lambda _: record)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: installed)
    error = missing_extra("excel", "fastexcel", needed_by="Reading Excel")
    assert isinstance(error, ExtraMissing)
    assert error.message == "Reading Excel needs fastexcel, which is not installed."
    assert command in error.fix
    assert error.facts == {"library": "fastexcel", "extra": "excel"}


def test_a_source_tree_that_was_never_installed_is_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    assert "pip install '.[spark]'" in missing_extra("spark", "pyspark", needed_by="Spark").fix


def test_every_extra_that_the_code_names_exists() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "missing_extra" in text or "library" in text else ():
            if isinstance(node, ast.Call):
                function = ast.unparse(node.func)
                extras = (
                    [k.value for k in node.keywords if k.arg == "extra"] if function == "library" else node.args[:1]
                )
                if function in {"missing_extra", "library"}:
                    named |= {extra.value for extra in extras if isinstance(extra, ast.Constant)}
    assert {"audit", "statistics", "spark", "postgres", "learning"} <= named
    assert named <= set(declared)
