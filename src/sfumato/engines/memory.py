"""Memory limits as users write them: 4GB, 512MiB, 2g."""

from __future__ import annotations

import re

from sfumato.errors import BadParameter

_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def memory_bytes(text: str) -> int:
    """The limit in bytes.

    >>> memory_bytes("4GB"), memory_bytes("512MiB"), memory_bytes("2g")
    (4000000000, 536870912, 2147483648)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(b|ib)?\s*", text.lower())
    if match is None:
        raise BadParameter(f"`{text}` is no amount of memory.", fix="Write it like 4GB or 512MiB.")
    number, unit, ending = match.groups()
    return int(float(number) * (1000 if ending == "b" else 1024) ** _UNITS[unit])
