"""Facts about a column that detectors use: words of its name, type, distinct values, a sample."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from sfumato.dataset import Kind
from sfumato.dataset.casting import date_format, read_dates
from sfumato.rng import Rng

_SAMPLE = 5000
_LETTERS = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l"}
)
"""Letters that Unicode normalization does not decompose."""


def words_of(name: str) -> str:
    """The words of a column's name in lower case, without accents, between spaces.

    >>> words_of("dateOfBirth"), words_of("ZIP5"), words_of("Código_postal")
    (' date of birth ', ' zip 5 ', ' codigo postal ')
    """
    spelled = name.translate(_LETTERS)
    plain = unicodedata.normalize("NFKD", spelled).encode("ascii", "ignore").decode()
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])", " ", plain)
    return f" {' '.join(re.findall(r'[a-z]+|[0-9]+', parted.lower()))} "


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Name, type and a sample of the values of one column."""

    name: str
    series: pl.Series = field(repr=False)
    """The values. The series has another name, because Polars might interpret the column's name as a pattern."""
    label: str = ""
    """The label of the column, if the file has one."""
    value_labels: Mapping[object, str] = field(default_factory=dict, repr=False)
    """Labels of the codes, if the file has them."""

    @cached_property
    def words(self) -> str:
        return words_of(self.name) + words_of(self.label)

    @cached_property
    def kind(self) -> Kind:
        return Kind.of(self.series.dtype)

    @cached_property
    def present(self) -> int:
        """Rows with a value."""
        return len(self.series) - self.series.null_count()

    @cached_property
    def distinct(self) -> int:
        """Number of distinct values, missing not counted."""
        return self.series.n_unique() - (self.series.null_count() > 0)

    @property
    def spread(self) -> float:
        """Distinct values per row with a value: 1 if every value is unique."""
        return self.distinct / self.present if self.present else 0.0

    @cached_property
    def sample(self) -> pl.Series:
        """Values of at most 5000 random rows."""
        values = self.series.drop_nulls()
        if len(values) > _SAMPLE:
            rows = Rng(0).child("profile", self.name).generator.choice(len(values), _SAMPLE, replace=False)
            values = values.gather(rows)
        return values

    @cached_property
    def texts(self) -> pl.Series:
        """The sample as stripped text, with codes replaced by their labels."""
        text = self.sample.cast(pl.String)
        if self.value_labels:
            # A code may be stored as 1 and labelled as 1.0, or the reverse.
            plain = {str(code).removesuffix(".0"): words for code, words in self.value_labels.items()}
            text = text.str.strip_suffix(".0").replace(plain)
        return text.str.strip_chars()

    @property
    def coded(self) -> bool:
        """Whether the values are numbers or flags without labels."""
        return self.kind is not Kind.CATEGORY and not self.value_labels

    @cached_property
    def dates(self) -> tuple[float, Kind | None]:
        """Share of dates among the sampled values, and their kind."""
        if self.kind in (Kind.DATE, Kind.DATETIME):
            return 1.0, self.kind
        if self.kind is Kind.INTEGER and self.between(18000101, 21001231) < 0.9:
            return 0.0, None
        if self.kind not in (Kind.CATEGORY, Kind.INTEGER) or self.texts.is_empty():
            return 0.0, None
        written = date_format(self.texts, share=0.5)
        if written is None:
            return 0.0, None
        share = 1 - read_dates(self.texts, written).null_count() / len(self.texts)
        return share, Kind.DATETIME if "%H" in written else Kind.DATE

    def says(self, *phrases: str) -> str | None:
        """The first of these phrases that occurs in the name as whole words, or equals the name without spaces."""
        compact = self.words.replace(" ", "")
        for phrase in phrases:
            if f" {phrase} " in self.words or phrase.replace(" ", "") == compact:
                return phrase
        return None

    def share(self, pattern: str, check: Callable[[str], bool] | None = None) -> float:
        """Share of the sampled values that match the whole pattern and pass the check."""
        if self.texts.is_empty():
            return 0.0
        fits = self.texts.filter(self.texts.str.contains(f"^(?:{pattern})$"))
        passed = sum(map(check, fits.to_list())) if check is not None else len(fits)
        return passed / len(self.texts)

    def share_in(self, known: frozenset[str]) -> float:
        """Share of the sampled values that are in this set of words, ignoring case."""
        if self.texts.is_empty():
            return 0.0
        lower = self.texts.str.to_lowercase().str.replace_all(r"[-_. ]+", " ")
        return float(lower.is_in(list(known)).mean() or 0.0)  # type: ignore[arg-type]

    def between(self, low: float, high: float) -> float:
        """Share of the sampled values that are numbers in this range."""
        if self.sample.is_empty() or not self.sample.dtype.is_numeric():
            return 0.0
        # A bound outside the range of a small integer type cannot be compared with it.
        return float(self.sample.cast(pl.Float64).is_between(low, high).mean() or 0.0)  # type: ignore[arg-type]
