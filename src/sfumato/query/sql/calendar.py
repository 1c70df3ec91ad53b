"""Calendar arithmetic on constants, as engines do it: truncation, months of different length, the years 1 to 9999."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta
from typing import TypeVar

__all__ = ["FIRST", "LAST", "add_interval", "ordinal", "truncated", "truncations", "unit_number"]

FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)
_Day = TypeVar("_Day", date, datetime)
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def truncated(day: _Day, unit: str) -> _Day:
    """The beginning of the year, quarter, month, week (Monday), day, hour or minute.

    >>> truncated(date(2024, 2, 29), "QUARTER"), truncated(date(2024, 2, 29), "WEEK")
    (datetime.date(2024, 1, 1), datetime.date(2024, 2, 26))
    """
    if isinstance(day, datetime):
        day = day.replace(second=0, microsecond=0)
        if unit == "MINUTE":
            return day
        day = day.replace(minute=0)
        if unit == "HOUR":
            return day
        day = day.replace(hour=0)
    if unit == "WEEK":
        return day - timedelta(days=day.weekday())
    if unit in _MONTHS:
        months = _MONTHS[unit]
        return day.replace(month=(day.month - 1) // months * months + 1, day=1)
    return day


def add_interval(day: _Day, months: int = 0, days: int = 0, minutes: int = 0) -> _Day | None:
    """The date so much later; None outside the years 1 to 9999. The 31st of a shorter month is its last day.

    >>> add_interval(date(2024, 1, 31), months=1), add_interval(date(9999, 12, 31), days=1)
    (datetime.date(2024, 2, 29), None)
    """
    try:
        number = day.year * 12 + day.month - 1 + months
        year, month = divmod(number, 12)
        moved = day.replace(year=year, month=month + 1, day=min(day.day, monthrange(year, month + 1)[1]))
        return moved + timedelta(days=days, minutes=minutes)
    except (ValueError, OverflowError):
        return None


def truncations(first: _Day, last: _Day, unit: str, most: int) -> tuple[_Day, ...] | None:
    """All beginnings of a unit from the one of ``first`` to the one of ``last``; None for more than ``most``."""
    step = {"months": _MONTHS[unit]} if unit in _MONTHS else {"minutes": {"HOUR": 60, "MINUTE": 1}[unit]} if unit in (
        "HOUR", "MINUTE") else {"days": 7 if unit == "WEEK" else 1}  # fmt: skip
    found = []
    at: _Day | None = truncated(first, unit)
    while at is not None and at <= last:
        found.append(at)
        if len(found) > most:
            return None
        at = add_interval(at, **step)
    return tuple(found)


def ordinal(day: date) -> int:
    """Number of days since the first day of the year 1."""
    return day.toordinal() - 1


def unit_number(day: date, unit: str) -> int:
    """The number of the year, quarter, month, day, hour or minute that a date is in; it grows with the date.

    >>> unit_number(date(2024, 3, 1), "MONTH") - unit_number(date(2023, 12, 31), "MONTH")
    3
    """
    if unit in _MONTHS:
        return (day.year * 12 + day.month - 1) // _MONTHS[unit]
    hours = ordinal(day) * 24 + (day.hour if isinstance(day, datetime) else 0)
    minutes = hours * 60 + (day.minute if isinstance(day, datetime) else 0)
    return {"DAY": ordinal(day), "HOUR": hours, "MINUTE": minutes}[unit]
