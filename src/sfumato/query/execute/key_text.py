"""Keys of groups as values of JSON: dates and times keep their type."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any


def key_to_json(key: tuple[object, ...]) -> list[object]:
    """A key as JSON values.

    >>> key_to_json(("north", 3, date(2026, 1, 31)))
    ['north', 3, {'date': '2026-01-31'}]
    """

    def plain(value: object) -> object:
        if isinstance(value, datetime):
            return {"datetime": value.isoformat()}
        return {"date": value.isoformat()} if isinstance(value, date) else value

    return [plain(value) for value in key]


def key_from_json(parts: list[object]) -> tuple[object, ...]:
    """The inverse of :func:`key_to_json`."""

    def parse(value: object) -> Any:
        if isinstance(value, dict):
            [(kind, written)] = value.items()
            return (datetime if kind == "datetime" else date).fromisoformat(written)
        return value

    return tuple([parse(part) for part in parts])
