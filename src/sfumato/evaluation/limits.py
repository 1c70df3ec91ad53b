"""Limits on disclosure risk: which value of an attack is compared with a limit, and the result of the comparison.

This is the only place that knows the rule. Reports and the terminal read ``judged`` and ``reference`` from the attack's
entry (:func:`sfumato.evaluation.run.attack_to_dict`) and never compute them again.

| attack on | compared with the limit |
|---|---|
| identity, columns declared as known | upper end of the interval of the risk |
| identity, any released columns | the same, unless the recipe accepts these attackers (``accepted``) |
| attribute, membership, singling out, result | upper end of the interval of the excess over the reference |

The excess is a share of what was left to learn: (risk - reference) / (1 - reference).

The reference is the success rate without the person's record: the baseline, or the control group, whichever leaves less
risk. A small control group proves little: the interval of the excess counts the uncertainty of both groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.attacks import Discloses, Outcome, risk
from sfumato.attacks.evaluation.outcome import excess
from sfumato.errors import NotApplicable, OutOfMemory, OutOfTime
from sfumato.evaluation.formatting import attack_label, digits_beside, interval_ends, percent
from sfumato.recipe import Limits
from sfumato.stats import excess_high, wilson


@dataclass(frozen=True, kw_only=True)
class LimitResult:
    """A limit, the largest value that was compared with it, and whether it is met."""

    limit: str
    """Its name in a recipe: ``risk`` (identity), ``attribute``, ``membership``, ``singling-out`` or ``result``."""
    wanted: float
    value: float | None
    """The largest judged risk; None when no attack of this kind has a result."""
    met: bool | None
    """None when an attack ran out of time or memory that might have exceeded the limit, or when attacks judged rows and
    a person has several. Only True counts as met."""
    attack: str | None
    """The attack with the largest judged risk."""
    stopped: tuple[str, ...] = ()
    """Attacks that ran out of time or memory without a result."""
    accepted: Mapping[str, Any] | None = None
    """For attackers who know undeclared columns, where the recipe accepts them: who, why, and the value accepted."""

    @property
    def words(self) -> str:
        """The limit with the value that was compared with it, in words."""
        value = "could not be judged"
        if self.value is not None:
            value = f"may be as high as {self.value:.{digits_beside(self.value, self.wanted, 3)}f}"
        return f"limit of {self.limit} {self.wanted}: {self.attack or 'it'} {value}"

    def to_dict(self) -> dict[str, Any]:
        entry = {key: getattr(self, key) for key in ("limit", "wanted", "value", "met", "attack")}
        stopped = {"stopped": list(self.stopped)} if self.stopped else {}
        return {**entry, **stopped, **({"accepted": dict(self.accepted)} if self.accepted else {})}


def reference_rate(outcome: Outcome) -> float:
    """The success rate that is deducted from the upper end of an attack's interval, so that the judged risk remains.

    For identity it is 0. A control group is deducted at a rate between the lower end of its interval and the observed
    one: the joint interval of both groups is narrower than the distance between their ends.
    """
    if outcome.discloses is Discloses.IDENTITY:
        return 0.0
    baseline, control, main = outcome.baseline, outcome.control, risk(outcome)
    deducted = [0.0]
    if baseline is not None:
        deducted.append(baseline.rate)
    if control is not None:
        low = wilson(control.hits, control.trials)[0]
        most = excess_high(main.value, main.high, control.rate, low)
        deducted.append((main.high - most) / (1 - most) if most < 1 else low)
    return max(deducted)


def judged_risk(outcome: Outcome) -> float:
    """The value of an outcome that is compared with a limit."""
    return excess(risk(outcome).high, reference_rate(outcome))


def limit_position(wanted: float, reference: float) -> float:
    """The upper interval end at which an attack with this reference reaches its limit: the inverse of the rule.

    >>> limit_position(0.5, 0.0), limit_position(0.5, 0.5)
    (0.5, 0.75)
    """
    return reference + wanted * (1 - reference)


def limit_of(discloses: str) -> str:
    """The name of the limit on a kind of disclosure: identity is limited by ``risk``."""
    return "risk" if discloses == Discloses.IDENTITY else discloses


def same_limit(share: float, outcomes: Sequence[Outcome | NotApplicable]) -> Limits:
    """The same limit for every kind of disclosure that was attacked."""
    fields = Limits.names()
    shares: dict[str, Any] = {fields[limit_of(_discloses(item))]: share for item in outcomes}
    return Limits(**shares)


def judge_limits(
    limits: Limits, outcomes: Sequence[Outcome | NotApplicable], *, for_people: bool = True
) -> tuple[LimitResult, ...]:
    """Compare each limit with the largest judged risk of its kind.

    A limit on risk is compared with attackers who know the quasi-identifiers and with those who know any released
    columns; the latter are left out if ``limits.accepted`` says so. A limit without any result is not met. If an attack
    of its kind ran out of time or memory, the limit is not met or, where the other attacks stay within it, not checked
    (``met`` is None). So it is if the attacks judged rows and not people (``for_people``).
    """
    return judge_entries(limits, [_entry(item) for item in outcomes], for_people=for_people)


def judge_entries(
    limits: Limits, entries: Sequence[Mapping[str, Any]], *, for_people: bool = True
) -> tuple[LimitResult, ...]:
    """The same for entries of the ``attacks`` list (:func:`sfumato.evaluation.run.attack_to_dict`)."""
    results = []
    for name, wanted in limits.items().items():
        ofkind = [entry for entry in entries if limit_of(str(entry["discloses"])) == name]
        accepted = _accepted(limits, [entry for entry in ofkind if entry.get("any_columns")])
        if accepted is not None:
            ofkind = [entry for entry in ofkind if not entry.get("any_columns")]
        values = [(entry["judged"], entry["attack"]) for entry in ofkind if entry["risk"] is not None]
        value, attack = max(values, default=(None, None))
        met: bool | None = value is not None and value <= wanted
        declared = [entry for entry in ofkind if not entry.get("any_columns")]
        if met and declared and not any(entry["risk"] is not None for entry in declared):
            value, attack, met = None, None, False  # what the declared attackers achieve is not known
        stopped = tuple(str(entry["attack"]) for entry in ofkind if entry["risk"] is None and entry.get("stopped"))
        if (stopped and (met or value is None)) or (met and not for_people):
            met = None
        results.append(
            LimitResult(
                limit=name, wanted=wanted, value=value, met=met, attack=attack, stopped=stopped, accepted=accepted
            )
        )
    return tuple(results)


def judged_words(limit: Mapping[str, Any], entries: Sequence[Mapping[str, Any]] = ()) -> str:
    """What was compared with a limit, in words: the value, which end of which interval it is, and of which attack.

    >>> attack = {"attack": "attribute-linkage", "discloses": "attribute", "secret": "hiv", "judged": 0.066}
    >>> entry = attack | {"risk": 0.29, "low": 0.27, "high": 0.312, "reference": 0.263}
    >>> judged_words({"limit": "attribute", "value": 0.066, "attack": "attribute-linkage"}, [entry])
    "judged 6.6%: upper end of the excess over 26.3%, the rate without the person's record; attribute linkage: hiv is \
right about 29% (27% to 31.2%)"
    """
    if limit.get("value") is None:
        return "no attack has a result"
    same = [
        e for e in entries if limit_of(str(e["discloses"])) == limit["limit"] and e["attack"] == limit.get("attack")
    ]
    judged = [e for e in same if e.get("judged") is not None and not (limit.get("accepted") and e.get("any_columns"))]
    found = max(judged, key=lambda entry: float(entry["judged"]), default=None)
    end = "upper end of the interval of the risk"
    if limit["limit"] != "risk":
        known = "" if found is None else f"{percent(found.get('reference'))}, "
        end = f"upper end of the excess over {known}the rate without the person's record"
    words = f"judged {percent(limit['value'])}: {end}"
    if found is None:
        return words
    ends = interval_ends(found.get("low"), found.get("high"))
    return f"{words}; {attack_label(found)} is right about {percent(found['risk'])} ({ends})"


def _accepted(limits: Limits, entries: Sequence[Mapping[str, Any]]) -> dict[str, object] | None:
    """The acceptance with the value that it covers; None without an acceptance or without such an attack."""
    if limits.accepted is None or not entries:
        return None
    judged = [entry for entry in entries if entry["risk"] is not None]
    worst = max(judged, key=lambda entry: float(entry["judged"]), default=None)
    return {
        **limits.accepted.to_dict(),
        "value": worst["judged"] if worst is not None else None,
        "attack": worst["attack"] if worst is not None else None,
        "knows": list(worst.get("knows", ())) if worst is not None else [],
    }


def _entry(item: Outcome | NotApplicable) -> dict[str, object]:
    """What judging needs of an entry of the ``attacks`` list."""
    if isinstance(item, Outcome):
        return {
            "attack": item.attack,
            "discloses": str(item.discloses),
            "risk": item.main.rate,
            "judged": judged_risk(item),
            "any_columns": item.any_columns,
            "knows": item.knows,
        }
    return {
        "attack": item.facts.get("attack"),
        "discloses": _discloses(item),
        "risk": None,
        "any_columns": bool(item.facts.get("any_columns")),
        "stopped": isinstance(item, (OutOfTime, OutOfMemory)),
    }


def _discloses(item: Outcome | NotApplicable) -> str:
    return str(item.discloses if isinstance(item, Outcome) else item.facts.get("discloses"))
