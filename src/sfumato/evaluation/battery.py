"""The attacks by which a release is judged."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.attacks import Attack, AttackScenario, default_attacks
from sfumato.evaluation.limits import limit_of
from sfumato.recipe import Limits


def battery_of(scenario: AttackScenario, attacks: Sequence[Attack], limits: Limits) -> tuple[Attack, ...]:
    """The attacks on a release: those that the recipe lists, else the default ones; any-column attackers come last.

    A limit is judged with the default attacks of its kind even where the recipe lists fewer: a list of weak attacks
    would make any limit met. The attackers who know undeclared columns run beside whichever attacks are listed.
    """
    default = default_attacks(scenario)
    declared = tuple(attacks) or tuple(attack for attack in default if not attack.any_columns)
    more = [attack for attack in default if attack not in declared]
    limited = [a for a in more if not a.any_columns and limit_of(a.discloses) in limits.items()]
    return (*declared, *limited, *(attack for attack in more if attack.any_columns))
