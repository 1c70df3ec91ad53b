"""Contract of every registered demo."""

from __future__ import annotations

import pytest

from sfumato.demos.base import Demo
from sfumato.registry import registry
from sfumato.testing import check_demo


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(registry("demo")), ids=lambda kind: kind.part_name())
def test_contract(kind: type[Demo]) -> None:
    check_demo(kind.build())
    assert kind.part_name() in registry("demo")
