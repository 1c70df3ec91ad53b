"""Attacks on releases and on query answers, and their evaluation."""

from sfumato.attacks.base import (
    Attack,
    Discloses,
    Guesses,
    Inference,
    Linking,
    Predicate,
    Stage,
    UnitLinking,
    View,
)
from sfumato.attacks.defaults import default_attacks
from sfumato.attacks.evaluation.evaluate import evaluate_attack
from sfumato.attacks.evaluation.outcome import Arm, Outcome, Risk, risk
from sfumato.attacks.scenario import AttackScenario, lineage_by_key
from sfumato.registry import exports

__all__ = [
    "Arm",
    "Attack",
    "AttackScenario",
    "Discloses",
    "Guesses",
    "Inference",
    "Linking",
    "Outcome",
    "Predicate",
    "Risk",
    "Stage",
    "UnitLinking",
    "View",
    "default_attacks",
    "evaluate_attack",
    "lineage_by_key",
    "risk",
]

__getattr__, __dir__ = exports(__name__)
