"""Contract of every registered attack on models."""

from __future__ import annotations

import pytest

from sfumato.attacks.models import ModelAttack
from sfumato.registry import registry
from sfumato.testing.model_attacks import MODEL_ATTACK_CHECKS, check_model_attack

EXAMPLES = [
    pytest.param(cls.build(example), id=f"{cls.part_name()}-{number}")
    for cls in registry("model-attack")
    for number, example in enumerate(cls.examples)
]


@pytest.mark.parametrize("attack", EXAMPLES)
def test_attack_keeps_its_contract(attack: ModelAttack) -> None:
    assert len(MODEL_ATTACK_CHECKS) == 4
    check_model_attack(attack)
