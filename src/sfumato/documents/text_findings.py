"""Rules that find direct identifiers in free text: names, dates, places, numbers, contacts.

Dictionaries, patterns, check digits and the words around; nothing is learned. What the rules miss is not found: measure
the recall on texts with known answers (:func:`sfumato.demos.corpora.recall_by_kind`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal, get_args

from sfumato.documents.text_patterns import AGES, CARD, CONTACTS, DATES, IBAN, IDS, NAMED_ID
from sfumato.profiling.detectors.check_digits import iban, luhn
from sfumato.profiling.words import word_list

TextKind = Literal["name", "date", "place", "id", "contact", "age", "term"]
"""Kinds of findings. A ``term`` is one of a taxonomy, which no rule finds."""
KINDS: tuple[TextKind, ...] = get_args(TextKind)
_FIRST: tuple[TextKind, ...] = ("age", "date", "contact", "place", "name", "id", "term")
"""Which kind counts where several are found at the same place."""


@dataclass(frozen=True, kw_only=True, order=True)
class TextFinding:
    """One identifier: where it stands, what it is, and its text."""

    start: int
    end: int
    kind: TextKind
    text: str


_CAPITAL = r"[A-ZÀ-ÖØ-Þ][^\W\d_]*(?:[-'’](?!s\b)[A-ZÀ-ÖØ-Þ]?[^\W\d_]+)*"
_TITLE = r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Professor|Nurse|Herr|Frau|Señora?|Monsieur|Madame)\b\.?"
_TITLED = re.compile(rf"\b{_TITLE}\s+(?P<name>{_CAPITAL}(?:\s+(?:[A-Z]\.|{_CAPITAL})){{0,2}})")
_ROLE = re.compile(
    rf"\b(?:[Pp]atient|[Cc]lient|[Nn]amed?|[Ss]igned(?: by)?|[Dd]ear)[:,]?\s+(?P<name>{_CAPITAL}\s+{_CAPITAL})"
)
_ANY = r"(?P<name>[^\W\d_]{3,}(?:\s+(?!(?:and|but|from|here|speaking|calling)\b)[^\W\d_]{2,})?)"
_SELF = re.compile(rf"\b(?i:my name(?:['’]s| is)|call me)\s+{_ANY}")
_HERE = re.compile(rf"\b(?i:it['’]?s|this is)\s+{_ANY}\s+(?i:here|speaking|calling)\b")
_VERSUS = re.compile(rf"\b(?P<name>{_CAPITAL})\s+(?:v|vs|versus)\b\.?\s+(?P<other>{_CAPITAL})")
_FULL = re.compile(rf"\b(?P<first>{_CAPITAL})(?:\s+[A-Z]\.)?\s+(?P<last>{_CAPITAL})")
_ROAD = (
    r"(?:St|Street|Ave|Avenue|Rd|Road|Dr|Drive|Ln|Lane|Blvd|Boulevard|Court|Way|Close|Crescent|Square|Place|Row|Alley|"
    r"Allee|Circle|Gardens|Green|Grove|Highway|Hill|Mews|Parade|Parkway|Plaza|Quay|Terrace|Trail|View|Walk)"
)
_STREET = re.compile(rf"\b(?:\d{{1,5}}[A-Za-z]?,?\s+)?(?:{_CAPITAL}\s+){{1,3}}{_ROAD}\b\.?")
_NEAR = re.compile(
    r"\b(?:lives? in|living in|born in|moved (?:to|from)|resident of|(?:seen|treated|works?) (?:in|at)|from|near)"
    rf"\s+(?P<place>{_CAPITAL}(?:\s+{_CAPITAL}){{0,2}})"
)
_HOUSE = re.compile(
    rf"\b(?P<place>{_CAPITAL}(?:\s+{_CAPITAL})?)\s+(?i:hospital|clinic|school|university|church|county)\b"
)
_ZIP = re.compile(r"\b[A-Z]{2}\s+(?P<zip>\d{5}(?:-\d{4})?)\b")
_SENTENCE = re.compile(r"(?:^|[.!?\n\"“(•-])\s*$")
"""What stands before the first word of a sentence or line."""
_PLACED = re.compile(r"\b(?:in|from|to|at|near|of|around|outside|via|toward|towards|leaving)\s+(?:the\s+)?$")
"""What stands before a place."""
_COMMON = word_list("sentence_words")
"""Words with a capital letter that are no names."""


def find_identifiers(text: str) -> list[TextFinding]:
    """All identifiers of a text that the rules find, in order and without overlaps."""
    numbers = [*_numbers(text), *_all(text, IDS, "id")]
    # a number that the text calls a record or an account is no telephone number
    named = {(one.start, one.end) for one in _all(text, [NAMED_ID], "id")}
    contacts = [one for one in _all(text, CONTACTS, "contact") if (one.start, one.end) not in named]
    return merged(
        text, [*numbers, *contacts, *_all(text, DATES, "date"), *_places(text), *_names(text), *_ages(text)]
    )  # fmt: skip


def merged(text: str, findings: Iterable[TextFinding]) -> list[TextFinding]:
    """Findings in order and without overlaps.

    Overlapping findings become one of the kind that starts first, so that nothing found is left over. A term of a
    taxonomy remains only where it is all that was found, or all of a place.
    """
    kept: list[TextFinding] = []
    found = sorted(set(findings), key=lambda one: (one.start, -one.end, _FIRST.index(one.kind)))
    terms = {(one.start, one.end): one for one in found if one.kind == "term"}
    for one in found:
        if one.kind == "term":
            continue
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
        elif one.end > kept[-1].end:
            last = kept.pop()
            kept.append(TextFinding(start=last.start, end=one.end, kind=last.kind, text=text[last.start : one.end]))
    kept = [terms.pop((one.start, one.end), one) if one.kind == "place" else one for one in kept]
    free = [one for one in terms.values() if not any(one.start < other.end and other.start < one.end for other in kept)]
    return sorted([*kept, *free])


def known_names(text: str, names: Iterable[str]) -> Iterator[TextFinding]:
    """Words of names that are known from elsewhere, wherever they stand in the text and however they are spelled.

    Capitals, accents, apostrophes, invisible characters, a possessive s, and ``ue`` for ``ü`` make no difference. The
    parts of a double name are found joined, hyphenated or apart. A name of two letters, and one that is also a common
    word, is found where it begins with a capital.

    >>> [one.text for one in known_names("then ANN O’BRIXX’s leg; obrixx paid", ["Ann O'Brixx"])]
    ['ANN O’BRIXX', 'obrixx']
    """
    spellings = {word: pattern for name in names for word, pattern in _spellings(name)}
    if not spellings:
        return
    folded, places = folded_text(text)
    # the longest first, so that a double name is found as one
    known = "|".join(spellings[word] for word in sorted(spellings, key=lambda word: (-len(word), word)))
    for match in re.finditer(known, folded):
        found = match[0].rstrip("'")
        start, end = places[match.start()], places[match.start() + len(found) - 1] + 1
        while end < len(text) and not folded_text(text[end])[0]:
            end += 1
        word = _plain(found)
        if (len(word) > 2 and word not in _COMMON) or text[start].isupper():
            yield TextFinding(start=start, end=end, kind="name", text=text[start:end])


_LETTER = r"[^\W\d_]"
_APOSTROPHES = dict.fromkeys(map(ord, "'’‘‛ʼʹ`´′＇"), "'")
_UNDECOMPOSED = {ord(a): b for a, b in zip("øłđħıæœþð", ("o", "l", "d", "h", "i", "ae", "oe", "th", "d"), strict=True)}
"""Letters that Unicode does not take apart into a letter and an accent."""
_JOINED = re.compile(rf"[-']+|(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?i:(?<=^mac)|(?<=^mc))(?={_LETTER}{{3}})")
"""Where the parts of a double name meet: at a hyphen or an apostrophe, before a capital, after Mac and Mc."""


def folded_text(text: str) -> tuple[str, Sequence[int]]:
    """A text in small letters without accents and invisible characters, with one kind of apostrophe and of hyphen, and
    for each character of it where that stood in the text.

    >>> folded_text("É’ß")
    ("e'ss", [0, 1, 2, 2])
    """
    if text.isascii():
        return text.lower().translate(_APOSTROPHES), range(len(text))
    parts, places = [], []
    for place, character in enumerate(text):
        apart = unicodedata.normalize("NFKD", character.translate(_APOSTROPHES)).casefold().translate(_UNDECOMPOSED)
        for one in apart:
            kind = unicodedata.category(one)
            if kind not in ("Mn", "Cf"):
                parts.append("-" if kind == "Pd" else one)
                places.append(place)
    return "".join(parts), places


def _plain(word: str) -> str:
    """The letters and digits of a folded word."""
    return re.sub(r"[\W_]+", "", word)


def _spellings(name: str) -> Iterator[tuple[str, str]]:
    """The words of a name, their parts, and neighbours joined, each as plain letters with a pattern for folded text."""
    composed = unicodedata.normalize("NFC", name).translate(_APOSTROPHES)
    words = [[part for part in _JOINED.split(word) if part] for word in re.findall(r"[^\s,;:.()/\"]+", composed)]
    doubles = [*words, *([*a, *b] for a, b in pairwise(words))]
    for parts in [*([part] for word in words for part in word if part.lower() not in ("mac", "mc")), *doubles]:
        small = [part.lower() for part in parts]
        spread = [part.replace("ä", "ae").replace("ö", "oe").replace("ü", "ue") for part in small]
        narrow = [re.sub("(?<=[aou])e", "", part) for part in small] if len("".join(small)) > 4 else small
        for spelled in (small, spread, narrow):
            pieces = [piece for part in spelled if (piece := _plain(folded_text(part)[0]))]
            word = "".join(pieces)
            if len(word) > 1:
                letters = r"[\s'-]{0,2}".join("'?".join(piece) for piece in pieces)
                before, after = (r"\d" if end.isdigit() else _LETTER for end in (word[0], word[-1]))
                # a possessive s may follow a longer name without an apostrophe
                yield word, f"(?<!{before}){letters}(?={'s?' if len(word) > 4 else ''}(?!{after}))"


def _finding(match: re.Match[str], kind: TextKind, group: str | int = 0) -> TextFinding:
    return TextFinding(start=match.start(group), end=match.end(group), kind=kind, text=match[group])


def _all(text: str, patterns: Iterable[re.Pattern[str]], kind: TextKind) -> Iterator[TextFinding]:
    """Every match; the identifier is the group of the pattern, if it has one."""
    for pattern in patterns:
        group = next(iter(pattern.groupindex), 0)
        yield from (_finding(match, kind, group) for match in pattern.finditer(text))


def _numbers(text: str) -> Iterator[TextFinding]:
    yield from (_finding(m, "id") for m in CARD.finditer(text) if luhn(m[0]))
    yield from (
        _finding(m, "id") for m in IBAN.finditer(text) if 15 <= len(re.sub(r"\s", "", m[0])) <= 34 and iban(m[0])
    )


def _places(text: str) -> Iterator[TextFinding]:
    yield from (_finding(m, "place") for m in _STREET.finditer(text))
    yield from (_finding(m, "place", "zip") for m in _ZIP.finditer(text))
    for match in (*_NEAR.finditer(text), *_HOUSE.finditer(text)):
        if match["place"].split()[0].lower() not in _COMMON:
            yield _finding(match, "place", "place")


def _ages(text: str) -> Iterator[TextFinding]:
    yield from (one for one in _all(text, AGES, "age") if not one.text.isdecimal() or int(one.text) <= 120)


@cache
def _dictionaries() -> tuple[frozenset[str], frozenset[str], frozenset[str], frozenset[str]]:
    """Given names, family names, words that are neither, and given names that are names in lower case too."""
    english, census = word_list("english_words"), word_list("census_given_names")
    return word_list("given_names") | census, word_list("surnames"), english | _COMMON, census - english


def _names(text: str) -> Iterator[TextFinding]:
    given, surnames, plain, lower = _dictionaries()
    found = [_finding(m, "name", "name") for pattern in (_TITLED, _ROLE) for m in pattern.finditer(text)]
    told = (m for pattern in (_SELF, _HERE) for m in pattern.finditer(text))
    found += [_finding(m, "name", "name") for m in told if m["name"].split()[0].lower() not in plain]
    found += [_finding(m, "name", group) for m in _VERSUS.finditer(text) for group in ("name", "other")]
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
    # given names in lower case, as in messages
    found.extend(_finding(m, "name") for m in re.finditer(r"(?<![\w@.-])[a-z]{3,}(?![\w@-])", text) if m[0] in lower)
    found.extend(_capitals(text))
    yield from found
    # a family name that stands alone later in the text
    yield from _words(text, {one.text.split()[-1] for one in found if one.kind == "name"})


_RUN = re.compile(
    rf"(?<![\w@.])(?:[A-Z][A-Z'-]+,\s)?{_CAPITAL}(?:\s+(?:(?:de|der|del|la|le|und|van|von)\s+)?{_CAPITAL})*(?![\w@])"
)


def _capitals(text: str) -> Iterator[TextFinding]:
    """Capitalized words inside a sentence that are no common words and no acronyms: names, or places after "in".

    At the start of a sentence every word has a capital, so that only two or more in a row count.
    """
    for run in _RUN.finditer(text):
        words = [m for m in re.finditer(_CAPITAL, run[0]) if m[0].lower() not in _COMMON]
        words = [m for m in words if not (m[0].isupper() and len(m[0]) <= 4 and "," not in run[0])]
        opening = _SENTENCE.search(text[: run.start()]) is not None
        if not words or (opening and words[0].start() == 0 and len(words) == 1):
            continue
        start, end = run.start() + words[0].start(), run.start() + words[-1].end()
        placed = _PLACED.search(text[max(0, start - 20) : start]) is not None
        yield TextFinding(start=start, end=end, kind="place" if placed else "name", text=text[start:end])


def _words(text: str, words: set[str]) -> Iterator[TextFinding]:
    for word in sorted(words - {""}):
        if word.lower() not in _COMMON:
            yield from (_finding(m, "name") for m in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text))
