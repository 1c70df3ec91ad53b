"""Patterns of text that can be cast to numbers and dates, and the letters that have a lower and an upper case.

Engines differ in what text they accept as a number or a date, and some raise on the rest. A cast from text therefore
first extracts the pattern below, which every engine reads alike; other text is a missing value. Numbers of these
patterns stay within 1e±140, so no engine overflows.
"""

from __future__ import annotations

import re
from functools import cache

from sfumato.data.in_process import open_duckdb

_LEAP = "(?:0[48]|[2468][048]|[13579][26])"
_DAY = (
    "(?:(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    f"|(?:[0-9][0-9]{_LEAP}|{_LEAP}00)-02-29)"
)
SHAPES = {
    "int": r" *[+-]?[0-9]{1,19}(?:[.][0-9]{0,18})? *",
    "float": r" *[+-]?(?:[0-9]{1,40}(?:[.][0-9]{0,40})?|[.][0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})? *",
    "date": _DAY,
    "time": rf"{_DAY}(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{{1,6}})?)?)?",
    "flag": "[Tt](?:[Rr][Uu][Ee])?|[Yy](?:[Ee][Ss])?|1|[Ff](?:[Aa][Ll][Ss][Ee])?|[Nn][Oo]?|0",
}
"""By kind of value, the regular expression that the whole text must match. Dates are of the years 1 to 9999."""


def reads_as(text: str, kind: str) -> bool:
    """Whether a literal text matches the pattern.

    >>> [reads_as(text, "date") for text in ("2024-02-29", "2023-02-29", "1900-02-29", "0000-01-01")]
    [True, False, False, False]
    """
    return re.fullmatch(SHAPES[kind], text) is not None


@cache
def cases(name: str) -> tuple[str, str]:
    """All letters outside ASCII that LOWER or UPPER changes, and what they become, letter by letter.

    DuckDB itself is asked, so that engines which follow this table cannot differ from it.
    """
    points = "SELECT unnest(range(128, 55296)) AS i UNION ALL SELECT unnest(range(57344, 1114112))"  # no surrogates
    letters = f"SELECT i, chr(CAST(i AS INTEGER)) AS letter FROM ({points})"
    query = (
        f"SELECT string_agg(letter, '' ORDER BY i), string_agg({name}(letter), '' ORDER BY i) FROM ({letters}) "
        f"WHERE {name}(letter) <> letter"
    )
    with open_duckdb(spills=False) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0], row[1]


def folded(text: str) -> str:
    """A text in lower case, as the engines see it.

    >>> folded("Zürich ÄB%")
    'zürich äb%'
    """
    old, new = cases("lower")
    return "".join(letter.lower() if letter.isascii() else letter for letter in text).translate(str.maketrans(old, new))
