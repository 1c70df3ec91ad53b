"""Contract of every registered loss metric."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.masking.metric import LossMetric
from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.metrics import METRIC_CHECKS

METRICS = [
    pytest.param(kind.build(example), id=f"{kind.part_name()}-{number}")
    for kind in registry("metric")
    for number, example in enumerate(kind.examples)
]


@pytest.mark.parametrize("check", [check_part, *METRIC_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize("metric", METRICS)
def test_contract(metric: LossMetric, check: Callable[[LossMetric], None]) -> None:
    check(metric)
    assert metric.part_name() in registry("metric")
