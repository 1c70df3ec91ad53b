"""The verbs: protect, check, attack, measure. The command line and Python use the same ones.

``sfumato.protect(recipe, data)`` gives a :class:`Protection`: the release, the secret row map and the account of both.
"""

from sfumato.api.check import check
from sfumato.api.evaluate import attack, attack_scenario, attack_to_dict, measure, measure_pair
from sfumato.api.limits import judge_limits, one_limit
from sfumato.api.out_of_core import protect_large
from sfumato.api.protect import Protection, protect
from sfumato.api.session import session
from sfumato.studies.run import run_study as study

__all__ = [
    "Protection",
    "attack",
    "attack_scenario",
    "attack_to_dict",
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
