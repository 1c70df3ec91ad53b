"""Contract of an answering policy: one answer at a time and many at once are the same policy."""

from __future__ import annotations

import numpy as np

from sfumato.query.policy import Policy
from sfumato.query.policy.subsets import random_subsets
from sfumato.registry import registry
from sfumato.rng import Rng
from sfumato.testing.parts import run_checks

_PEOPLE = 24


def check_policy(policy: Policy) -> None:
    """Raise AssertionError unless ``policy`` keeps the contract of an answering policy.

    The responder knows the number of people; single questions and a batch are refused alike, and answered alike unless
    the policy draws fresh noise; the values are left as they are.
    """
    run_checks(policy, POLICY_CHECKS)


def _secrets() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (np.random.default_rng(1).random(_PEOPLE) < 0.4).astype(np.int64)


def answers_one_as_it_answers_many(policy: Policy) -> None:
    queries = random_subsets(6, _PEOPLE, np.random.default_rng(3))
    many = policy.open(_secrets(), Rng(5)).ask_all(queries)
    responder = policy.open(_secrets(), Rng(5))
    assert responder.people == _PEOPLE, "the responder states another number of people"
    one = np.array([np.nan if (answer := responder.ask(query)) is None else answer for query in queries])
    assert (np.isnan(one) == np.isnan(many)).all(), "single questions and a batch are refused differently"
    if not policy.fresh_noise:
        assert np.array_equal(one, many, equal_nan=True), "single questions and a batch get different answers"


def leaves_the_values_as_they_are(policy: Policy) -> None:
    values = _secrets()
    policy.open(values, Rng(5)).ask_all(random_subsets(6, _PEOPLE, np.random.default_rng(3)))
    assert np.array_equal(values, _secrets()), "the values were changed"


def says_what_it_promises_and_what_breaks_it(policy: Policy) -> None:
    text = policy.promise_text()
    assert len(text) > 20, "promise does not tell analysts what the policy does"
    assert text.endswith("."), "promise is not a sentence"
    known = registry("query-attack").names()
    unknown = [name for name in policy.broken_by if name not in known]
    assert not unknown, f"broken_by names attacks that are not registered: {unknown}"
    assert not (policy.keeps_randomness and policy.fresh_noise), "randomness is either kept or fresh"


POLICY_CHECKS = (
    answers_one_as_it_answers_many,
    leaves_the_values_as_they_are,
    says_what_it_promises_and_what_breaks_it,
)
