"""Contract of every registered hierarchy, on its own examples and sample values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.dataset.hierarchy import Hierarchy, hierarchy_from_dict
from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.hierarchies import HIERARCHY_CHECKS

CASES = [
    pytest.param(kind, example, id=f"{kind.part_name()}-{number}")
    for kind in registry("hierarchy")
    for number, example in enumerate(kind.examples)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.joinpath("city.csv").write_text("Berlin;Germany;*\nBonn;Germany;*\nParis;France;*\n")
    return tmp_path


@pytest.mark.parametrize("check", [check_part, *HIERARCHY_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize(("kind", "example"), CASES)
def test_contract(
    kind: type[Hierarchy], example: dict[str, Any], check: Callable[[Hierarchy], None], folder: Path
) -> None:
    hierarchy = kind.build(example, base=folder)
    check(hierarchy)
    assert str(folder) not in str(hierarchy.public())


@pytest.mark.parametrize(("kind", "example"), CASES)
def test_plain_form_rebuilds_it(kind: type[Hierarchy], example: dict[str, Any], folder: Path) -> None:
    hierarchy = kind.build(example, base=folder)
    assert hierarchy_from_dict({kind.part_name(): hierarchy.to_dict()}, base=folder) == hierarchy
