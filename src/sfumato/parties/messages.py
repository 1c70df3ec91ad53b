"""Short byte strings by party name, as they travel in JSON."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.errors import QueryRefused

_LONGEST = 1000


def packed(parts: Mapping[str, bytes]) -> dict[str, str]:
    return {name: part.hex() for name, part in parts.items()}


def unpacked(document: object) -> dict[str, bytes]:
    """The inverse of :func:`packed`; anything else is refused.

    >>> unpacked(packed({"north": b"abc"}))
    {'north': b'abc'}
    """
    if isinstance(document, dict) and all(isinstance(t, str) and len(t) <= _LONGEST for t in document.values()):
        try:
            return {str(name): bytes.fromhex(text) for name, text in document.items()}
        except ValueError:
            pass
    raise QueryRefused("The shares of a party are not well-formed.", fix="Use the same version everywhere.")
