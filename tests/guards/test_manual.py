"""Every registered part has its page, and the page says what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from manual import manual, write_manual

from sfumato.cli import cli
from sfumato.params import Part
from sfumato.registry import KINDS, registry

DOCS = Path(__file__).parents[2] / "docs"
PARTS = [(kind, cls) for kind in KINDS for cls in registry(kind)]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(manual(cli))


@pytest.mark.parametrize(("kind", "cls"), PARTS, ids=[f"{kind}-{cls.part_name()}" for kind, cls in PARTS])
def test_part_has_a_page_with_every_parameter(kind: str, cls: type[Part], pages: dict[str, str]) -> None:
    text = pages[f"reference/{kind}/{cls.part_name()}.md"]
    assert cls.summary(), f"{cls.__name__} has no docstring"
    assert len(cls.summary()) > 15
    docs = cls.field_docs()
    for name, field in cls.model_fields.items():
        assert f"`{field.alias or name}`" in text
        assert docs[name], f"{cls.__name__}.{name} has no docstring"


def test_committed_pages_are_current(tmp_path: Path) -> None:
    """Written by a process of its own, as `make docs` does: other tests of this process may have changed a default."""
    script = "import sys, pathlib, sfumato.cli, manual\nmanual.write_manual(pathlib.Path(sys.argv[1]), sfumato.cli.cli)"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, capture_output=True, cwd=DOCS)
    written = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.md")}
    assert len(written) > 100
    stale = [path for path, text in written.items() if not (DOCS / path).exists() or (DOCS / path).read_text() != text]
    assert not stale, "run `make docs`"


def test_pages_of_vanished_parts_are_removed(tmp_path: Path) -> None:
    gone = tmp_path / "reference" / "method" / "gone.md"
    gone.parent.mkdir(parents=True)
    gone.write_text("old")
    write_manual(tmp_path, cli)
    assert not gone.exists()
    assert (tmp_path / "reference" / "method" / "remove.md").exists()
