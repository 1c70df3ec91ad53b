"""Contract of an attack on query answers: it succeeds on exact answers and gains nothing from unrelated ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.attacks.query import QueryAttack, evaluate_query_attack
from sfumato.query.policy.base import ExactResponder, Policy, Responder
from sfumato.registry import registry
from sfumato.rng import Rng
from sfumato.testing.parts import run_checks

_SECRETS = (np.random.default_rng(1).random(120) < 0.4).astype(int)


def _unrelated() -> Policy:
    """Exact answers about other people."""
    from sfumato.auditing.policies.exact import Exact

    class Unrelated(Exact):
        def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
            return ExactResponder((np.random.default_rng(99).random(len(np.asarray(values))) < 0.4).astype(np.int64))

    return Unrelated()


def _policy(name: str, **parameters: float) -> Policy:
    policy = registry("policy").get(name).build(parameters)
    assert isinstance(policy, Policy)
    return policy


def check_query_attack(attack: QueryAttack) -> None:
    """Raise AssertionError unless ``attack`` keeps the contract of an attack on query answers.

    Exact answers give every secret away; answers about other people give no more than the baseline; refusals of
    everything give the baseline; the same seed gives the same outcome; the docstring states the threat model.
    """
    run_checks(attack, QUERY_ATTACK_CHECKS)


def exact_answers_give_everyone_away(attack: QueryAttack) -> None:
    outcome = evaluate_query_attack(attack, _policy("exact"), _SECRETS, Rng(2))
    assert outcome.risk == 1.0, "exact answers leave a secret unknown"
    assert outcome.made == outcome.tried > 0, "the attack guesses nothing for some targets"
    assert outcome.asked > 0, "the attack asks nothing"
    if not attack.needs_sql:  # a policy may refuse expressions by their text
        assert outcome.refused == 0, "refusals are counted where none were"


def unrelated_answers_give_nobody_away(attack: QueryAttack) -> None:
    outcome = evaluate_query_attack(attack, _unrelated(), _SECRETS, Rng(2))
    assert outcome.interval(0.999)[0] <= outcome.baseline, "answers about other people raise the risk"


def refusals_give_the_baseline(attack: QueryAttack) -> None:
    policy = _policy("size-control", smallest=len(_SECRETS) + 1)
    for secrets in (_SECRETS, 1 - _SECRETS):
        outcome = evaluate_query_attack(attack, policy, secrets, Rng(2))
        assert outcome.made == 0, "the attack claims to have learned from refusals of everything"
        assert outcome.risk == outcome.baseline, "a policy that refuses everything has another risk than the baseline"


def same_seed_same_outcome(attack: QueryAttack) -> None:
    # Noise of an SQL session comes from the operating system; rounded answers do not depend on it.
    policy = _policy("rounding", base=3) if attack.needs_sql else _policy("bounded-noise", bound=3)
    first, second = (evaluate_query_attack(attack, policy, _SECRETS, Rng(4)).to_dict() for _ in range(2))
    assert first == second, "the same seed gave another outcome"
    assert first["low"] <= first["risk"] <= first["high"], "the interval does not contain the risk"


def threat_model_is_documented(attack: QueryAttack) -> None:
    assert len(attack.summary()) > 40, "the first sentence of the docstring must state the threat model"


QUERY_ATTACK_CHECKS = (
    exact_answers_give_everyone_away,
    unrelated_answers_give_nobody_away,
    refusals_give_the_baseline,
    same_seed_same_outcome,
    threat_model_is_documented,
)
