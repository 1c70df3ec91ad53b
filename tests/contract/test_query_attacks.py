"""Contract of every registered attack on query answers and of every answering policy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.attacks.query import QueryAttack, evaluate_query_attack
from sfumato.errors import BadParameter
from sfumato.query.policies.exact import Exact
from sfumato.query.policy import Policy
from sfumato.registry import registry
from sfumato.rng import Rng
from sfumato.testing import check_part
from sfumato.testing.policies import POLICY_CHECKS
from sfumato.testing.query_attacks import QUERY_ATTACK_CHECKS

ATTACKS = [
    pytest.param(kind.build(parameters), id=f"{kind.part_name()}-{number}")
    for kind in registry("query-attack")
    for number, parameters in enumerate(kind.examples)
]
POLICIES = [
    pytest.param(kind.build(parameters), id=f"{kind.part_name()}-{number}")
    for kind in registry("policy")
    for number, parameters in enumerate(kind.examples)
]


@pytest.mark.parametrize("check", [check_part, *QUERY_ATTACK_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize("attack", ATTACKS)
def test_contract_of_attacks(attack: QueryAttack, check: Callable[[QueryAttack], None]) -> None:
    check(attack)
    assert attack.part_name() in registry("query-attack")


@pytest.mark.parametrize("check", [check_part, *POLICY_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", POLICIES)
def test_contract_of_policies(policy: Policy, check: Callable[[Policy], None]) -> None:
    check(policy)
    assert policy.part_name() in registry("policy")


def test_only_bits_are_attacked() -> None:
    attack = registry("query-attack").get("tracker").build()
    assert isinstance(attack, QueryAttack)
    with pytest.raises(BadParameter, match="0 and 1"):
        evaluate_query_attack(attack, Exact(), [0, 1, 2], Rng(1))
