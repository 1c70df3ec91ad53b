"""Contract of every registered learner."""

from __future__ import annotations

import pytest

from sfumato.integral import Learner
from sfumato.registry import registry
from sfumato.testing import check_learner

EXAMPLES = [
    pytest.param(cls.build(example), id=f"{cls.part_name()}-{number}")
    for cls in registry("learner")
    for number, example in enumerate(cls.examples)
]


@pytest.mark.parametrize("learner", EXAMPLES)
def test_learner_keeps_its_contract(learner: Learner) -> None:
    check_learner(learner)
