"""What the names in a report mean, in one sentence each."""

from __future__ import annotations

from sfumato.attacks import Discloses
from sfumato.errors import SfumatoError
from sfumato.evaluation.disclosures import disclosure_of
from sfumato.registry import registry


def limit_meaning(name: str) -> str:
    """What a limit of the recipe restricts."""
    return disclosure_of(Discloses.IDENTITY if name == "risk" else name).limit


def meaning(kind: str, name: str) -> str:
    """The first sentence of the docstring of a method, model or attack; nothing if it is not installed."""
    try:
        return registry(kind).get(name).summary().replace("`", "")
    except (SfumatoError, ImportError):
        return ""


GLOSSARY = (
    ("Attack", "A program that acts as an attacker would: it gets what an attacker has and makes a guess per person."),
    ("Baseline", "The success rate of an attacker without the release: a random record or the most frequent value."),
    (
        "Control",
        "The success rate of the same attack on people who are not in the data. ",
    ),
    (
        "Disclosure",
        "Something about a person becomes known through the release: their record (identity), a sensitive value "
        "(attribute), or that they are in the data (membership).",
    ),
    ("Equivalence class", "All released records with the same values of the quasi-identifiers."),
    ("Generalization", "A value is replaced by a coarser one, for example a birth date by its year."),
    ("Identifier", "A column that identifies a person by itself, for example a name or a social security number."),
    (
        "Interval",
        "An attack is tried on a limited number of targets. The interval contains the true success rate with the "
        "stated confidence; its ends are rounded outwards. A risk that was computed for all records is exact.",
    ),
    ("k-anonymity", "Every equivalence class has at least k records, so nobody is narrowed down to fewer than k."),
    ("Quasi-identifier", "A column that others know and that identifies people in combination: ZIP code, birth date."),
    ("Release", "The masked table that is handed over."),
    ("Sensitive", "A column whose value must not become known about a person, for example a diagnosis."),
    ("Suppression", "A record, or a value in it, is removed."),
    ("Target", "A person an attack looks for."),
    (
        "Total variation distance",
        "Half the sum of the absolute differences of shares: the share of records that would have to change.",
    ),
)
