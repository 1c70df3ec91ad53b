"""Numbers, names and attacks as readers see them: the same in advice, reports and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Plain = Mapping[str, Any]
"""A result as plain data, as JSON documents hold it."""


def digits_beside(value: float, limit: float | None, digits: int) -> int:
    """The number of digits, at least ``digits``, with which ``value`` is not rounded onto or across ``limit``.

    >>> digits_beside(0.0996, 0.1, 2), digits_beside(0.5, 0.1, 2), digits_beside(0.1, 0.1, 2)
    (4, 2, 2)
    """
    if limit is None or value == limit:
        return digits
    # To double precision a difference shows within 17 digits.
    return next((d for d in range(digits, 18) if (round(value, d) - limit) * (value - limit) > 0), 18)


def percent(share: float | None, *, digits: int = 1, limit: float | None = None) -> str:
    """A share in percent. Small shares are not rounded to 0 %, large ones not to 100 %, and none across a limit.

    >>> percent(0.8712), percent(0.0004), percent(0.0), percent(0.9999), percent(None), percent(0.0996, limit=0.1)
    ('87.1%', 'under 0.1%', '0%', 'over 99.9%', '–', '9.96%')
    """
    if share is None:
        return "–"
    digits = digits_beside(share, limit, digits + 2) - 2
    least = 10.0**-digits / 100
    if 0 < share < least / 2:
        return f"under {least * 100:.{digits}f}%"
    if 1 - least / 2 < share < 1:
        return f"over {(1 - least) * 100:.{digits}f}%"
    text = f"{share * 100:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def interval_ends(low: float | None, high: float | None) -> str:
    """Both ends of an interval in percent, rounded outwards, as in published figures.

    Equal ends belong to a share that was computed for all records.

    >>> interval_ends(0.1226, 0.1829), interval_ends(0.126, 0.126), interval_ends(0.00001, 0.99999)
    ('12.2% to 18.3%', 'exact', '0% to 100%')
    """
    if low is None or high is None:
        return "–"
    if low == high:
        return "exact"
    return f"{percent(rounded_outwards(low, 3, up=False))} to {percent(rounded_outwards(high, 3, up=True))}"


def rounded_outwards(end: float, digits: int, *, up: bool) -> float:
    """An end of an interval with so many digits: the interval only grows.

    >>> rounded_outwards(0.1234, 3, up=False), rounded_outwards(0.1234, 3, up=True), rounded_outwards(0.1, 3, up=True)
    (0.123, 0.124, 0.1)
    """
    scale = 10.0**digits
    return (math.ceil(end * scale - 1e-9) if up else math.floor(end * scale + 1e-9)) / scale


def of_hundred(share: float) -> str:
    """How many of a hundred people: whole from ten up, one decimal below.

    >>> of_hundred(0.871), of_hundred(0.021), of_hundred(0.0), of_hundred(0.0001), of_hundred(1.0)
    ('87', '2.1', 'none', 'fewer than 0.1', '100')
    >>> of_hundred(0.1252), of_hundred(0.125)
    ('13', '13')
    """
    if share == 0:
        return "none"
    if share < 0.0005:
        return "fewer than 0.1"
    if share >= 0.0995:
        # From the rounded share: published figures have three digits, and both must give the same whole number.
        whole = (round(share * 1000) + 5) // 10
        return "100" if share == 1 else "more than 99" if share > 0.995 else f"{whole}"
    return f"{share * 100:.1f}".removesuffix(".0")


def number(value: float | int | None) -> str:
    """
    >>> number(5), number(0.241932), number(5.0), number(None), number(20000), number(0.0002)
    ('5', '0.242', '5', '–', '20,000', 'under 0.001')
    """
    if value is None:
        return "–"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    if abs(value) >= 1:
        return f"{value:,.2f}"
    return f"{value:.3f}".rstrip("0") if abs(value) >= 0.0005 else "under 0.001" if value > 0 else f"{value:.1g}"


def join_words(names: Sequence[str], *, last: str = "and") -> str:
    """
    >>> join_words(["ZIP", "birth", "sex"])
    'ZIP, birth and sex'
    """
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else "".join(names)


def readable_name(name: str) -> str:
    """The name of a part or key in a sentence.

    >>> readable_name("k-anonymity"), readable_name("class-sizes")
    ('k-anonymity', 'class sizes')
    """
    return name if name[1:2] == "-" else name.replace("-", " ").replace("_", " ")


def in_words(value: object, *, colon: str = ": ") -> str:
    """Plain data as one line of text.

    >>> in_words({"levels": {"zip": 2}, "optimal": True})
    'levels: zip: 2, optimal: yes'
    """
    match value:
        case Mapping():
            return ", ".join(f"{key}{colon}{in_words(item, colon=colon)}" for key, item in value.items())
        case bool():
            return "yes" if value else "no"
        case int() | float() | None:
            return number(value)
        case list() | tuple():
            parts = ((isinstance(item, list | tuple), in_words(item, colon=colon)) for item in value)
            return ", ".join(f"({text})" if nested else text for nested, text in parts)
        case _:
            return str(value)


def attack_label(attack: Mapping[str, object]) -> str:
    """The name of an attack in tables and pictures: its part name, its sensitive column, its setting.

    >>> attack_label({"attack": "learned-linkage", "discloses": "identity", "setting": "30% known"})
    'learned linkage, 30% known'
    """
    secret = attack.get("secret")
    aim = f": {secret}" if secret is not None and attack.get("discloses") == "attribute" else ""
    setting = f", {attack['setting']}" if attack.get("setting") else ""
    return f"{readable_name(str(attack.get('attack')))}{aim}{setting}"


def column_weights(attack: Mapping[str, Any], most: int = 4) -> tuple[tuple[str, float], ...]:
    """The columns that contributed most to an attack that reports column weights, as shares of the sum."""
    weights = (attack.get("detail") or {}).get("columns")
    if not isinstance(weights, Mapping):
        return ()
    positive = {str(name): max(0.0, float(value)) for name, value in weights.items()}
    total = sum(positive.values())
    ranked = sorted(positive.items(), key=lambda item: -item[1])
    return tuple((name, value / total) for name, value in ranked[:most] if total > 0 and value > 0.01 * total)
