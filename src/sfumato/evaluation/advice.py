"""Advice for attacks that exceed their limit: which columns, parameters or records to change, with figures.

For the owner of the data only: it names columns and counts of the original.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from sfumato.attacks import Attack
from sfumato.errors import SfumatoError
from sfumato.evaluation.disclosures import disclosure_of
from sfumato.evaluation.formatting import (
    Plain,
    attack_label,
    column_weights,
    interval_ends,
    join_words,
    number,
    percent,
    readable_name,
)
from sfumato.evaluation.limits import limit_of
from sfumato.masking.base import method_of
from sfumato.masking.model import model_of
from sfumato.registry import registry


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One attack that exceeds its limit, and the changes that would reduce its risk."""

    attack: str
    """Its label, as in the tables."""
    discloses: str
    finding: str
    """Its risk and its limit, in a sentence."""
    changes: tuple[str, ...]
    """What to change, the most effective first."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "discloses": self.discloses,
            "finding": self.finding,
            "changes": list(self.changes),
        }


def advice(attacks: Sequence[Plain], limits: Sequence[Plain], manifest: Plain) -> tuple[Advice, ...]:
    """Advice for every attack beyond its limit; nothing for limits that are met.

    ``attacks`` and ``limits`` are the entries that :class:`~sfumato.evaluation.Evaluation` gives: the ``judged`` risk
    of an attack is compared with the ``wanted`` value of its limit. ``manifest`` is the public one of the release.
    """
    items: list[Advice] = []
    for limit in limits:
        wanted = limit.get("wanted")
        if wanted is None or limit.get("met"):
            continue
        ofkind = [a for a in attacks if limit_of(str(a.get("discloses"))) == limit.get("limit")]
        exceeding = [a for a in ofkind if a.get("risk") is not None and a["judged"] > wanted]
        items.extend(
            _about(attack, wanted, manifest) for attack in sorted(exceeding, key=lambda attack: -float(attack["high"]))
        )
    return _without_repetition(items)


def _without_repetition(items: Sequence[Advice]) -> tuple[Advice, ...]:
    """Several attacks often call for the same change: it is named once."""
    seen: set[str] = set()
    kept: list[Advice] = []
    for item in items:
        new = tuple(sentence for sentence in item.changes if sentence not in seen)
        seen.update(new)
        kept.append(replace(item, changes=new or ("The changes above also address this attack.",)))
    return tuple(kept)


def _about(attack: Plain, wanted: float, manifest: Plain) -> Advice:
    kind = str(attack.get("discloses"))
    interval = interval_ends(attack["low"], attack["high"])
    finding = f"It {disclosure_of(kind).achieves} {percent(attack['risk'])} of the targets ({interval})"
    if kind != "identity":
        finding += f"; beyond the reference that is up to {percent(attack['judged'])} of what was left to learn"
    finding += f". The limit is {percent(wanted)}."
    rules = (_precision, _remedy, _columns, _parameters, _models, _secret, _records)
    changes = tuple(sentence for rule in rules for sentence in rule(attack, wanted, manifest))
    return Advice(attack=attack_label(attack), discloses=kind, finding=finding, changes=changes)


def _precision(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """The interval may be wide only because there were few targets."""
    if attack["risk"] > wanted or attack.get("discloses") != "identity":
        return []
    needed = _targets_needed(float(attack["risk"]), wanted)
    n_targets = int(attack.get("tried") or 0)
    if needed is None or needed <= n_targets:
        return []
    rows = manifest.get("rows")
    if isinstance(rows, int) and needed > rows:
        return [
            f"The risk itself is within the limit; the upper end of its interval is not, and the release has too few "
            f"records ({number(rows)}) to show more. Mask more, or release more records."
        ]
    why = f"time ran out after {number(n_targets)}" if attack.get("stopped") else f"there were only {number(n_targets)}"
    return [
        f"The risk itself is within the limit; the upper end of its interval is not, because {why} targets. About "
        f"{number(needed)} targets would be enough at the same risk: allow more targets or more time."
    ]


def _targets_needed(share: float, wanted: float) -> int | None:
    """How many targets make the upper end of Wilson's interval of this share equal to the limit."""
    if not share < wanted:
        return None
    z = 1.96
    return ceil(z * z * wanted * (1 - wanted) / (wanted - share) ** 2)


