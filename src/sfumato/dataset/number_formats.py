"""Number formats: decimal signs and thousands separators, such as 1234.5, 1234,5, 1.234,5, 1,234.5 or 1'234.5."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, kw_only=True)
class NumberFormat:
    """A number format. Thousands separators occur everywhere in a number or nowhere."""

    decimal: str
    thousands: str = ""

    @property
    def pattern(self) -> str:
        mark, point = re.escape(self.thousands), re.escape(self.decimal)
        whole = "[0-9]+" + (f"|[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+" if mark else "")
        return rf"^[+-]?(?:{whole})(?:{point}[0-9]+)?$"

    def read(self, texts: pl.Series) -> pl.Series:
        """Parse texts in this format; null if a text does not match it."""
        fits = texts.str.contains(self.pattern)
        plain = texts.str.replace_all(self.thousands, "", literal=True) if self.thousands else texts
        if self.decimal != ".":
            plain = plain.str.replace(self.decimal, ".", literal=True)
        return plain.cast(pl.Float64, strict=False).set(~fits.fill_null(False), None)


_PLAIN = NumberFormat(decimal=".")
_MARKED = (
    NumberFormat(decimal=","),
    *(NumberFormat(decimal=",", thousands=mark) for mark in (".", " ", "'")),
    *(NumberFormat(decimal=".", thousands=mark) for mark in (",", " ", "'")),
)


def number_format(texts: pl.Series, *, share: float = 1.0) -> NumberFormat | None:
    """The format in which at least that share of the values are numbers, or None.

    None also if a mark could be a decimal sign or a thousands separator and no value decides it.

    >>> number_format(pl.Series(["1.234,5", "17"]))
    NumberFormat(decimal=',', thousands='.')
    >>> number_format(pl.Series(["1,234"])) is None
    True
    """
    distinct = _tidy(texts.drop_nulls().unique())
    if distinct.is_empty() or distinct.head(300).str.contains("[0-9]").mean() < share / 2:  # type: ignore[operator]
        return None
    most = (1 - share) * len(distinct)
    read = {form: numbers for form in (_PLAIN, *_MARKED) if (numbers := form.read(distinct)).null_count() <= most}
    if not read:
        return None
    best = min(read, key=lambda form: read[form].null_count())
    rivals = [form for form in read if read[form].null_count() == read[best].null_count()]
    # an ambiguous point is a decimal sign, as programs write it
    return best if best == _PLAIN or all(read[form].equals(read[best]) for form in rivals) else None


def read_numbers(texts: pl.Series) -> pl.Series:
    """Parse a column of texts in the format of most of its values; null where a text is not a number."""
    plain = texts.cast(pl.Float64, strict=False)
    if plain.null_count() == texts.null_count():
        return plain
    form = number_format(texts) or number_format(texts, share=0.5)
    return plain if form is None or form == _PLAIN else form.read(_tidy(texts)).alias(texts.name)


def _tidy(texts: pl.Series) -> pl.Series:
    """Strip outer spaces and normalize spaces and quotation marks between thousands."""
    return texts.str.replace_all("[\u00a0\u2009\u202f]", " ").str.replace_all("[’´`]", "'").str.strip_chars()
