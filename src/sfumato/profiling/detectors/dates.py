"""Detectors of dates, years and ages."""

from __future__ import annotations

from dataclasses import replace

from sfumato.dataset import Kind, Role
from sfumato.dataset.casting import fit
from sfumato.profiling.detectors.facts import Facts
from sfumato.profiling.detectors.finding import Detector, Finding

_BIRTH = (
    *("birth date", "date of birth", "birth", "dob", "born", "birthday", "birthdate", "bdate"),
    *("geburtsdatum", "geburtstag", "fecha nacimiento", "fecha de nacimiento", "date naissance", "date de naissance"),
    *("data di nascita", "geboortedatum", "nacimiento"),
)
_DATE = ("date", "day", "datum", "fecha", "admitted", "admission", "discharge", "death", "died", "timestamp", "time")
_CALENDAR = {"dates": ["month", "year", "decade"]}
_BANDS = {"intervals": [5, 10, 20]}


def date_of_birth(facts: Facts) -> Finding | None:
    """A date column whose name indicates birth."""
    said = facts.says(*_BIRTH)
    share, kind = facts.dates
    if said is None or share < 0.5:
        return None
    return _dated(
        Finding(
            detector="a date of birth",
            role=Role.QUASI,
            reason=f"the name says birth; {share:.0%} of the values are dates",
            confidence=0.97,
            hipaa="C",
            register=True,
        ),
        facts,
        kind,
    )


def other_date(facts: Facts) -> Finding | None:
    """Any other date: an event that acquaintances may know."""
    share, kind = facts.dates
    if share < 0.9 and not (share >= 0.5 and facts.says(*_DATE)):
        return None
    return _dated(
        Finding(
            detector="a date",
            role=Role.QUASI,
            reason=f"{share:.0%} of the values are dates; acquaintances may know when the event happened",
            confidence=0.9,
            hipaa="C",
        ),
        facts,
        kind,
    )


def year_of_birth(facts: Facts) -> Finding | None:
    """A column of years whose name indicates birth."""
    share = facts.between(1880, 2100)
    if facts.kind is not Kind.INTEGER or share < 0.9 or not facts.says(*_BIRTH, "birth year", "yob", "geburtsjahr"):
        return None
    return Finding(
        detector="a year of birth",
        role=Role.QUASI,
        reason=f"the name says birth; {share:.0%} of the values are years",
        confidence=0.95,
        hierarchy=_BANDS,
        register=True,
    )


def year(facts: Facts) -> Finding | None:
    """A year alone, which HIPAA Safe Harbor permits; whether outsiders know it depends on the event."""
    if facts.kind is not Kind.INTEGER or not facts.says("year", "yr", "jahr", "ano", "annee"):
        return None
    if facts.between(1880, 2100) < 0.95:
        return None
    return Finding(
        detector="a year",
        role=Role.UNDECIDED,
        reason="the name and the values indicate a year; make it quasi if outsiders know a person's year",
        confidence=0.8,
        hierarchy=_BANDS,
    )


def age(facts: Facts) -> Finding | None:
    """Years of age: numbers from 0 to 120."""
    said = facts.says("age", "ages", "age years", "alter", "edad", "eta", "leeftijd", "age at admission")
    share = facts.between(0, 120)
    if said is None or facts.kind not in (Kind.INTEGER, Kind.NUMBER) or share < 0.9:
        return None
    # HIPAA Safe Harbor groups ages above 89. The top interval does not depend on whether such ages occur in the data.
    return Finding(
        detector="an age",
        role=Role.QUASI,
        reason=f"the name says age; {share:.0%} of the values lie between 0 and 120; 90 and above form one group",
        confidence=0.95,
        hierarchy={"intervals": {"widths": [5, 10, 20], "top": 90}},
        hipaa="C",
        register=True,
    )


def _dated(finding: Finding, facts: Facts, kind: Kind | None) -> Finding:
    """Add kind and calendar hierarchy if all values can be read as dates."""
    if kind is None:
        return finding
    if facts.kind is not kind and fit(facts.series, kind).null_count() > facts.series.null_count():
        remark = "; some values are not dates, so the kind stays text: correct them, then declare kind and hierarchy"
        return replace(finding, reason=finding.reason + remark)
    return replace(finding, kind=kind, hierarchy=_CALENDAR)


DETECTORS: tuple[Detector, ...] = (date_of_birth, year_of_birth, age, other_date, year)
