"""Contract of every registered file format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.data import Format
from sfumato.data.format import format_for
from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.formats import FORMAT_CHECKS

FORMATS = [kind for kind in registry("format") if issubclass(kind, Format)]
PARTS = [
    pytest.param(kind.build(example), id=f"{kind.part_name()}-{number}")
    for kind in FORMATS
    for number, example in enumerate([{}, *(example for example in kind.examples if example)])
]


@pytest.mark.parametrize("check", [check_part, *FORMAT_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize("part", PARTS)
def test_contract(part: Format, check: Callable[[Format], None]) -> None:
    check(part)
    assert part == type(part).build(part.to_dict())


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.part_name())
def test_every_suffix_finds_its_format(kind: type[Format]) -> None:
    assert kind.suffixes
    assert all(format_for(Path(f"some.file{suffix.upper()}")) is kind for suffix in kind.suffixes)
