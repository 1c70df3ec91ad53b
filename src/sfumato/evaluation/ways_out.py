"""Ways out of a limit on risk that is exceeded: drop columns, mask them, accept attackers, or raise k."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.dataset import Role
from sfumato.evaluation.check import SEVERAL_ROWS
from sfumato.evaluation.formatting import Plain
from sfumato.evaluation.limits import limit_of
from sfumato.stats import wilson


@dataclass(frozen=True, kw_only=True)
class WayOut:
    """One decision with which a release may meet what it does not meet now."""

    does: str
    """What it does, in words."""
    roles: Mapping[str, str]
    """New roles of columns; empty if something else is decided."""
    accepts: bool = False
    """Whether the limit on risk leaves out attackers who know columns that are no quasi-identifiers."""
    k: int | None = None
    """The k of k-anonymity; None if it stays."""
    unit: str | None = None
    """Whose privacy is kept: ``row``, or the column with the person; None if that is not what is decided."""
    rest: str | None = None
    """Role of the columns that nobody has decided yet, as it was rehearsed; None if there are none."""

    def command(self, recipe: str) -> str:
        """The decision as a command about a recipe file."""
        words = [f"{name}={role}" for name, role in self.roles.items()]
        words += [] if self.unit is None else ["--unit", self.unit]
        words += ["--accept"] if self.accepts else []
        words += [] if self.k is None else ["--k", str(self.k)]
        words += [] if self.rest is None else ["--rest", self.rest]
        why = ' --reason "WHY NO ATTACKER KNOWS THEM"' if self.accepts else ""
        return f"sfumato decide {' '.join(map(shlex.quote, [recipe, *words]))} --by YOUR-NAME{why}"

    def call(self) -> str:
        """The decision as a call in Python."""
        said = [repr(dict(self.roles))] if self.roles else []
        said += [] if self.unit is None else [f"unit={self.unit!r}"]
        said += ["accept=True"] if self.accepts else []
        said += [] if self.k is None else [f"k={self.k}"]
        return f"sfumato.decide(recipe, {', '.join(said)}, by=...{', reason=...' if self.accepts else ''})"

    def with_k(self, k: int) -> WayOut:
        """The same decision that also raises k."""
        does = self.does if self.k is None else self.does.removesuffix(_raising(self.k))
        return replace(self, does=f"{does}{_raising(k)}" if does else f"raise k to {k}", k=k)

    def to_dict(self) -> dict[str, object]:
        """The way as plain data, for a button of the app."""
        return {
            "does": self.does, "roles": dict(self.roles), "unit": self.unit, "accepts": self.accepts, "k": self.k,
        }  # fmt: skip


def _raising(k: int) -> str:
    return f", and raise k to {k}"


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
    """The ways if the limit on risk is exceeded: three for attackers who know any columns, a larger k for the others.

    There are none where attackers who know the quasi-identifiers exceed it and no larger k is sure to keep them within.

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
    if not exceeding:
        return ()
    wide = [attack for attack in exceeding if attack.get("any_columns")]
    declared = [attack for attack in exceeding if not attack.get("any_columns")]
    if not declared:
        return _against_any_columns(wide, manifest)
    k = _enough_k(limit["wanted"], declared, manifest)
    if k is None:
        return ()
    return tuple(
        way.with_k(k) for way in (_against_any_columns(wide, manifest) if wide else (WayOut(does="", roles={}),))
    )


LARGEST_CLASS = 0.1
"""Largest k that is offered, as a share of the rows."""


def _enough_k(wanted: float, exceeding: Sequence[Plain], manifest: Plain) -> int | None:
    """The smallest k, doubled from the present one, whose worst case meets the limit; None if the models have no k.

    Who knows the quasi-identifiers chooses among k rows that look alike, so one choice in k is correct on average. The
    count may lie a standard deviation above that, and the limit is compared with the upper end of its interval. None
    also if an attack finds more than the present k allows, for example because it guessed the seed: k is no help then.
    """
    sizes = [model["k-anonymity"]["k"] for model in manifest.get("models") or () if "k-anonymity" in model]
    tried = min(int(attack.get("tried") or 0) for attack in exceeding)
    if len(sizes) != 1 or not tried:
        return None
    if any(float(attack["low"]) > 1 / int(sizes[0]) for attack in exceeding):
        return None
    k = 2 * int(sizes[0])
    while k <= int(manifest.get("rows") or 0) * LARGEST_CLASS:
        share = 1 / k + math.sqrt((1 - 1 / k) / k / tried)
        if wilson(min(share, 1.0) * tried, tried)[1] <= wanted:
            return k
        k *= 2
    return None


def _against_any_columns(exceeding: Sequence[Plain], manifest: Plain) -> tuple[WayOut, ...]:
    """Drop, mask or accept the columns that are no quasi-identifiers."""
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
        WayOut(does=f"accept attackers who know {'it' if len(names) == 1 else 'them'}", roles={}, accepts=True),
    )
