"""Every registered part has its page, and the page says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.cli import cli
from sfumato.manual import manual, write_manual
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
    for name, field in cls.model_fields.items():
        assert f"`{field.alias or name}`" in text
        assert field.description, f"{cls.__name__}.{name} has no docstring"


def test_committed_pages_are_current(pages: dict[str, str]) -> None:
    stale = [path for path, text in pages.items() if not (DOCS / path).exists() or (DOCS / path).read_text() != text]
    assert not stale, "run `make docs`"


def test_pages_of_vanished_parts_are_removed(tmp_path: Path) -> None:
    gone = tmp_path / "reference" / "method" / "gone.md"
    gone.parent.mkdir(parents=True)
    gone.write_text("old")
    write_manual(tmp_path, cli)
    assert not gone.exists()
    assert (tmp_path / "reference" / "method" / "remove.md").exists()
