"""Proposed hierarchies: intervals or quantile bands of numbers, calendar units of dates, groups of ordered values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import pairwise

import polars as pl

from sfumato.dataset import Kind
from sfumato.profiling.detectors.facts import Facts

_BANDS = 20
"""About how many intervals the finest level has."""
_SKEWED = 0.5
"""Numbers with more than this share in one of these intervals get quantile bands."""
_MOST_ORDERED = 60
"""The largest number of ordered categories."""
_RANGE = re.compile(
    r"(?P<open>(?:[<>]=?|≤|≥|under|below|over|from|up to)\s*)?(?P<low>\d+(?:\.\d+)?)"
    r"(?:\s*(?:-|–|to)\s*(?P<high>\d+(?:\.\d+)?)|\s*(?:\+|and (?:over|more|older)|or more))?"
    r"(?:\s*[A-Za-z$€£%.]+)?",
    re.IGNORECASE,
)
_BELOW = ("<", "≤", "under", "below", "up to")


def propose_hierarchy(facts: Facts, kind: Kind) -> Mapping[str, object] | None:
    """A hierarchy for a column of numbers, dates or ordered values; None if it has no order or no coarser level.

    Widths and break points are rounded, so that they do not repeat values of the data.
    """
    if facts.distinct <= 2:
        return None
    match kind:
        case Kind.DATE | Kind.DATETIME:
            return _calendar(facts.series)
        case Kind.INTEGER | Kind.NUMBER if facts.series.dtype.is_numeric():
            return _bands(facts)
        case Kind.CATEGORY:
            return _groups(facts.series)
        case _:
            return None


def _calendar(values: pl.Series) -> Mapping[str, object]:
    """Month, year and decade; quarter instead of decade if the dates span at most three years."""
    units = ["month", "year", "decade"]
    if values.dtype.is_temporal() and values.dtype != pl.Time:
        years = values.dt.year()
        first, last = years.min(), years.max()
        if isinstance(first, int) and isinstance(last, int) and last - first < 3:
            units = ["month", "quarter", "year"]
    return {"dates": units}


def _bands(facts: Facts) -> Mapping[str, object] | None:
    """Intervals of a round width and its multiples, or quantile bands for skewed numbers."""
    numbers = facts.sample.cast(pl.Float64)
    numbers = numbers.filter(numbers.is_finite())
    low, high = numbers.quantile(0.01), numbers.quantile(0.99)
    if low is None or high is None:
        return None
    least, most = numbers.min(), numbers.max()
    if not high > low:  # the central values are all the same
        low, high = float(least), float(most)  # type: ignore[arg-type]
    if not math.isfinite(high - low) or high <= low:
        return None
    whole = facts.kind is Kind.INTEGER
    exact = (high - low) / min(_BANDS, max(facts.distinct / 2, 2))
    width = _rounded_up(exact, whole=whole)
    fullest = (numbers / width).floor().value_counts()["count"].max()
    if facts.distinct > _BANDS and isinstance(fullest, int) and fullest > _SKEWED * len(numbers):
        levels = _quantile_levels(numbers, whole=whole)
        if levels:
            return {"breaks": levels}
    widths = [width * factor for factor in (1, 2, 4, 8)]
    kept = [widths[0], *(wide for wide in widths[1:] if wide < high - low)]
    return {"intervals": [_plain(wide) for wide in kept]}


def _rounded_up(exact: float, *, whole: bool) -> float:
    """The next width of the form 1, 2 or 5 times a power of ten; at least 2 for whole numbers.

    >>> _rounded_up(3.2, whole=True), _rounded_up(0.07, whole=False), _rounded_up(0.5, whole=True)
    (5, 0.1, 2)
    """
    ten = 10.0 ** math.floor(math.log10(exact))
    width = next(step * ten for step in (1, 2, 5, 10) if step * ten >= exact * (1 - 1e-9))
    return max(round(width), 2) if whole else float(f"{width:.6g}")


def _quantile_levels(numbers: pl.Series, *, whole: bool) -> list[list[int | float]]:
    """Break points at sixteenths, eighths, quarters and the half, rounded to two digits."""
    points: dict[float, int] = {}
    for place in range(1, 16):
        value = numbers.quantile(place / 16)
        if value is not None and value != 0:
            rounded = float(f"{value:.2g}")
            rounded = float(round(rounded)) if whole else rounded
            # a point of a coarser level stays if two coincide
            points[rounded] = max(points.get(rounded, 0), place & -place)
    levels = [[_plain(value) for value in sorted(points) if points[value] >= step] for step in (1, 2, 4, 8)]
    distinct = [finer for finer, coarser in pairwise(levels) if finer != coarser] + levels[-1:]
    return [level for level in distinct if level]


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else float(f"{value:.6g}")


def _groups(values: pl.Series) -> Mapping[str, object] | None:
    """Pairs of neighbours, then pairs of these: of an enumeration, or of texts that are all ranges such as 18-24."""
    order = _order(values)
    if order is None or not 3 <= len(order) <= _MOST_ORDERED:
        return None
    sizes = []
    left = len(order)
    while left > 2:
        sizes.append(2)
        left = -(-left // 2)
    return {"groups": {"order": order, "sizes": sizes}}


def _order(values: pl.Series) -> list[str] | None:
    if isinstance(values.dtype, pl.Enum):
        return values.dtype.categories.to_list()
    texts = values.cast(pl.String).drop_nulls().unique().to_list()
    if not 3 <= len(texts) <= _MOST_ORDERED:
        return None
    places = [_place(text) for text in texts]
    known = [place for place in places if place is not None]
    ranges = sum(place[2] for place in known)
    if len(known) < len(texts) or ranges < len(texts) - 2 or len({place[:2] for place in known}) < len(known):
        return None
    return [text for _, text in sorted(zip(known, texts, strict=True))]


def _place(text: str) -> tuple[float, int, bool] | None:
    """Where a range stands among others: its first number, and whether it is a range at all."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return None
    opened = (match["open"] or "").strip().lower()
    below = opened.startswith(_BELOW)
    number = float(match["low"])
    return (-math.inf if below else number), (1 if opened and not below else 0), match["high"] is not None
