"""Parser of released values: the known values that a mask, range, set or date part may represent.

Releases come from many tools. Supported are ``*``; masks ``021**``; ranges ``20-29``, ``[20, 30)``, ``[20,30[`` and
``20..29``; one-sided ranges ``<40``, ``>=40``, ``40+``; ranges in words and with units (``40-49 years``, ``under 30``,
``65 and over``, ``between 10 and 20``, ``40s``, ``10k-20k``); sets ``{a, b}``; years, months, quarters and decades of
dates (``1964``, ``1964-03``, ``1964-Q1``, ``1960s``), ranges of years for dates. Everything else represents itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.normalize import canonical

Bools = npt.NDArray[np.bool_]

ROOTS = frozenset({"*", "any", "Any", "ANY", "[*]", "{*}"})
"""Labels that represent any value."""

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_DATE = r"\d{4}-\d{2}-\d{2}"
_BRACKET = re.compile(
    rf"^([\[\](])\s*({_NUMBER}|{_DATE}|-?inf|)\s*(?:,|;|\.\.)\s*({_NUMBER}|{_DATE}|\+?inf|)\s*([\[\])])$"
)
_DASH = re.compile(rf"^\[?\s*({_NUMBER}|{_DATE})\s*(?:-|–|\.\.|\bto\b)\s*({_NUMBER}|{_DATE})\s*\]?$")
_ONE_SIDED = re.compile(rf"^(<=|>=|<|>|≤|≥)\s*({_NUMBER}|{_DATE})$")
_PLUS = re.compile(rf"^({_NUMBER})\s*\+$")
_SET = re.compile(r"^\{(.*)\}$", re.DOTALL)
_DECADE = re.compile(r"^(\d{3})0s$")
_TENS = re.compile(r"^(\d{1,2}0)s$")
_QUARTER = re.compile(r"^(\d{4})-?Q([1-4])$")
_DATE_PART = re.compile(r"^\d{4}(-\d{2})?$")
_WORDS = (
    (r"^(?:aged?|ages)\s+", ""),
    (r"^(?:under|below|less than|fewer than|younger than)\s+", "<"),
    (r"^(?:up to|at most|no more than|maximum)\s+", "<="),
    # Whether "over 65" includes 65 differs between authors: the wider reading never excludes the true value.
    (r"^(?:over|above|more than|older than|greater than|at least|from|minimum)\s+", ">="),
    (r"^between\s+(.+?)\s+and\s+", r"\1-"),
    (r"^(.*\d.*?)\s*(?:and|or)\s+(?:over|above|older|more|up|greater)$", r">=\1"),
    (r"^(.*\d.*?)\s*(?:and|or)\s+(?:under|below|younger|less|fewer)$", r"<=\1"),
)
"""Words of ranges, and the signs that they stand for."""
_UNIT = r"[€$£%]|y\b|(?!st\b|nd\b|rd\b|th\b|to\b)[a-z]{2,}\.?(?:\s+old)?"
_MARKED = re.compile(rf"[€$£]\s*(?=\d)|(?<=[\d+])\s*(?:{_UNIT})(?=\s*(?:[-–+]|to\b|\.\.|$))")
"""Currencies and units of measurement beside a number."""
_THOUSANDS = re.compile(r"(?<=\d)[,'’\u00a0\u202f](?=\d{3}(?!\d))")
_FACTOR = re.compile(r"(\d+(?:\.\d+)?)\s*([km])(?![a-z0-9])")
IN_WORDS = (
    r"(?i)^(aged?|ages|under|below|less|fewer|younger|up to|at most|no more|maximum|over|above|more|older|greater|"
    r"at least|from|minimum|between)\b.*\d|\d.*\b(and|or)\s+[a-z]+$|\d0s$|^[€$£]|"
    r"^\d[\d.,'’]*\s*[a-z€$£%.]{0,8}\s*(-|–|\bto\b)\s*[€$£]?\d"
)
"""Labels that may be a range in words, with a unit or with a factor."""


@dataclass(frozen=True, kw_only=True)
class ValueRange:
    """A range of numbers or dates as a label states it."""

    low: str = ""
    high: str = ""
    low_in: bool = True
    high_in: bool = True
    whole: bool = False
    """Whether an upper bound that is an integer includes the fractions above it."""

    @cached_property
    def of_dates(self) -> bool:
        return bool(re.match(_DATE, self.low) or re.match(_DATE, self.high))

    def in_days(self) -> ValueRange:
        """A range of years as a range of days."""
        low = self.low and f"{int(self.low) + (not self.low_in):04d}-01-01"
        high = self.high and f"{self.high}-{'12-31' if self.high_in else '01-01'}"
        return ValueRange(low=low, high=high, high_in=self.high_in)

    @cached_property
    def of_years(self) -> bool:
        return all(re.match(r"\d{4}$", end) for end in (self.low, self.high) if end)

    @cached_property
    def numbers(self) -> tuple[float, float]:
        """The bounds as numbers, infinite where the range is open."""
        return float(self.low or "-inf"), float(self.high or "inf")


@dataclass(frozen=True, kw_only=True)
class Known:
    """Distinct values of one column that the adversary knows."""

    values: pl.Series
    """Distinct, in the column's own type."""
    text: pl.Series = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", canonical(self.values))

    @cached_property
    def number(self) -> npt.NDArray[np.float64]:
        """The values as numbers, NaN where they are not numeric."""
        source = self.values if self.values.dtype.is_numeric() else self.text
        return source.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()

    @cached_property
    def is_date(self) -> bool:
        if self.values.dtype.is_temporal():
            return True
        present = self.text.drop_nulls()
        return len(present) > 0 and bool(present.str.contains(r"^\d{4}-\d{2}-\d{2}").all())

    def _mask(self, expression: pl.Expr) -> Bools:
        return pl.DataFrame({"v": self.text}).select(expression.fill_null(False)).to_series().to_numpy()

    def in_units(self, span: ValueRange) -> ValueRange:
        """The range in the units of the values: years become days where the values are dates."""
        return span.in_days() if span.of_years and self.is_date else span

    def between(self, span: ValueRange) -> Bools:
        """Values in a range."""
        span = self.in_units(span)
        if span.of_dates:
            inside = pl.lit(True)
            if span.low:
                inside &= (pl.col("v") >= span.low) if span.low_in else (pl.col("v") > span.low)
            if span.high:
                day = pl.col("v").str.head(10)
                inside &= (day <= span.high) if span.high_in else (day < span.high)
            return self._mask(inside)
        number = np.floor(self.number) if span.whole else self.number
        low, high = span.numbers
        with np.errstate(invalid="ignore"):
            above = (number >= low) if span.low_in else (number > low)
            below = (number <= high) if span.high_in else (number < high)
        return above & below

    def pattern(self, text: str) -> Bools:
        """Values of the same length that agree in all unmasked characters."""
        regex = "^" + "".join("." if sign in "*?" else re.escape(sign) for sign in text) + "$"
        return self._mask(pl.col("v").str.contains(regex))

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each spelling is among the values."""
        places: dict[str, list[int]] = {}
        for place, text in enumerate(self.text.to_list()):
            places.setdefault(text, []).append(place)
        return places

    def one_of(self, members: list[str]) -> Bools:
        found = np.zeros(len(self.values), dtype=np.bool_)
        for member in members:
            found[self.places.get(member, [])] = True
        return found

    def prefix(self, text: str) -> Bools:
        return self._mask(pl.col("v").str.starts_with(text))

    def everything(self) -> Bools:
        return np.ones(len(self.values), dtype=np.bool_)


def reader(label: str) -> Callable[[Known], Bools] | None:
    """A function that selects the known values a released label represents; None if the label represents itself.

    >>> known = Known(values=pl.Series([19, 20, 29, 30]))
    >>> read = reader("[20, 30)")
    >>> read(known).tolist() if read else None
    [False, True, True, False]
    >>> reader("Golf") is None
    True
    """
    text = label.strip()
    if text in ROOTS or (text and set(text) == {"*"}):
        return Known.everything
    if (span := value_range(text)) is not None:
        return lambda known: known.between(span)
    if (members := set_members(text)) is not None:
        return lambda known: known.one_of(members)
    if parsed := _DECADE.match(text):
        decade = parsed.group(1)
        return lambda known: known.prefix(decade)
    if parsed := _QUARTER.match(text):
        year, quarter = parsed.group(1), int(parsed.group(2))
        months = [f"{year}-{month:02d}" for month in range(3 * quarter - 2, 3 * quarter + 1)]
        return lambda known: np.logical_or.reduce([known.prefix(month) for month in months])
    if _DATE_PART.match(text):
        return lambda known: known.prefix(text + "-") if known.is_date else known.one_of([text])
    if "*" in text:
        return lambda known: known.pattern(text)
    return None


def set_members(label: str) -> list[str] | None:
    """The values that a set lists; None for other labels.

    >>> set_members("{asthma, flu}"), set_members("20-29")
    (['asthma', 'flu'], None)
    """
    parsed = _SET.match(label.strip())
    return None if parsed is None else [member.strip().strip("'\"") for member in parsed.group(1).split(",")]


@lru_cache(maxsize=1 << 16)
def value_range(label: str) -> ValueRange | None:
    """The range that a label states, or None if it is no range.

    >>> value_range("[20, 30)"), value_range("1964-03")
    (ValueRange(low='20', high='30', low_in=True, high_in=False, whole=False), None)
    >>> value_range("10k to 20k EUR").numbers, value_range("65 years and over").numbers
    ((10000.0, 20000.0), (65.0, inf))
    """
    text = label.strip()
    found = _signed_range(text)
    if found is None and any(sign.isdigit() for sign in text) and text[:1] not in "[({":
        plain = _in_signs(text.lower())
        found = _signed_range(plain) if plain != text else None
    return found


def _in_signs(text: str) -> str:
    """A range in words as one in signs, without units, currencies and separators of thousands."""
    text = _THOUSANDS.sub("", text)
    text = _FACTOR.sub(lambda found: f"{float(found[1]) * _FACTORS[found[2]]:.0f}", text)
    for pattern, sign in _WORDS:
        text = re.sub(pattern, sign, text)
    return _MARKED.sub("", text).strip()


_FACTORS = {"k": 1000, "m": 1_000_000}


def _signed_range(text: str) -> ValueRange | None:
    if parsed := _BRACKET.match(text):
        left, low, high, right = parsed.groups()
        return ValueRange(low=low, high=high, low_in=left == "[", high_in=right == "]")
    if parsed := _DASH.match(text):
        low, high = parsed.groups()
        # 1964-03 would be an empty range from 1964 to 3: it is a month.
        if "-" in low[1:] or float(low) <= float(high):
            return ValueRange(low=low, high=high, whole="." not in high)
    if parsed := _ONE_SIDED.match(text):
        sign, bound = parsed.groups()
        if sign in ("<", "<=", "≤"):
            return ValueRange(high=bound, high_in=sign != "<")
        return ValueRange(low=bound, low_in=sign != ">")
    if parsed := _PLUS.match(text):
        return ValueRange(low=parsed.group(1))
    if parsed := _TENS.match(text):
        return ValueRange(low=parsed.group(1), high=str(int(parsed.group(1)) + 10), high_in=False)
    return None


def bounds(label: str) -> tuple[float, float] | None:
    """The bounds of a label that is a range of numbers; an open end is infinite. None for other labels.

    >>> bounds("[20, 30)"), bounds("20-29"), bounds("<40"), bounds("Golf")
    ((20.0, 30.0), (20.0, 29.0), (-inf, 40.0), None)
    """
    span = value_range(label)
    if span is None or span.of_dates:
        return None
    low, high = span.numbers
    return (low, high) if low <= high else None
