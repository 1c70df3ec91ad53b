"""Contract of every registered attack on query answers and of every answering policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.attacks.query import QueryAttack, evaluate_query_attack, evaluate_sql_attack
from sfumato.attacks.query._evaluate import sql_responder
from sfumato.auditing.policies.exact import Exact
from sfumato.errors import BadParameter
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


BROKEN = [
    pytest.param(kind, name, id=f"{kind.part_name()}-{name}")
    for kind in registry("policy")
    if issubclass(kind, Policy) and kind.part_name() != "audit"  # each answer takes an exact search: minutes
    for name in kind.broken_by
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), BROKEN)
def test_a_policy_is_broken_through_sql_by_the_attacks_it_names(kind: type[Policy], name: str) -> None:
    """Some setting of the attack, run through the SQL front, has an interval above the baseline."""
    secrets = (np.random.default_rng(1).random(60) < 0.5).astype(int)
    attack, policy = registry("query-attack").get(name), kind.build(kind.examples[0])
    assert issubclass(attack, QueryAttack)

    def broken(parameters: dict[str, Any]) -> bool:
        fewer = {"repeats": 30} if "repeats" in parameters else {}
        responder = sql_responder(policy, secrets, Rng(2))
        bits = secrets[responder.conditions.rows]
        outcome = evaluate_sql_attack(attack.build(parameters | fewer), responder, bits, "policy", Rng(2))
        return outcome.interval()[0] > outcome.baseline

    assert any(broken(parameters) for parameters in reversed(attack.sql_settings(12)))
