"""What to change when an attack succeeds too often: columns, parameters, records, each with the figure behind it.

For the owner alone: it speaks of columns and counts that strangers have no business with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from sfumato.attacks.base import Attack
from sfumato.errors import SfumatoError
from sfumato.masking.base import method_of
from sfumato.masking.model import model_of
from sfumato.registry import registry
from sfumato.reports.glossary import title_of
from sfumato.reports.text import attack_label, giveaway, listed, number, percent

__all__ = ["Advice", "advice"]

Plain = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One attack that went too far, and what would hold it back."""

    attack: str
    """Its label, as in the tables."""
    discloses: str
    finding: str
    """How far it went, and how far it may go."""
    changes: tuple[str, ...]
    """What to change, the most telling first."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "discloses": self.discloses,
            "finding": self.finding,
            "changes": list(self.changes),
        }


def advice(attacks: Sequence[Plain], limits: Sequence[Plain], manifest: Plain) -> tuple[Advice, ...]:
    """For every attack beyond its limit what to change; nothing where limits are met or none was set.

    ``manifest`` is the release's public one: its steps and models are what can be turned.
    """
    found: list[Advice] = []
    for limit in limits:
        kind = "identity" if limit.get("limit") == "risk" else str(limit.get("limit"))
        wanted = limit.get("wanted")
        if wanted is None or limit.get("met"):
            continue
        told = sorted(
            (attack for attack in attacks if attack.get("discloses") == kind and attack.get("risk") is not None),
            key=lambda attack: -float(attack["high"]),
        )
        beyond = [attack for attack in told if judged(attack) > wanted]
        found.extend(_about(attack, wanted, manifest) for attack in beyond)
    return _said_once(found)


def _said_once(found: Sequence[Advice]) -> tuple[Advice, ...]:
    """The same without repetitions: several attacks are often held back by one and the same change."""
    said: set[str] = set()
    kept: list[Advice] = []
    for item in found:
        fresh = tuple(sentence for sentence in item.changes if sentence not in said)
        said.update(fresh)
        kept.append(replace(item, changes=fresh or ("What was said above holds this attack back too.",)))
    return tuple(kept)


def judged(attack: Plain) -> float:
    """What a limit is compared with: the upper end of the interval, beyond the reference except for identity."""
    high = float(attack["high"])
    if attack.get("discloses") == "identity":
        return high
    reference = max(attack.get("baseline") or 0.0, attack.get("control") or 0.0)
    return max(0.0, (high - reference) / (1 - reference)) if reference < 1 else 0.0


def _about(attack: Plain, wanted: float, manifest: Plain) -> Advice:
    kind = str(attack.get("discloses"))
    verb = {
        "identity": "It finds",
        "attribute": "It learns the secret of",
        "membership": "It is right about membership for",
    }.get(kind, "It succeeds for")
    finding = (
        f"{verb} {percent(attack['risk'])} of the people sought ({percent(attack['low'])} to {percent(attack['high'])})"
    )
    if kind == "identity":
        finding += f"; the limit is {percent(wanted)}."
    else:
        finding += (
            f", {percent(judged(attack))} of what was left to learn at the upper end; the limit is {percent(wanted)}."
        )
    rules = (_precision, _families, _columns, _parameters, _models, _secret, _records)
    changes = tuple(sentence for rule in rules for sentence in rule(attack, wanted, manifest))
    return Advice(attack=attack_label(attack), discloses=kind, finding=finding, changes=changes)


def _precision(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """An interval that is wide for want of people sought says less about the release than about the test."""
    if attack["risk"] > wanted or attack.get("discloses") != "identity":
        return []
    needed = _tries(float(attack["risk"]), wanted)
    sought = int(attack.get("tried") or 0)
    if needed is None or needed <= sought:
        return []
    why = "time was up" if attack.get("stopped") else "no more were sought"
    return [
        f"The share itself is within the limit; its interval is not, because {why} after {number(sought)} people. "
        f"With about {number(needed)} people and the same share it would be: allow more tries or more time."
    ]


def _families(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """No k of single rows holds back who looks for all rows of a household."""
    if attack.get("attack") != "household-linkage":
        return []
    column = (attack.get("detail") or {}).get("column")
    named = f"“{column}”" if column else "the column"
    return [
        f"Leave out {named}, which tells what rows belong together: a whole family is rare however common its members "
        "are. Or coarsen until whole households look alike."
    ]


def _tries(share: float, wanted: float) -> int | None:
    """How many people must be sought for the interval of this share to end below the limit."""
    if not share < wanted:
        return None
    z = 1.96
    # The upper end of Wilson's interval, solved for the number of tries at the limit.
    return ceil(z * z * wanted * (1 - wanted) / (wanted - share) ** 2)


def _columns(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    without = attack.get("without") or {}
    better = sorted(
        ((entry["risk"], name) for name, entry in without.items() if entry["risk"] < attack["risk"]),
    )
    if better:
        told = [f"{percent(value)} without “{name}”" for value, name in better[:3]]
        sentence = f"Coarsen columns, or leave them out: the share falls to {listed(told)}."
        alone = [f"“{name}”" for value, name in better if without[name].get("high", 1.0) <= wanted]
        if alone:
            sentence += f" Leaving out {listed(alone, last='or')} alone would be enough."
        return [sentence]
    credit = giveaway(attack, 100)
    if len(credit) < 2:
        return []
    even = 1 / len(credit)
    told = [f"“{name}” ({percent(value, digits=0)})" for name, value in credit[:3] if value > 1.2 * even]
    if not told:
        return ["By itself no known column says much more than another: mask all of them more, or release fewer."]
    it = "it" if len(told) == 1 else "them"
    return [f"What tells people apart here comes above all from {listed(told)}: mask {it} more than the others."]


def _parameters(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """The parameters of the published steps on known columns, and which way to turn them."""
    told: list[str] = []
    knows = set(attack.get("knows") or ())
    for step in manifest.get("steps", ()):
        name = str(step.get("step"))
        if step.get("columns") is not None and knows and not knows & set(step["columns"]):
            continue
        parameters = step.get("parameters", {})
        for parameter, way in method_of(step).stronger.items():
            values = _given(parameters, parameter)
            if values:
                move = "Raise" if way == "more" else "Lower"
                now = listed(list(dict.fromkeys(number(value) for value in values)))
                told.append(f"{move} “{parameter}” of {title_of(name)}, which is {now} now.")
    exploited = _exploited(attack, manifest)
    if exploited and told:
        told.append(
            f"Keeping {listed([title_of(name) for name in exploited])} secret would not help: a method that protects "
            "only while nobody knows it has to be counted as known."
        )
    return told


def _given(parameters: Plain, name: str) -> list[float]:
    """A parameter's numbers, its own or those of its groups."""
    nested = [group.get(name) for group in parameters.get("groups") or () if isinstance(group, Mapping)]
    return [value for value in (parameters.get(name), *nested) if isinstance(value, int | float)]


