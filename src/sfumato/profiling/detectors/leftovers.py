"""Detectors for columns that no other detector recognizes: unique codes, amounts, free text."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.facts import Facts
from sfumato.profiling.detectors.finding import Detector, Finding

_ID = ("id", "ids", "identifier", "key", "code", "number", "no", "nr", "num", "index", "ref", "reference", "pseudonym")
_PERSON = (
    *("id", "ids", "identifier", "pseudonym", "pid", "person id", "subject", "subject no", "participant", "respondent"),
    *("individual", "caseid", "case id", "idcode", "seqn", "seqno", "patient", "patient nr", "person", "person no"),
    *("user", "user id", "userid", "customer id", "visitor id", "device id"),
)
"""Names of numbers that identify people, whether or not a person has several rows."""
_REMARKS = (
    *("comment", "comments", "note", "notes", "remark", "remarks", "text", "free text", "narrative", "description"),
    *("memo", "annotation", "bemerkung", "bemerkungen", "kommentar", "anmerkung", "anmerkungen", "notiz", "notizen"),
    *("freitext", "beschreibung", "anamnese", "comentario", "comentarios", "observacion", "observaciones", "notas"),
    *("commentaire", "commentaires", "remarque", "remarques", "commento", "commenti", "osservazioni", "opmerking"),
    *("opmerkingen", "toelichting"),
)
_BINS = 10
_ENOUGH = 200
"""Fewest values from which the shape of a distribution is judged."""


def unique_code(facts: Facts) -> Finding | None:
    """A unique value in nearly every row, or a name that indicates an identifier."""
    if facts.kind not in (Kind.CATEGORY, Kind.INTEGER) or facts.present < 10:
        return None
    said = facts.says(*_PERSON) or (facts.spread > 0.9 and facts.says(*_ID))
    if said and facts.spread > 0.5:
        return _code(0.7, f"the name says {said}, and {facts.spread:.0%} of the values are unique")
    if said and facts.distinct > 2 and facts.spread > 0.0001:
        return _code(0.6, f"the name says {said}; {1 / facts.spread:.1f} rows share a value on average")
    if facts.spread >= 0.98 and facts.present >= 50 and not _is_amount(facts):
        return _code(0.5, f"{facts.spread:.0%} of the values are unique, as in a number assigned to each person")
    return None


def amount(facts: Facts) -> Finding | None:
    """Measurements with mostly unique values, such as prices or debts: knowing the value identifies the row."""
    if facts.spread < 0.5 or facts.present < 50 or not _is_amount(facts):
        return None
    return Finding(
        detector="an amount",
        role=Role.QUASI,
        reason=f"an amount, and {facts.spread:.0%} of the values are unique: knowing the value identifies the row;"
        " if no outsider knows it but it must stay secret, make it sensitive",
        confidence=0.45,
        bands=True,
    )


def _is_amount(facts: Facts) -> bool:
    """Whether numbers are measurements rather than assigned numbers.

    Assigned numbers are spread evenly or over separate ranges. Measurements have fractions, are often round, or have a
    distribution with one peak.
    """
    if facts.kind is Kind.NUMBER:
        return True
    if facts.kind is not Kind.INTEGER or facts.between(-1e12, 1e12) < 1:
        return False
    return float((facts.sample % 10 == 0).mean() or 0.0) > 0.3 or _has_one_peak(facts.sample)  # type: ignore[arg-type]


def _has_one_peak(numbers: pl.Series) -> bool:
    if len(numbers) < _ENOUGH:
        return False
    values = np.sort(numbers.to_numpy())
    edge = len(values) // 100
    counts, _ = np.histogram(values[edge : len(values) - edge], bins=_BINS)
    peak = int(counts.argmax())
    rises = np.concatenate([np.diff(counts[: peak + 1]), -np.diff(counts[peak:])])
    chance = 3 * np.sqrt(np.concatenate([counts[:peak], counts[peak + 1 :]]) + 1)
    return bool((rises >= -chance).all() and min(counts[0], counts[-1]) < counts[peak] / 3)


def free_text(facts: Facts) -> Finding | None:
    """Free text, which may contain names of people."""
    if facts.kind is not Kind.CATEGORY or facts.texts.is_empty():
        return None
    said = facts.says(*_REMARKS)
    spaces = facts.texts.str.count_matches(r"\s")
    long = float((spaces >= 4).mean() or 0.0)  # type: ignore[arg-type]
    several = float((spaces >= 1).mean() or 0.0)  # type: ignore[arg-type]
    if said and several >= 0.5:
        return Finding(
            detector="free text",
            role=Role.IDENTIFIER,
            reason=f"the name says {said}; {several:.0%} of the values have several words and may name people;"
            " if they come from a fixed list, choose another role",
            confidence=0.65,
            hipaa="R",
        )
    if long < 0.8 or facts.spread < 0.5:
        return None
    return Finding(
        detector="free text",
        role=Role.IDENTIFIER,
        reason=f"{long:.0%} of the values are sentences, which may name people and cannot be checked",
        confidence=0.65,
        hipaa="R",
    )


def _code(confidence: float, reason: str) -> Finding:
    return Finding(detector="a unique code", role=Role.IDENTIFIER, reason=reason, confidence=confidence, hipaa="R")


DETECTORS: tuple[Detector, ...] = (unique_code, amount, free_text)
