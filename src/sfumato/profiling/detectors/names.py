"""Detectors of names of people, by the column name and by given names among the values."""

from __future__ import annotations

import polars as pl

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.facts import Facts
from sfumato.profiling.detectors.finding import Detector, Finding
from sfumato.profiling.detectors.name_patterns import Clue
from sfumato.profiling.words import word_list

GIVEN_NAMES = word_list("given_names")
"""Common given names of many languages; a column of names matches it in part."""

_LETTERS = r"[\p{L}][\p{L}.'’ ,-]*"
_TEXT = frozenset({Kind.CATEGORY})

by_column_name = Clue(
    title="a person's name",
    role=Role.IDENTIFIER,
    words=(
        *("full name", "first name", "last name", "middle name", "given name", "family name", "surname", "maiden name"),
        *("patient name", "person name", "customer name", "contact name", "forename", "fname", "lname", "nickname"),
        *("vorname", "nachname", "familienname", "nombre", "apellido", "apellidos", "prenom", "nom", "cognome", "naam"),
    ),
    pattern=_LETTERS,
    kinds=_TEXT,
    hipaa="A",
    register=True,
)


def just_name(facts: Facts) -> Finding | None:
    """A column called ``name`` without further words."""
    if facts.words.split() not in (["name"], ["names"], ["nome"]) or facts.kind is not Kind.CATEGORY:
        return None
    share = facts.share(_LETTERS)
    return Finding(
        detector="a person's name",
        role=Role.IDENTIFIER,
        reason=f"the name says a name; {share:.0%} of the values are written like names of people",
        confidence=0.9 if share >= 0.5 else 0.6,
        hipaa="A",
        register=True,
    )


def by_given_names(facts: Facts) -> Finding | None:
    """Values of one to five words, many of them with a common given name."""
    if facts.kind is not Kind.CATEGORY or facts.distinct < 10 or facts.texts.is_empty():
        return None
    if facts.share(_LETTERS) < 0.9 or facts.share(r"\S+(?:\s+\S+){0,4}") < 0.9:
        return None
    words = facts.texts.str.to_lowercase().str.extract_all(r"\p{L}+")
    known = words.list.eval(pl.element().is_in(list(GIVEN_NAMES))).list.any()
    share = float(known.mean() or 0.0)  # type: ignore[arg-type]
    if share < 0.3:
        return None
    return Finding(
        detector="a person's name",
        role=Role.IDENTIFIER,
        reason=f"{share:.0%} of the values contain a common given name",
        confidence=0.8,
        hipaa="A",
        register=True,
    )


DETECTORS: tuple[Detector, ...] = (by_column_name, just_name, by_given_names)
