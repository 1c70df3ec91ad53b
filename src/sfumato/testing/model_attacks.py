"""Contract of an attack on models: an overfitted model gives people away, an unrelated model gives nobody away."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from sfumato.attacks.evaluation.outcome import Outcome, risk
from sfumato.attacks.models import AttackedModel, ModelAttack
from sfumato.errors import NotApplicable
from sfumato.rng import Rng
from sfumato.testing.parts import run_checks

_FEATURES = ("a", "b", "c")


def check_model_attack(attack: ModelAttack) -> None:
    """Raise AssertionError unless ``attack`` keeps the contract of an attack on models."""
    run_checks(attack, MODEL_ATTACK_CHECKS)


def _people(name: str, count: int = 240) -> pl.DataFrame:
    draw = Rng(5).child("model-attack", name).generator
    columns: dict[str, Any] = {"a": draw.normal(size=count), "b": draw.normal(size=count)}
    columns["c"] = draw.integers(0, 3, count).astype(np.float64)
    # The label depends on every feature and has noise that only a model of these very people can know.
    columns["y"] = (columns["a"] + 2 * columns["c"] + 2 * draw.normal(size=count) > 2).astype(np.int64)
    return pl.DataFrame(columns)


def _models(fitted_to: pl.DataFrame) -> list[AttackedModel]:
    """Models that give much away: a tree that knows every record by heart, and unpenalized coefficients."""
    from sklearn.linear_model import LinearRegression
    from sklearn.tree import DecisionTreeClassifier

    design, label = fitted_to.select(_FEATURES).to_numpy(), fitted_to["y"].to_numpy()
    fitted = [DecisionTreeClassifier(random_state=0).fit(design, label), LinearRegression().fit(design, label)]
    return [
        AttackedModel(
            estimator=one, label="y", features=_FEATURES, members=_people("members"), control=_people("control")
        )
        for one in fitted
    ]


def _outcomes(attack: ModelAttack, fitted_to: str, seed: int = 2) -> list[Outcome]:
    found: list[Outcome] = []
    for model in _models(_people(fitted_to)):
        try:
            found += attack.run(model, Rng(seed), n_targets=400, secrets=("c",))
        except NotApplicable:
            continue
    return found


def _reference(outcome: Outcome) -> float:
    arms = [arm.rate for arm in (outcome.baseline, outcome.control) if arm is not None]
    return max(arms, default=0.0)


def overfitted_models_give_people_away(attack: ModelAttack) -> None:
    best = max((risk(one).low - _reference(one) for one in _outcomes(attack, "members")), default=-1.0)
    assert best > 0.03, "an overfitted model gives nobody away"


def unrelated_models_give_nobody_away(attack: ModelAttack) -> None:
    for one in _outcomes(attack, "strangers"):
        assert risk(one, 0.9999).low <= _reference(one), "a model of other people gives people away"


def same_seed_same_outcome(attack: ModelAttack) -> None:
    first, second = ([one.to_dict() for one in _outcomes(attack, "members")] for _ in range(2))
    assert first == second, "the same seed gave another outcome"


def threat_model_is_documented(attack: ModelAttack) -> None:
    assert len(attack.summary()) > 40, "the first sentence of the docstring must state the threat model"


MODEL_ATTACK_CHECKS = (
    overfitted_models_give_people_away,
    unrelated_models_give_nobody_away,
    same_seed_same_outcome,
    threat_model_is_documented,
)
