"""Synthetic notes about people with known identifiers, and the recall of the rules on them.

A quarter of the family names and towns is in no list, so that the recall shows what rules miss. Nobody in the notes
exists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from sfumato.documents.tagger import tag
from sfumato.documents.text_findings import KINDS, TextKind, merged
from sfumato.profiling.words import word_list
from sfumato.rng import Rng

_TEMPLATES = (
    "{title} {name} was seen on {date} for {illness}. {last} lives in {town} and works as a {job}. MRN: {number}.",
    "{name}, a {job} from {town}, came in with {illness}. Phone {phone}. Next visit {date}.",
    "Patient {name} ({mail}) was admitted {date}. History of {illness}. Home address {house} {road} Street.",
    "Spoke with the daughter of {name} about {illness}. They moved to {town} last year. Record number {number}.",
    "{first} reports {illness} since {date}. A {job}; colleagues at {town} hospital were informed by {title} {other}.",
    "The {rare} twins, {job}s both, have {illness}. Their house in the {town} area was sold. Tel. {phone}.",
)
_ILLNESSES = ("asthma", "migraine", "back pain", "a fracture of the wrist", "type 2 diabetes", "sarcoidosis", "gout")
_JOBS = ("teacher", "baker", "pilot", "beekeeper", "judge", "nurse", "carpenter", "lighthouse keeper")
_TOWNS = ("Springfield", "Riverton", "Oakdale", "Fairview", "Marlow", "Glenbrook")
_RARE = ("Quillfeather", "Vandermoor", "Tisserand", "Okonwe", "Brathwell", "Zielke")


@dataclass(frozen=True, kw_only=True)
class KnownNote:
    """A text and the identifiers in it, by kind."""

    text: str
    known: tuple[tuple[TextKind, str], ...]


@dataclass(frozen=True, kw_only=True)
class Recall:
    """How many of the identifiers of one kind were found."""

    kind: TextKind
    found: int
    all: int


def synthetic_notes(count: int, *, seed: int) -> list[KnownNote]:
    """Draw notes.

    >>> note = synthetic_notes(1, seed=1)[0]
    >>> all(text in note.text for _, text in note.known)
    True
    """
    draw = Rng(seed).child("notes").generator
    given, listed = (sorted(word.capitalize() for word in word_list(name)) for name in ("given_names", "surnames"))
    return [_note(draw, given, listed) for _ in range(count)]


def _note(draw: np.random.Generator, given: list[str], listed: list[str]) -> KnownNote:
    def pick(values: tuple[str, ...] | list[str]) -> str:
        return values[int(draw.integers(len(values)))]

    first, last, other = pick(given), pick(_RARE if draw.random() < 0.25 else listed), pick(listed)
    day = date(2019, 1, 1) + timedelta(days=int(draw.integers(0, 1500)))
    values: dict[str, str] = {
        "title": pick(("Mr.", "Mrs.", "Dr.", "Ms")), "first": first, "last": last, "other": other, "rare": pick(_RARE),
        "name": f"{first} {last}", "town": pick(_TOWNS), "job": pick(_JOBS), "illness": pick(_ILLNESSES),
        "date": day.strftime(pick(("%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d.%m.%Y"))),
        "number": str(draw.integers(10_000, 999_999)), "house": str(draw.integers(1, 300)), "road": pick(_TOWNS),
        "phone": f"415-555-{draw.integers(1000, 9999)}", "mail": f"{first.lower()}.{last.lower()}@example.org",
    }  # fmt: skip
    template = pick(_TEMPLATES)
    kinds: dict[str, TextKind] = {
        **dict.fromkeys(("name", "first", "last", "other", "rare"), "name"),
        "date": "date",
        "town": "place",
        "number": "id",
        "phone": "contact",
        "mail": "contact",
    }
    known = [(kind, values[slot]) for slot, kind in kinds.items() if f"{{{slot}}}" in template]
    if "{house}" in template:
        known.append(("place", f"{values['house']} {values['road']} Street"))
    return KnownNote(text=template.format(**values), known=tuple(known))


def recall_by_kind(notes: Sequence[KnownNote], *, taggers: Sequence[str] = ("rules",)) -> dict[TextKind, Recall]:
    """Share of the known identifiers that taggers cover completely, everywhere in their text, by kind."""
    found: Counter[TextKind] = Counter()
    total: Counter[TextKind] = Counter()
    for note, findings in zip(notes, tag(taggers, [note.text for note in notes]), strict=True):
        spans = [(one.start, one.end) for one in merged(note.text, findings)]
        for kind, text in note.known:
            total[kind] += 1
            places = [(m.start(), m.end()) for m in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", note.text)]
            found[kind] += all(any(a <= start and end <= b for a, b in spans) for start, end in places)
    return {kind: Recall(kind=kind, found=found[kind], all=total[kind]) for kind in KINDS if total[kind]}
