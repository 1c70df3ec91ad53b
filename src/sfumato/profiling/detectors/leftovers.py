"""Columns that nothing else recognized but that cannot be harmless: unique codes, ids, amounts, free text."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.profiling.facts import Facts
from sfumato.profiling.finding import Detector, Finding
from sfumato.schema import Kind, Role

__all__ = ["DETECTORS"]

_ID = ("id", "ids", "identifier", "key", "code", "number", "no", "nr", "num", "index", "ref", "reference", "pseudonym")
_REMARKS = (
    *("comment", "comments", "note", "notes", "remark", "remarks", "text", "free text", "narrative", "description"),
    *("memo", "annotation", "bemerkung", "bemerkungen", "kommentar", "anmerkung", "anmerkungen", "notiz", "notizen"),
    *("freitext", "beschreibung", "anamnese", "comentario", "comentarios", "observacion", "observaciones", "notas"),
    *("commentaire", "commentaires", "remarque", "remarques", "commento", "commenti", "osservazioni", "opmerking"),
    *("opmerkingen", "toelichting"),
)
_BINS = 10
_ENOUGH = 200
"""Fewer numbers than this show no shape."""


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
    if facts.spread >= 0.98 and facts.present >= 50 and not _is_amount(facts):
        return _code(
            0.5, f"{facts.spread:.0%} of the rows have a value of their own, like a number given to each person"
        )
    return None


def amount(facts: Facts) -> Finding | None:
    """A number that measures something and is the row's own: who knows it (a price, a debt) finds the row."""
    if facts.spread < 0.5 or facts.present < 50 or not _is_amount(facts):
        return None
    return Finding(
        detector="an amount",
        role=Role.QUASI,
        reason=f"an amount, and {facts.spread:.0%} of the rows have a value of their own: who knows it finds the row;"
        " if nobody outside does but it must stay secret, make it sensitive",
        confidence=0.45,
        bands=True,
    )


def _is_amount(facts: Facts) -> bool:
    """Whether numbers measure rather than count people off.

    Numbers given out one by one or at random are spread evenly, or over separate ranges. Amounts have fractions, are
    often round, or crowd around one place and get rarer away from it.
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
    """Sentences, in which people may be named."""
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
            reason=f"the name says {said}; {several:.0%} of the values are several words, which may name people;"
            " if it is a fixed list of phrases, choose another role",
            confidence=0.65,
            hipaa="R",
        )
    if long < 0.8 or facts.spread < 0.5:
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


DETECTORS: tuple[Detector, ...] = (unique_code, amount, free_text)
