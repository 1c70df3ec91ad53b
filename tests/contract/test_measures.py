"""Contract of every registered measure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.measures import Measure
from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.measures import MEASURE_CHECKS

PARTS = [
    pytest.param(kind.build(parameters), id=f"{kind.part_name()}-{number}")
    for kind in registry("measure")
    for number, parameters in enumerate(kind.examples)
]


@pytest.mark.parametrize("check", [check_part, *MEASURE_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize("measure", PARTS)
def test_contract(measure: Measure, check: Callable[[Measure], None]) -> None:
    check(measure)
    assert measure.part_name() in registry("measure")
