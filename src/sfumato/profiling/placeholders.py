"""Placeholder codes for missing values: 999 for an unknown age, -9 for a refusal, a dot instead of a number.

Statistics packages and survey forms write such codes instead of an empty cell. Read as values they form a false
equivalence class, widen every range and bias every mean. A code is *sure* if the file declares it or if it is far
outside all other values; otherwise it is only reported, because 99 may be an age.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

import polars as pl

from sfumato.data.missing import is_missing
from sfumato.dataset.casting import date_format
from sfumato.dataset.number_formats import number_format

Code = int | float | str | tuple[float, float]

_NINES = frozenset(
    sign * number
    for digits in range(1, 8)
    for number in (*(int(str(d) * digits) for d in (6, 7, 8, 9)), *(10**digits - d for d in (2, 3, 4)))
    for sign in (1, -1)
) | frozenset({9.9, 99.9, 999.9, 99.99, 999.99, 9999.99})
"""9, 99, 999, ..., the same of 8, 7 and 6, and 98, 97, 96; also negative."""
_CODES = sorted(map(float, _NINES | frozenset(range(-9, 0))))
_USUAL = frozenset(_CODES) - frozenset(range(-6, -2))
"""Negative codes that surveys use; -3 to -6 are rare."""
_FAR = 3.0
"""A code is far above the other values if it is more than this many times the largest of them."""
_FEW = 5
"""More distinct candidates on one side than this are taken for values."""
_DAYS = frozenset({date(9999, 12, 31), date(9999, 1, 1), date(2999, 12, 31), date(1111, 11, 11), date(1, 1, 1)})
_FIRST_DAY = date(1900, 1, 1)
_BLANKS = frozenset(
    {".", "..", "...", "-", "--", "---", "?", "??", "#n/a", "#na", "n/a", "n.a.", "nan", "null", "<na>"}
)
_WORDS = frozenset(
    {"na", "missing", "k.a.", "keine angabe", "no answer", "not available", "not applicable", "not stated"}
)
_SAID = re.compile(
    r"\b(missing|no answer|not answered|refus\w*|not stated|keine angabe|verweigert|no contesta|sans r[eé]ponse)\b",
    re.IGNORECASE,
)
_HINTED = re.compile(
    r"\b(do(n'?t| not) know|not applicable|not available|unknown|wei(ss|ß) nicht|trifft nicht zu|no sabe)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Placeholder:
    """Codes of one column that share a reason."""

    codes: tuple[Code, ...]
    reason: str
    sure: bool
    """Whether the proposed recipe reads them as missing; otherwise they are only reported."""
    rows: int
    """Number of examined rows with one of them."""

    def to_dict(self) -> dict[str, object]:
        """The placeholder as plain data."""
        codes = [[str(e) if math.isinf(e) else e for e in c] if isinstance(c, tuple) else c for c in self.codes]
        return {"codes": codes, "reason": self.reason, "sure": self.sure, "rows": self.rows}


def find_placeholders(
    values: pl.Series, *, declared: tuple[Code, ...] = (), value_labels: Mapping[Any, str] | None = None
) -> tuple[Placeholder, ...]:
    """Codes of a column that may mean "no answer"; ``declared`` are those that the file declares as missing.

    >>> [(item.codes, item.sure) for item in find_placeholders(pl.Series([23, 41, 999, 35, 999, 17]))]
    [((999,), True)]
    >>> [(item.codes, item.sure) for item in find_placeholders(pl.Series([23, 41, 99, 35, 99, 17, 90]))]
    [((99,), False)]
    """
    placeholders = []
    if declared:
        placeholders.append(_placeholder(values, declared, "the file declares it as missing"))
        values = values.set(is_missing(values, declared), None)
    for pattern, sure in ((_SAID, True), (_HINTED, False)):
        meant = tuple(code for code, words in (value_labels or {}).items() if pattern.search(words))
        meant = tuple(code for code in meant if bool(is_missing(values, (code,)).any()))
        if meant:
            reason = "its label in the file says so" if sure else "its label in the file may mean no answer"
            placeholders.append(_placeholder(values, meant, reason, sure=sure))
            values = values.set(is_missing(values, meant), None)
    known = values.drop_nulls()
    if known.is_empty():
        return tuple(placeholders)
    if known.dtype.is_numeric():
        placeholders += _numbers(known)
    elif known.dtype == pl.String:
        placeholders += _texts(known)
    elif known.dtype in (pl.Date, pl.Datetime):
        placeholders += _days(known)
    return tuple(placeholders)


def _placeholder(values: pl.Series, codes: tuple[Code, ...], reason: str, *, sure: bool = True) -> Placeholder:
    return Placeholder(codes=codes, reason=reason, sure=sure, rows=int(is_missing(values, codes).sum()))


def _counted(values: pl.Series) -> dict[Any, int]:
    return {_plain(value): int(rows) for value, rows in values.value_counts(name="rows").iter_rows()}


def _numbers(known: pl.Series) -> Iterator[Placeholder]:
    known = known.cast(pl.Float64)
    known = known.filter(known.is_finite())
    codes = {value: rows for value, rows in _counted(known.filter(known.is_in(_CODES))).items() if rows > 1}
    above = {value: rows for value, rows in codes.items() if value > 0}
    below = {value: rows for value, rows in codes.items() if value < 0}
    rest = known.filter(~known.is_in(list(map(float, codes))))
    if rest.is_empty() or not codes:
        return
    low, high = cast(float, rest.min()), cast(float, rest.max())
    # 88 among ages up to 90 is an age, and so is a value right above the largest other value.
    gap = max(2.0, 0.05 * (high - low))
    for value in sorted(above):
        if value - high < gap:
            del above[value]
            high = max(high, value)
    far = {value: rows for value, rows in above.items() if value > _FAR * high >= 0}
    if 0 < len(far) <= _FEW:
        yield _outside(far, f"more than {_FAR:g} times the largest other value", sure=True)
    near = {value: rows for value, rows in above.items() if value not in far}
    if 0 < len(near) <= _FEW:
        yield _outside(near, "above all other values, with a gap: a code, a top code or a value", sure=False)
    if low < 0 or not 0 < len(below) <= _FEW:
        return
    if below.keys() <= _USUAL and (low - max(below) >= 2 or min(below) <= -7):
        yield _outside(below, "the only values below zero", sure=True)
    elif len(below) <= 2 or low - max(below) >= 2:
        yield _outside(below, "the only values below zero: codes, or values", sure=False)


def _texts(known: pl.Series) -> Iterator[Placeholder]:
    lower = known.str.strip_chars(" ").str.to_lowercase()
    blank = lower.is_in(list(_BLANKS))
    said = lower.is_in(list(_WORDS)) | lower.str.contains(f"^(?:{_SAID.pattern}|{_HINTED.pattern})$")
    if (blank | said).all():
        return
    if blank.any():
        yield _outside(_counted(known.filter(blank).str.strip_chars(" ")), "a sign for a missing value", sure=True)
    words = _counted(known.filter(said & ~blank).str.strip_chars(" "))
    if not 0 < len(words) <= _FEW:
        return
    answers = known.filter(~(said | blank))
    if number_format(answers) is not None or date_format(answers) is not None:
        yield _outside(words, "words for a missing value, while all other values are numbers or dates", sure=True)
    else:
        yield _outside(words, "words for a missing value, or regular answers", sure=False)


def _days(known: pl.Series) -> Iterator[Placeholder]:
    counts = _counted(known.dt.date())
    never = {day.isoformat(): rows for day, rows in counts.items() if day in _DAYS}
    if never and len(never) < len(counts):
        yield _outside(never, "not a plausible date", sure=True)
    first = counts.get(_FIRST_DAY, 0)
    later = [rows for day, rows in counts.items() if day > _FIRST_DAY]
    if first > 1 and later and min(counts) >= _FIRST_DAY and first > 5 * max(later):
        yield _outside(
            {_FIRST_DAY.isoformat(): first},
            "a common default date that occurs far more often than other dates",
            sure=False,
        )


def _outside(codes: Mapping[Any, int], reason: str, *, sure: bool) -> Placeholder:
    return Placeholder(codes=tuple(sorted(codes)), reason=reason, sure=sure, rows=sum(codes.values()))


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
