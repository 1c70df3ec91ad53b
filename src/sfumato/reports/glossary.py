"""What the names in a report mean, in a sentence each: measures, limits, parts, and the glossary."""

from __future__ import annotations

from sfumato.errors import SfumatoError
from sfumato.evaluation.formatting import readable_name
from sfumato.registry import registry

__all__ = ["glossary", "limit_meaning", "meaning", "measure_title"]

_LIMITS = {
    "risk": "The share of people whose record any attack finds, judged by the upper end of its interval.",
    "attribute": "The share of secrets any attack learns beyond what it gets right without the person's record, "
    "judged by the upper end of its interval.",
    "membership": "The share of people of whom any attack tells, beyond guessing, whether they are in the data, judged "
    "by the upper end of its interval.",
    "singling-out": "The share of an attack's descriptions that fit exactly one person, beyond what descriptions of "
    "shuffled columns do, judged by the upper end of its interval.",
}

_TITLES = {
    "class-sizes": "smallest class",
    "prosecutor": "prosecutor risk",
    "ncp": "information lost (NCP)",
    "marginals": "columns moved (marginals)",
    "pairs": "pairs of columns moved",
}

_MEANINGS = {
    "class-sizes": "How many records share each combination of the quasi-identifying columns; the smallest such group.",
    "uniqueness": "Share of records that nobody else shares the quasi-identifying values with.",
    "prosecutor": "Chance of picking the right record for somebody known to be in the release, on average.",
    "ncp": "Normalized certainty penalty: 0 when values are as fine as they were, 1 when nothing is left of them.",
    "marginals": "How far the shares of single columns moved: 0 not at all, 1 entirely (total variation distance).",
    "pairs": "How far the shares of pairs of columns moved: 0 not at all, 1 entirely (total variation distance).",
}


def measure_title(name: str) -> str:
    """A measure as a reader would call it; its own name where none is better."""
    return _TITLES.get(name, readable_name(name))


def limit_meaning(name: str) -> str:
    return _LIMITS.get(name, "Set in the recipe.")


def meaning(kind: str, name: str) -> str:
    """What a measure, model or attack says, in a sentence: ours, or the first of its own docstring."""
    if kind == "measure" and name in _MEANINGS:
        return _MEANINGS[name]
    try:
        return registry(kind).get(name).summary().replace("`", "")
    except (SfumatoError, ImportError):
        return ""


_GLOSSARY = {
    "Attack": "A program that plays an intruder: it gets what an intruder would have, guesses, and is then marked.",
    "Baseline": "The same intruder without the release: a random record, or the most frequent answer.",
    "Class": "All released records that look the same in the quasi-identifying columns.",
    "Control": "The same attack on people who are not in the data. What succeeds there is general knowledge, no leak.",
    "Disclosure": "Something about a person becomes known through the release: which record is theirs (identity), a "
    "secret of theirs (attribute), or that they are in the data at all (membership).",
    "Generalization": "A value is replaced by a coarser one: a birth date by its year.",
    "Identifier": "A column that names a person by itself, such as a name or a social security number.",
    "Interval": "Attacks try a number of people; the interval says between which values the true share lies, as far "
    "as that many tries can tell.",
    "k-anonymity": "Every class has at least k records, so nobody is narrowed down to fewer than k.",
    "Quasi-identifier": "A column that outsiders know and that, with others, singles people out: ZIP, birth date.",
    "Release": "The table that is handed over.",
    "Sensitive": "A column whose value must not become known of a person, such as a diagnosis.",
    "Suppression": "A record, or a value in it, is left out.",
    "Total variation distance": "Half the sum of all differences between shares: how many records must change.",
}


def glossary() -> tuple[tuple[str, str], ...]:
    return tuple(_GLOSSARY.items())
