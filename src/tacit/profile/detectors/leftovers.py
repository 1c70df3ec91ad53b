"""Columns that nothing else recognized but that cannot be harmless: unique codes, ids, free text."""

from __future__ import annotations

from tacit.profile.facts import Facts
from tacit.profile.finding import Detector, Finding
from tacit.schema import Kind, Role

__all__ = ["DETECTORS"]

_ID = ("id", "ids", "identifier", "key", "code", "number", "no", "nr", "num", "index", "ref", "reference", "pseudonym")


def unique_code(facts: Facts) -> Finding | None:
    """A value of its own in (nearly) every row, or a name that says id."""
    if facts.kind not in (Kind.CATEGORY, Kind.INTEGER) or facts.present < 10:
        return None
    said = facts.says("id", "ids", "identifier", "pseudonym") or (facts.spread > 0.9 and facts.says(*_ID))
    if said and facts.spread > 0.5:
        return _code(0.7, f"the name says {said}, and {facts.spread:.0%} of the rows have a value of their own")
    if said in ("id", "ids", "identifier", "pseudonym") and facts.distinct > 50 and facts.spread > 0.01:
        reason = f"the name says {said}, and {1 / facts.spread:.1f} rows share one: if it is a person, set `unit` to it"
        return _code(0.6, reason)
    if facts.spread >= 0.98 and facts.present >= 50:
        return _code(
            0.5, f"{facts.spread:.0%} of the rows have a value of their own, like a number given to each person"
        )
    return None


def free_text(facts: Facts) -> Finding | None:
    """Sentences, in which people may be named."""
    if facts.kind is not Kind.CATEGORY or facts.texts.is_empty():
        return None
    said = facts.says("comment", "comments", "note", "notes", "remark", "remarks", "text", "narrative", "description")
    long = float((facts.texts.str.count_matches(r"\s") >= 4).mean() or 0.0)  # type: ignore[arg-type]
    if long < 0.5 or facts.spread < 0.5 or (long < 0.8 and not said):
        return None
    return Finding(
        detector="free text",
        role=Role.IDENTIFIER,
        reason=f"{long:.0%} of the values are sentences, which may name people; no method here can check them",
        confidence=0.65,
        hipaa="R",
    )


def _code(confidence: float, reason: str) -> Finding:
    return Finding(detector="a unique code", role=Role.IDENTIFIER, reason=reason, confidence=confidence, hipaa="R")


DETECTORS: tuple[Detector, ...] = (unique_code, free_text)
