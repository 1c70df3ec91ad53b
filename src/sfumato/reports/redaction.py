"""Redaction of reports for outside readers: what each section of a document may show, and why.

Every document of a release, a graph or a model goes through :func:`external`. A section without a rule stays with the
owner. Risks are rounded to three digits and intervals outwards, so that no count of the original follows from them and
no interval becomes narrower; a reason in words is replaced, because it may contain counts. Beside a promise of
differential privacy no section leaves that was measured on the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.evaluation.formatting import Plain, rounded_outwards
from sfumato.measures import measure_of
from sfumato.release.public_folder import Leaving, Why

_ATTACK_KEYS = (
    *("attack", "discloses", "risk", "low", "high", "baseline", "control", "reference", "level"),
    *("knows", "any_columns", "counts", "secret", "setting", "threat", "truth", "outside", "stopped"),
)
_LIMIT_KEYS = ("limit", "wanted", "value", "met", "accepted")
_NO_REASON = "It does not apply to this release."
"""Replaces a reason that may contain counts of the original."""
_DIGITS, _MEASURE_DIGITS = 3, 2


def _rounded(value: float | None, digits: int, how: Literal["down", "near", "up"] = "near") -> float | None:
    """Coarse enough that no count of the original follows from it; an interval only grows."""
    if value is None:
        return None
    return round(value, digits) if how == "near" else rounded_outwards(value, digits, up=how == "up")


def external_attack(attack: Plain) -> dict[str, object]:
    """An entry of the ``attacks`` list without counts of the original."""
    kept = {key: attack[key] for key in _ATTACK_KEYS if key in attack}
    for key in ("risk", "baseline", "control", "reference"):
        if key in kept:
            kept[key] = _rounded(kept[key], _DIGITS)
    exact = kept.get("low") == kept.get("high")  # computed for all records: it stays one figure
    kept["low"] = _rounded(kept.get("low"), _DIGITS, "near" if exact else "down")
    kept["high"] = _rounded(kept.get("high"), _DIGITS, "near" if exact else "up")
    if attack.get("reason"):
        kept["reason"] = _NO_REASON
    if attack.get("detail", {}).get("outsiders"):
        kept["outside"] = True  # whether there was an outside file, not its size
    return kept


def external_measures(measures: Iterable[Plain]) -> list[dict[str, object]]:
    """The measures that may be published, rounded, without values by column."""
    kept = []
    for measure in measures:
        kind = measure_of(str(measure.get("measure")))
        if not kind.publishable:
            continue
        entry: dict[str, object] = {
            "measure": measure["measure"],
            "value": _rounded(measure.get("value"), _MEASURE_DIGITS),
            "columns": {},
            "low": _rounded(measure.get("low"), _MEASURE_DIGITS, "down"),
            "high": _rounded(measure.get("high"), _MEASURE_DIGITS, "up"),
        }
        detail = {key: value for key, value in measure.get("detail", {}).items() if key in kind.publishable_detail}
        kept.append(
            entry | ({"detail": detail} if detail else {}) | ({"reason": _NO_REASON} if measure.get("reason") else {})
        )
    return kept


def external_limit(limit: Plain) -> dict[str, object]:
    """A limit with the upper end of the interval that it was compared with."""
    kept = {key: limit[key] for key in _LIMIT_KEYS if key in limit}
    if kept.get("accepted"):
        kept["accepted"] = {**kept["accepted"], "value": _rounded(kept["accepted"].get("value"), _DIGITS, "up")}
    return {**kept, "value": _rounded(kept.get("value"), _DIGITS, "up")}


def _verdict(verdict: Plain) -> dict[str, object]:
    return {key: verdict[key] for key in ("model", "column", "state", "wanted") if key in verdict}


@dataclass(frozen=True)
class Section:
    """Why a section of a document may leave, and its form for outside readers."""

    why: Why
    redact: Callable[[Any], object] = lambda value: value


SECTIONS: Mapping[str, Section] = {
    **dict.fromkeys(("title", "created", "versions", "recipe_public", "about", "audience"), Section(Why.DECLARED)),
    **dict.fromkeys(("released", "edge_columns", "estimator", "domain"), Section(Why.DECLARED)),
    **dict.fromkeys(("manifest", "files", "column_table", "released_columns", "nodes", "edges"), Section(Why.RELEASED)),
    **dict.fromkeys(("privacy", "membership_bound", "weights"), Section(Why.PAID)),
    **dict.fromkeys(("columns", "standing"), Section(Why.MEASURED)),
    "steps": Section(Why.DECLARED, lambda steps: [{"step": step["step"]} for step in steps]),
    "verdicts": Section(Why.MEASURED, lambda verdicts: [_verdict(verdict) for verdict in verdicts]),
    "attacks": Section(Why.MEASURED, lambda attacks: [external_attack(attack) for attack in attacks]),
    "measures": Section(Why.MEASURED, external_measures),
    "limits": Section(Why.MEASURED, lambda limits: [external_limit(limit) for limit in limits]),
}
"""The sections of documents that outside readers may see. All others are the owner's."""


def external(document: Plain, *, promised: bool = False) -> dict[str, Leaving[object]]:
    """What others may read of a document, with the reason of each section.

    ``promised`` says whether the document is about a release that promises differential privacy.
    """
    return {
        key: Leaving(section.redact(document[key]), section.why)
        for key, section in SECTIONS.items()
        if key in document and not (promised and section.why is Why.MEASURED)
    }