def _remedy(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """What the attack names as its own remedy."""
    kind = _class_of(attack)
    remedy = kind.remedy(attack.get("detail") or {}) if kind is not None else None
    return [] if remedy is None else [remedy]


def _class_of(attack: Plain) -> type[Attack] | None:
    """The class of an attack; None if it is not installed."""
    try:
        kind = registry("attack").get(str(attack.get("attack")))
    except (SfumatoError, ImportError):
        return None
    return kind if issubclass(kind, Attack) else None


def _columns(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    without = attack.get("without") or {}
    better = sorted((entry["risk"], name) for name, entry in without.items() if entry["risk"] < attack["risk"])
    if better:
        falls = [f"{percent(value)} without “{name}”" for value, name in better[:3]]
        sentence = f"Generalize or remove columns: the risk falls to {join_words(falls)}."
        sufficient = [f"“{name}”" for _, name in better if without[name].get("high", 1.0) <= wanted]
        if sufficient:
            sentence += f" Removing {join_words(sufficient, last='or')} alone would be enough."
        return [sentence]
    weights = column_weights(attack, 100)
    if len(weights) < 2:
        return []
    even = 1 / len(weights)
    strong = [f"“{name}” ({percent(value, digits=0)})" for name, value in weights[:3] if value > 1.2 * even]
    if not strong:
        return ["All known columns contribute about equally: mask all of them more, or release fewer."]
    it = "it" if len(strong) == 1 else "them"
    return [f"The columns that contribute most to this attack: {join_words(strong)}. Mask {it} more than the others."]


def _parameters(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """The parameters of the published steps on known columns, and the direction that protects more."""
    sentences: list[str] = []
    knows = set(attack.get("knows") or ())
    for step in manifest.get("steps", ()):
        name = str(step.get("step"))
        if step.get("columns") is not None and knows and not knows & set(step["columns"]):
            continue
        for parameter, direction in method_of(step).stronger.items():
            values = _values(step.get("parameters", {}), parameter)
            if values:
                change = "Raise" if direction == "more" else "Lower"
                now = join_words(list(dict.fromkeys(number(value) for value in values)))
                sentences.append(f"{change} “{parameter}” of {readable_name(name)} (now {now}).")
    exploited = _exploited(attack, manifest)
    if exploited and sentences:
        sentences.append(
            f"Keeping {join_words([readable_name(name) for name in exploited])} secret is no protection: assume that "
            "attackers know the method."
        )
    return sentences


def _values(parameters: Plain, name: str) -> list[float]:
    """A parameter's numbers, its own or those of its groups."""
    nested = [group.get(name) for group in parameters.get("groups") or () if isinstance(group, Mapping)]
    return [value for value in (parameters.get(name), *nested) if isinstance(value, int | float)]


def _exploited(attack: Plain, manifest: Plain) -> list[str]:
    kind = _class_of(attack)
    return [] if kind is None else list(kind.exploited(manifest.get("steps", ())))


def _models(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """For truthful releases: the k of k-anonymity at which a random choice stays within the limit."""
    steps = manifest.get("steps") or ()
    kind = _class_of(attack)
    if kind is not None and not kind.bounded_by_k:
        return []
    if attack.get("discloses") != "identity" or not steps or not all(step.get("truthful") for step in steps):
        return []
    needed = ceil(1 / wanted - 1e-9) if wanted > 0 else None
    if needed is None:
        return []
    why = f"a random choice among {needed} records that look alike is right once in {needed}."
    sizes = [
        (size, parameter, name)
        for name, parameters in _published_models(manifest)
        if (parameter := model_of(name).size_parameter) is not None
        and isinstance(size := parameters.get(parameter), int)
    ]
    if not sizes:
        return [f"Require k-anonymity with k = {needed}: {why}"]
    now, parameter, name = max(sizes)
    return [f"Raise {parameter} of {readable_name(name)} from {number(now)} to {needed}: {why}"] if now < needed else []


def _published_models(manifest: Plain) -> list[tuple[str, Plain]]:
    """Name and parameters of each model of a manifest; a bare value is the model's main parameter."""
    return [
        (str(name), parameters if isinstance(parameters, Mapping) else {model_of(str(name)).main or "": parameters})
        for entry in manifest.get("models") or ()
        if isinstance(entry, Mapping)
        for name, parameters in entry.items()
    ]


def _secret(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    match attack.get("discloses"):
        case "attribute":
            secret = f"“{attack.get('secret')}”"
            required = {name for name, _ in _published_models(manifest) if "attribute" in model_of(name).protects}
            if required:
                return [f"Tighten {join_words(sorted(required))} on {secret}, or generalize {secret} itself."]
            return [
                f"Require l-diversity or t-closeness on {secret}: records that look alike share the same sensitive "
                f"value here, however many they are. Or generalize {secret} itself."
            ]
        case "membership":
            return ["Release a sample, or mask more: members have released rows close to their own values."]
        case "singling-out":
            return ["Generalize the columns that the descriptions use, or require k-anonymity over all of them."]
        case "link":
            return ["Delete and add more edges at random, or release clusters of nodes with counts."]
        case "result":
            return [
                "Hide results with a support well below the one that analysts use, so that they are no near misses."
            ]
        case _:
            return []


def _records(attack: Plain, wanted: float, manifest: Plain) -> list[str]:
    """The effect of suppressing the records that the attack found with certainty."""
    certain, tried = (int(attack.get(key) or 0) for key in ("certain_hits", "tried"))
    hits = float(attack.get("hits") or 0.0)
    if attack.get("discloses") != "identity" or not certain or not tried:
        return []
    if certain < 0.95 * int(attack.get("certain") or 0):
        return []  # the attack's own certainty is not reliable
    share, left = certain / tried, (hits - certain) / tried
    if share > 0.2:
        return [f"{percent(share)} of all records are found with certainty: too many to suppress one by one."]
    were = "was" if certain == 1 else "were"
    enough = "which would be enough" if left <= wanted else "which would not be enough by itself"
    return [
        f"{number(certain)} of {number(tried)} targets {were} found with certainty. "
        f"Suppressing such records, {percent(share)} of all, would reduce the risk to about {percent(left)}, {enough}."
    ]
