"""Evaluation of a release: attack outcomes, measures, verdicts, limits and advice, judged once for every caller."""

from sfumato.evaluation.advice import Advice, advice
from sfumato.evaluation.evaluation import Evaluation, evaluate
from sfumato.evaluation.limits import LimitResult, judge_limits, judged_risk, reference_rate, same_limit
from sfumato.evaluation.make_release import evaluate_release, make_release, release_manifest, with_control
from sfumato.evaluation.run import attack_to_dict, run_attacks, run_measures
from sfumato.registry import exports

__all__ = [
    "Advice",
    "Evaluation",
    "LimitResult",
    "advice",
    "attack_to_dict",
    "evaluate",
    "evaluate_release",
    "judge_limits",
    "judged_risk",
    "make_release",
    "reference_rate",
    "release_manifest",
    "run_attacks",
    "run_measures",
    "same_limit",
    "with_control",
]

__getattr__, __dir__ = exports(__name__)
