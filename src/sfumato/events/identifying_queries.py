"""Detection of identifying queries: names of people, places, account numbers, contacts, searches for oneself.

Rules on the text of a query with word lists (:mod:`sfumato.profiling.words`); nothing is learned. A query without a
finding is not proven harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal, get_args

import polars as pl

from sfumato.profiling.detectors.check_digits import iban, luhn
from sfumato.profiling.words import word_list

QueryKind = Literal["account", "contact", "name", "place"]
KINDS: tuple[QueryKind, ...] = get_args(QueryKind)

_TITLES = frozenset({"dr", "mr", "mrs", "ms"})
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:\s?[A-Z0-9]{2,4}){3,8}\b", re.IGNORECASE)
_SSN = re.compile(r"(?<!\d)(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?!\d)")
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")
_PHONE = re.compile(r"(?<!\d)(?:\+\d[\d\s().-]{6,18}\d|\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4})(?!\d)")
_ALSO_WORDS = frozenset({"al", "co", "de", "hi", "id", "in", "la", "me", "ok", "or"})
"""Abbreviations of states that are words or names too."""
_ZIP = re.compile(r"(?<!\d)\d{5}(?:-\d{4})?(?!\d)")
_STREET = re.compile(r"\b\d{1,5} [^\W\d_]+(?: [^\W\d_]+)? (?:st|street|ave|avenue|rd|road|dr|drive|ln|lane|blvd)\b")


def _account(text: str, words: list[str]) -> bool:
    if any(luhn(found) for found in _CARD.findall(text)) or _SSN.search(text):
        return True
    return any(_valid_iban(found) for found in _IBAN.findall(text))


def _valid_iban(text: str) -> bool:
    return 15 <= len(re.sub(r"\s", "", text)) <= 34 and iban(text)


def _contact(text: str, words: list[str]) -> bool:
    return bool(_MAIL.search(text) or _PHONE.search(text))


def _name(text: str, words: list[str]) -> bool:
    """Full names, names before or after words such as "obituary" or "dr", and names written as one word."""
    listed = any(
        _follows(words[first + 1 : first + 3]) for first, word in enumerate(words) if word in word_list("given_names")
    )
    return listed or _full_name(words) or _in_context(words) or any(_joined(word) for word in words)


def _follows(words: list[str]) -> bool:
    """Whether a listed family name follows, with an initial or a second given name before it."""
    for word in words:
        if word in word_list("surnames"):
            return True
        if len(word) > 1 and word not in word_list("given_names"):
            break
    return False


def _full_name(words: list[str]) -> bool:
    """A given name that is no common word, beside a word that is a family name or no English word."""
    given = word_list("census_given_names")
    plain = [word for word in words if len(word) > 1]  # without initials
    for left, right in pairwise(plain):
        if (left in given and _may_be_family(right)) or (right in given and _may_be_family(left)):
            return True
    return False


def _may_be_family(word: str) -> bool:
    return len(word) > 2 and (word in word_list("census_surnames") or word not in word_list("english_words"))


def _in_context(words: list[str]) -> bool:
    """A family name, or a word that is no English one, beside words that stand beside names."""
    text = " ".join(words)
    asked = _ASKED.search(text)
    if asked and asked["first"] not in word_list("english_words") and _may_be_family(asked["last"]):
        return True
    for match in _CONTEXT.finditer(text):
        found = next(value for value in match.groups() if value is not None)
        if found not in _NO_NAMES and (
            found in word_list("census_surnames") or found not in word_list("english_words")
        ):
            return True
    return False


def _joined(word: str) -> bool:
    """A given and a family name without a space: ``marygallagher``."""
    if len(word) < 8 or word in word_list("english_words") or word in word_list("census_surnames"):
        return False
    given, surnames = word_list("census_given_names"), word_list("census_surnames")
    return any(word[:at] in given and word[at:] in surnames for at in range(4, len(word) - 3))


def _place(text: str, words: list[str]) -> bool:
    """A ZIP code, a street with a number, or a word followed by a US state."""
    states = word_list("us_states") - _ALSO_WORDS
    if _ZIP.search(text) or _STREET.search(text):
        return True
    pairs = [" ".join(words[at : at + 2]) for at in range(1, len(words))]
    alone = words[-1] in states if len(words) > 1 else False
    return alone or any(pair in states for pair in pairs)


_CONTEXT = re.compile(
    r"\b(?:dr|mr|mrs|ms|miss|prof|professor|judge|senator|officer|rev|pastor|sister)\s+(\w{3,})|"
    r"\b(\w{3,})\s+(?:obituar(?:y|ies)|funeral|genealogy|ancestry|surname|family (?:tree|reunion|crest|history))\b"
)
_ASKED = re.compile(
    r"\b(?:who is|facebook|instagram|linkedin|myspace|twitter)\s+(?P<first>\w{3,})\s+(?P<last>\w{3,})\b"
)
_NO_NAMES = frozenset(
    {"seuss", "pepper", "phil", "oz", "strange", "who", "funny", "good", "pet", "dog", "free", "local"}
)
"""Words at these places that are no family name of a person searched for."""


_RULES: dict[QueryKind, Callable[[str, list[str]], bool]] = {
    "account": _account,
    "contact": _contact,
    "name": _name,
    "place": _place,
}


def _kind(text: str) -> QueryKind | None:
    words = [word.lower() for word in _WORD.findall(text)]
    return next((kind for kind in KINDS if _RULES[kind](text.lower() if kind == "place" else text, words)), None)


def identifying_kinds(queries: pl.Series) -> pl.Series:
    """The kind of identifier that each query contains, null if the rules find none. The first of the kinds counts.

    >>> found = ["maria garcia", "pizza springfield il", "4111 1111 1111 1111", "how to knit socks"]
    >>> identifying_kinds(pl.Series(found)).to_list()
    ['name', 'place', 'account', None]
    """
    distinct = queries.drop_nulls().unique()
    kinds = pl.Series(_kinds(distinct), dtype=pl.String)
    table = pl.DataFrame({"query": distinct.cast(pl.String), "kind": kinds})
    joined = pl.DataFrame({"query": queries.cast(pl.String)}).join(table, on="query", how="left", maintain_order="left")
    return joined["kind"].alias(queries.name)


def _kinds(distinct: pl.Series) -> Iterator[QueryKind | None]:
    """Texts of English words without a digit, an @, a given name or a state are passed over without trying any rule."""
    english, given = word_list("english_words"), word_list("given_names")
    states = {word.split()[-1] for word in word_list("us_states") - _ALSO_WORDS}
    for text in distinct.cast(pl.String).to_list():
        words = text.lower().split()
        plain = not any(character.isdigit() or character == "@" for character in text)
        harmless = (word in english and word not in given and word not in states for word in words)
        if plain and all(harmless) and not _TITLES.intersection(words):
            yield None
        else:
            yield _kind(text)
