"""`sfumato methods`: a short list by purpose, a sentence each on request, a page without markup."""

from __future__ import annotations

import pytest

from sfumato.cli import main
from sfumato.registry import KINDS, registry


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.usefixtures("wide")
def test_every_part_is_named_in_two_screens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) < 90
    assert "Other" not in out  # every kind has a purpose
    words = set(out.replace(",", " ").split())
    assert words >= {name for kind in KINDS for name in registry(kind).names()}


@pytest.mark.usefixtures("wide")
def test_a_kind_has_a_sentence_for_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods", "--kind", "model"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in registry("model").names())
    assert "quasi-identifiers" in out


@pytest.mark.usefixtures("wide")
def test_a_page_has_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods", "any-columns"]) == 0
    out = capsys.readouterr().out
    assert "any-columns: {most: all}" in out
    assert not [line for line in out.splitlines() if line.startswith(("#", "|", "```", "- [", "*"))]
    assert "](" not in out
