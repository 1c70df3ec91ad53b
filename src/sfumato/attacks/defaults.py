"""The default battery: the attacks that run on a release when the recipe or the user names none."""

from __future__ import annotations

from sfumato.attacks.base import Attack
from sfumato.attacks.scenario import AttackScenario
from sfumato.registry import registry


def default_attacks(scenario: AttackScenario) -> tuple[Attack, ...]:
    """The attacks that suit this release, cheap ones first.

    Every registered attack decides itself whether and how it takes part (:meth:`Attack.defaults`). Attacks are ordered
    by stage; attacks on sensitive columns are grouped by column.
    """
    kinds = sorted(
        (kind for kind in registry("attack") if issubclass(kind, Attack)),
        key=lambda kind: (kind.stage, kind.order_in_stage, kind.part_name()),
    )
    columns = list(scenario.secrets)

    def position(attack: Attack) -> tuple[int, int]:
        secret = getattr(attack, "secret", None)
        return attack.stage, columns.index(secret) if secret in columns else -1

    return tuple(sorted((attack for kind in kinds for attack in kind.defaults(scenario)), key=position))
