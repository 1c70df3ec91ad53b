"""The verbs: protect, check, attack, measure. The command line and Python use the same ones.

``tacit.protect(recipe, data)`` gives a :class:`Protection`: the release, the secret row map and the account of both.
"""

from tacit.study.running import run_study as study
from tacit.verbs.asking import session
from tacit.verbs.checking import check
from tacit.verbs.large import protect_large
from tacit.verbs.limits import judge_limits, one_limit
from tacit.verbs.protecting import Protection, protect
from tacit.verbs.trying import attack, attack_scene, attack_to_plain, measure, measure_pair

__all__ = [
    "Protection",
    "attack",
    "attack_scene",
    "attack_to_plain",
    "check",
    "judge_limits",
    "measure",
    "measure_pair",
    "one_limit",
    "protect",
    "protect_large",
    "session",
    "study",
]
