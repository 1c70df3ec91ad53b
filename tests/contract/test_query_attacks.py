"""What every attack on answers must do: succeed on exact answers, gain nothing from unrelated ones, repeat by seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.attacks.query_attack import QueryAttack, evaluate_query_attack
from sfumato.errors import BadParameter
from sfumato.query.policies.exact import Exact, ExactResponder
from sfumato.query.policy import Policy, Responder
from sfumato.registry import registry
from sfumato.rng import Rng

PEOPLE = 120
SECRETS = (np.random.default_rng(1).random(PEOPLE) < 0.4).astype(int)
ATTACKS = [
    pytest.param(kind, parameters, id=f"{kind.part_name()}-{number}")
    for kind in registry("query-attack")
    for number, parameters in enumerate(kind.examples)
]
POLICIES = [
    pytest.param(kind, parameters, id=f"{kind.part_name()}-{number}")
    for kind in registry("policy")
    for number, parameters in enumerate(kind.examples)
]


class Unrelated(Policy):
    """Exact answers about other people."""

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return ExactResponder((np.random.default_rng(99).random(len(np.asarray(values))) < 0.4).astype(np.int64))


@pytest.mark.parametrize(("kind", "parameters"), ATTACKS)
def test_exact_answers_give_everyone_away(kind: type[QueryAttack], parameters: dict[str, Any]) -> None:
    outcome = evaluate_query_attack(kind.build(parameters), Exact(), SECRETS, Rng(2))
    assert outcome.risk == 1.0
    assert outcome.made == outcome.tried > 0
    assert outcome.asked > 0
    assert outcome.refused == 0


@pytest.mark.parametrize(("kind", "parameters"), ATTACKS)
def test_answers_about_others_give_nobody_away(kind: type[QueryAttack], parameters: dict[str, Any]) -> None:
    outcome = evaluate_query_attack(kind.build(parameters), Unrelated(), SECRETS, Rng(2))
    assert outcome.interval(0.999)[0] <= outcome.baseline


@pytest.mark.parametrize(("kind", "parameters"), ATTACKS)
def test_the_same_seed_gives_the_same_outcome(kind: type[QueryAttack], parameters: dict[str, Any]) -> None:
    policy = registry("policy").get("bounded-noise").build({"bound": 3})
    assert isinstance(policy, Policy)
    first, second = (evaluate_query_attack(kind.build(parameters), policy, SECRETS, Rng(4)).to_dict() for _ in range(2))
    assert first == second
    assert first["low"] <= first["risk"] <= first["high"]


@pytest.mark.parametrize(("kind", "parameters"), POLICIES)
def test_a_policy_answers_one_as_it_answers_many(kind: type[Policy], parameters: dict[str, Any]) -> None:
    from sfumato.query.subsets import random_subsets

    queries = random_subsets(6, 24, np.random.default_rng(3))
    before = SECRETS[:24].copy()
    many = kind.build(parameters).open(SECRETS[:24], Rng(5)).ask_all(queries)
    single = kind.build(parameters).open(SECRETS[:24], Rng(5))
    assert single.people == 24
    one = np.array([np.nan if (answer := single.ask(query)) is None else answer for query in queries])
    assert (np.isnan(one) == np.isnan(many)).all()
    if kind.part_name() not in ("differential-privacy", "fresh-sample", "bounded-noise"):
        assert np.array_equal(one, many, equal_nan=True)
    assert np.array_equal(SECRETS[:24], before)


def test_only_bits_are_sought() -> None:
    attack = registry("query-attack").get("tracker").build()
    assert isinstance(attack, QueryAttack)
    with pytest.raises(BadParameter, match="0 and 1"):
        evaluate_query_attack(attack, Exact(), [0, 1, 2], Rng(1))


@pytest.mark.parametrize("kind", list(registry("query-attack")), ids=lambda kind: kind.part_name())
def test_threat_model_is_written_down(kind: type[QueryAttack]) -> None:
    assert len(kind.summary()) > 40
