"""Ways out of a limit on risk that attackers with any columns exceed: drop columns, mask them, or accept."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.dataset import Role
from sfumato.evaluation.check import SEVERAL_ROWS
from sfumato.evaluation.formatting import Plain
from sfumato.evaluation.limits import limit_of


@dataclass(frozen=True, kw_only=True)
class WayOut:
    """One decision that addresses attackers who know columns that are no quasi-identifiers."""

    does: str
    """What it does, in words."""
    roles: Mapping[str, str]
    """New roles of columns; empty if something else is decided."""
    unit: str | None = None
    """Whose privacy is kept: ``row``, or the column with the person; None if that is not what is decided."""
    rest: str | None = None
    """Role of the columns that nobody has decided yet, as it was rehearsed; None if there are none."""

    def command(self, recipe: str) -> str:
        """The decision as a command about a recipe file."""
        words = [f"{name}={role}" for name, role in self.roles.items()]
        words += [] if self.unit is None else ["--unit", self.unit]
        accepts = not words
        words += ["--accept"] if accepts else []
        words += [] if self.rest is None else ["--rest", self.rest]
        why = ' --reason "WHY NO ATTACKER KNOWS THEM"' if accepts else ""
        return f"sfumato decide {' '.join(map(shlex.quote, [recipe, *words]))} --by YOUR-NAME{why}"

    def call(self) -> str:
        """The decision as a call in Python."""
        if self.roles:
            return f"sfumato.decide(recipe, {dict(self.roles)!r}, by=...)"
        if self.unit is not None:
            return f"sfumato.decide(recipe, unit={self.unit!r}, by=...)"
        return "sfumato.decide(recipe, accept=True, by=..., reason=...)"

    def to_dict(self) -> dict[str, object]:
        """The way as plain data, for a button of the app."""
        return {"does": self.does, "roles": dict(self.roles), "unit": self.unit}


def undeclared(knows: Sequence[str], manifest: Plain) -> list[str]:
    """The known columns that are no quasi-identifiers."""
    columns = manifest.get("columns") or {}
    roles = {name: column.get("role") if isinstance(column, Mapping) else column for name, column in columns.items()}
    return [name for name in knows if roles.get(name) != Role.QUASI.value]


def whose_rows(identifier: str) -> tuple[WayOut, ...]:
    """The two ways to say whose rows have the same value of an identifier."""
    return (
        WayOut(does="say that every row is a different person", roles={}, unit="row"),
        WayOut(does=f"say that {identifier} names the person, who may have several rows", roles={}, unit=identifier),
    )


def ways_out(
    attacks: Sequence[Plain], limits: Sequence[Plain], manifest: Plain, verdicts: Sequence[Plain] = ()
) -> tuple[WayOut, ...]:
    """The three ways if the limit on risk is exceeded, and only by attackers who know any columns; else none.

    Whose rows they are comes first: where a verdict on that is missing, the ways are those to say it.

    Without all their undeclared columns, such attackers know quasi-identifiers only, which the models protect. Where
    fewer columns suffice (``enough`` in the detail of the attack), only these are to be dropped.
    """
    doubtful = next((one for one in verdicts if one.get("model") == SEVERAL_ROWS and one.get("column")), None)
    if doubtful is not None:
        return whose_rows(str(doubtful["column"]))
    limit = next((one for one in limits if one.get("limit") == "risk"), None)
    if limit is None or limit.get("met") is not False or limit.get("accepted"):
        return ()
    exceeding = [
        attack
        for attack in attacks
        if limit_of(str(attack.get("discloses"))) == "risk"
        and attack.get("risk") is not None
        and attack["judged"] > limit["wanted"]
    ]
    if not exceeding or not all(attack.get("any_columns") for attack in exceeding):
        return ()
    widest = max(exceeding, key=lambda attack: len(attack.get("knows") or ()))
    others = undeclared(widest.get("knows") or (), manifest)
    if not others:
        return ()
    names = (widest.get("detail") or {}).get("enough") or others
    # Masking a column changes the levels of the others, so only masking all of them is sure to suffice.
    masked = "it" if others == names and len(names) == 1 else "them" if others == names else ", ".join(others)
    return (
        WayOut(does=f"drop {', '.join(names)}", roles=dict.fromkeys(names, Role.DROP.value)),
        WayOut(does=f"mask {masked} with the quasi-identifiers", roles=dict.fromkeys(others, Role.QUASI.value)),
        WayOut(does=f"accept attackers who know {'it' if len(names) == 1 else 'them'}", roles={}),
    )