def _exploited(attack: Plain, manifest: Plain) -> list[str]:
    try:
        part = registry("attack").get(str(attack.get("attack")))
    except (SfumatoError, ImportError):
        return []
    return list(part.exploited(manifest.get("steps", ()))) if issubclass(part, Attack) else []


def _models(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """For releases that only coarsen: the k that keeps a random pick within the limit."""
    steps = manifest.get("steps") or ()
    if attack.get("attack") == "household-linkage":
        return []
    if attack.get("discloses") != "identity" or not steps or not all(step.get("truthful") for step in steps):
        return []
    needed = ceil(1 / wanted - 1e-9) if wanted > 0 else None
    if needed is None:
        return []
    sizes = [
        (size, parameter, name)
        for name, parameters in _published_models(manifest)
        if (parameter := model_of(name).size_parameter) is not None
        and isinstance(size := parameters.get(parameter), int)
    ]
    if not sizes:
        return [f"Require k-anonymity with k = {needed}: {_coin(needed)}"]
    now, parameter, name = max(sizes)
    if now >= needed:
        return []
    return [f"Raise {parameter} of {title_of(name)} from {number(now)} to {needed}: {_coin(needed)}"]


def _coin(size: int) -> str:
    return f"among {size} records that look alike a pick is right once in {size}."


def _published_models(manifest: Plain) -> list[tuple[str, Plain]]:
    """Name and parameters of each model of a manifest, where a bare value is the model's main parameter."""
    found: list[tuple[str, Plain]] = []
    for entry in manifest.get("models") or ():
        for name, inside in entry.items() if isinstance(entry, Mapping) else ():
            found.append(
                (str(name), inside if isinstance(inside, Mapping) else {model_of(str(name)).main or "": inside})
            )
    return found


def _secret(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    match attack.get("discloses"):
        case "attribute":
            secret = f"“{attack.get('secret')}”"
            about = sorted({name for name, _ in _published_models(manifest) if "attribute" in model_of(name).protects})
            if about:
                return [f"Ask more of {listed(about)} on {secret}, or coarsen {secret} itself."]
            return [
                f"Require l-diversity or t-closeness on {secret}: people whose records look alike share the secret "
                f"here, however many they are. Or coarsen {secret} itself."
            ]
        case "membership":
            return ["Release a sample, or mask more: who is in the data shows where released rows lie close to people."]
        case "singling-out":
            return ["Coarsen the columns that descriptions are made of, or require k-anonymity over all of them."]
        case _:
            return []


def _records(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """What leaving out the records found for certain would bring."""
    certain, hits, tried = (int(attack.get(key) or 0) for key in ("certain_hits", "hits", "tried"))
    if attack.get("discloses") != "identity" or not certain or not tried:
        return []
    if certain < 0.95 * int(attack.get("certain") or 0):
        return []  # what this attack holds for certain is not
    share, left = certain / tried, (hits - certain) / tried
    if share > 0.2:
        return [f"{percent(share)} of all records are found for certain: too many to leave out one by one."]
    enough = "which would be enough" if left <= wanted else "which would not be enough by itself"
    return [
        f"{number(certain)} of {number(tried)} people sought were found for certain. Leaving such records out, "
        f"{percent(share)} of all, would bring the share down to about {percent(left)}, {enough}."
    ]
