"""Contract of every registered method, model, attack and measure for graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.params import Part
from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.graphs import (
    GRAPH_ATTACK_CHECKS,
    GRAPH_MEASURE_CHECKS,
    GRAPH_METHOD_CHECKS,
    GRAPH_MODEL_CHECKS,
)

CHECKS: dict[str, tuple[Callable[[Any], None], ...]] = {
    "graph-method": GRAPH_METHOD_CHECKS,
    "graph-model": GRAPH_MODEL_CHECKS,
    "graph-attack": GRAPH_ATTACK_CHECKS,
    "graph-measure": GRAPH_MEASURE_CHECKS,
}
CASES = [
    pytest.param(cls.build(example), check, id=f"{cls.part_name()}-{number}-{check.__name__}")
    for kind, checks in CHECKS.items()
    for cls in registry(kind)
    for number, example in enumerate(cls.examples)
    for check in (check_part, *checks)
]


@pytest.mark.parametrize(("part", "check"), CASES)
def test_contract(part: Part, check: Callable[[Part], None]) -> None:
    check(part)
    assert part.part_name()
