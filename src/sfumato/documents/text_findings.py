"""Rules that find direct identifiers in free text: names, dates, places, numbers, contacts.

Dictionaries, patterns, check digits and the words around; nothing is learned. What the rules miss is not found: measure
the recall on texts with known answers (:func:`sfumato.documents.recall_by_kind`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from sfumato.profiling.check_digits import iban, luhn
from sfumato.profiling.words import word_list

__all__ = ["KINDS", "TextFinding", "TextKind", "find_identifiers"]

TextKind = Literal["name", "date", "place", "id", "contact"]
KINDS: tuple[TextKind, ...] = get_args(TextKind)


@dataclass(frozen=True, kw_only=True, order=True)
class TextFinding:
    """One identifier: where it stands, what it is, and its text."""

    start: int
    end: int
    kind: TextKind
    text: str


_CAPITAL = r"[A-ZÀ-ÖØ-Þ][^\W\d_]*(?:[-'’][A-ZÀ-ÖØ-Þ]?[^\W\d_]+)*"
_TITLE = r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Professor|Nurse|Herr|Frau|Señora?|Monsieur|Madame)\b\.?"
_TITLED = re.compile(rf"\b{_TITLE}\s+(?P<name>{_CAPITAL}(?:\s+(?:[A-Z]\.|{_CAPITAL})){{0,2}})")
_ROLE = re.compile(
    rf"\b(?:[Pp]atient|[Cc]lient|[Nn]amed?|[Ss]igned(?: by)?|[Dd]ear)[:,]?\s+(?P<name>{_CAPITAL}\s+{_CAPITAL})"
)
_FULL = re.compile(rf"\b(?P<first>{_CAPITAL})(?:\s+[A-Z]\.)?\s+(?P<last>{_CAPITAL})")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)[a-z]*\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    r"\b(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})|"
    rf"{_DAY}\s+{_MONTH}\s+\d{{4}}|{_MONTH}\s+{_DAY},?\s+\d{{4}}|{_MONTH}\s+\d{{4}})\b"
)
_ROAD = r"(?:St|Street|Ave|Avenue|Rd|Road|Dr|Drive|Ln|Lane|Blvd|Boulevard|Court|Way)"
_STREET = re.compile(rf"\b\d{{1,5}}\s+(?:{_CAPITAL}\s+){{1,3}}{_ROAD}\b\.?")
_NEAR = re.compile(
    r"\b(?:lives? in|living in|born in|moved (?:to|from)|resident of|(?:seen|treated|works?) (?:in|at)|from|near)"
    rf"\s+(?P<place>{_CAPITAL}(?:\s+{_CAPITAL}){{0,2}})"
)
_HOUSE = re.compile(
    rf"\b(?P<place>{_CAPITAL}(?:\s+{_CAPITAL})?)\s+(?i:hospital|clinic|school|university|church|county)\b"
)
_ZIP = re.compile(r"\b[A-Z]{2}\s+(?P<zip>\d{5}(?:-\d{4})?)\b")
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:\s?[A-Z0-9]{2,4}){3,8}\b")
_SSN = re.compile(r"(?<!\d)(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?!\d)")
_NUMBERED = re.compile(
    r"\b(?:MRN|SSN|ID|[Pp]atient (?:no|number|id)|[Rr]ecord (?:no|number)|[Cc]ase (?:no|number)|"
    r"[Aa]ccount(?: no| number)?|[Pp]olicy(?: no| number)?|[Pp]assport(?: no| number)?)\b\.?[:#]?"
    r"\s*(?P<id>[A-Z]{0,3}[- ]?\d[\d-]{3,})"
)
_MAIL = re.compile(r"[^@\s,;:()<>]+@[^@\s,;:()<>]+\.[A-Za-z]{2,}")
_URL = re.compile(r"\b(?:https?://|www\.)[^\s,;()<>]+")
_PHONE = re.compile(
    r"(?<![\d-])(?:\+\d[\d\s().-]{6,18}\d|\(\d{3}\)\s?\d{3}[\s.-]\d{4}|\d{3}[\s.-]\d{3}[\s.-]\d{4})(?!\d)"
)
_COMMON = frozenset(
    (
        *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
        *("november", "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
        *("the", "he", "she", "they", "we", "it", "this", "on", "in", "at", "her", "his", "no"),
    )
)
"""Words with a capital letter that are no names."""


def find_identifiers(text: str, *, known_names: Iterable[str] = ()) -> list[TextFinding]:
    """All identifiers of a text, in order and without overlaps. ``known_names`` are looked up besides the rules.

    Overlapping findings are merged into one of the kind that starts first, so that nothing found is left over.
    """
    found = sorted({*_numbers(text), *_contacts(text), *_dates(text), *_places(text), *_names(text, known_names)},
                   key=lambda one: (one.start, -one.end))  # fmt: skip
    kept: list[TextFinding] = []
    for one in found:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
        elif one.end > kept[-1].end:
            last = kept.pop()
            kept.append(TextFinding(start=last.start, end=one.end, kind=last.kind, text=text[last.start : one.end]))
    return kept


def _finding(match: re.Match[str], kind: TextKind, group: str | int = 0) -> TextFinding:
    return TextFinding(start=match.start(group), end=match.end(group), kind=kind, text=match[group])


def _numbers(text: str) -> Iterator[TextFinding]:
    yield from (_finding(m, "id") for m in _CARD.finditer(text) if luhn(m[0]))
    yield from (
        _finding(m, "id") for m in _IBAN.finditer(text) if 15 <= len(re.sub(r"\s", "", m[0])) <= 34 and iban(m[0])
    )
    yield from (_finding(m, "id") for m in _SSN.finditer(text))
    yield from (_finding(m, "id", "id") for m in _NUMBERED.finditer(text))


def _contacts(text: str) -> Iterator[TextFinding]:
    for pattern in (_MAIL, _URL, _PHONE):
        yield from (_finding(m, "contact") for m in pattern.finditer(text))


def _dates(text: str) -> Iterator[TextFinding]:
    yield from (_finding(m, "date") for m in _DATE.finditer(text))


def _places(text: str) -> Iterator[TextFinding]:
    yield from (_finding(m, "place") for m in _STREET.finditer(text))
    yield from (_finding(m, "place", "zip") for m in _ZIP.finditer(text))
    for match in (*_NEAR.finditer(text), *_HOUSE.finditer(text)):
        if match["place"].split()[0].lower() not in _COMMON:
            yield _finding(match, "place", "place")


def _names(text: str, known: Iterable[str]) -> Iterator[TextFinding]:
    given, surnames = word_list("given_names"), word_list("surnames")
    found = [_finding(m, "name", "name") for pattern in (_TITLED, _ROLE) for m in pattern.finditer(text)]
    at = 0
    while (match := _FULL.search(text, at)) is not None:
        first, last = match["first"].lower(), match["last"].lower()
        named = first in given and last not in _COMMON
        if named or (last in surnames and first in given):
            found.append(_finding(match, "name"))
        at = match.end() if named else match.end("first")
    # a given name alone
    for match in re.finditer(rf"\b{_CAPITAL}\b", text):
        if match[0].lower() in given and match[0].lower() not in _COMMON:
            found.append(_finding(match, "name"))
    yield from found
    # a family name that stands alone later in the text, and names that are known from elsewhere
    words = {one.text.split()[-1] for one in found} | {word for name in known for word in name.split() if len(word) > 2}
    for word in sorted(words - {""}):
        if word.lower() not in _COMMON:
            yield from (_finding(m, "name") for m in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text))
