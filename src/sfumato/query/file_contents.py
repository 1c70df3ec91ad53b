"""The contents of a file as a digest. Its size and times do not tell that it changed: anybody can set them."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

_SETTLED = 2 * 10**9
"""Nanoseconds after which another change of a file has another change time on every usual file system."""
_KNOWN: dict[Path, tuple[tuple[int, ...], str]] = {}


def contents_digest(path: Path) -> str:
    """The SHA-256 of a file, read again whenever the file may have changed.

    What was read is kept by device, inode, size and both times; nobody can set the change time. Where there is none, as
    on Windows, and soon after a change, the file is read every time.
    """
    now, place, facts = time.time_ns(), path.resolve(), path.stat()
    state = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    known, digest = _KNOWN.get(place, ((), ""))
    if known == state:
        return digest
    with place.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if os.name == "posix" and now - facts.st_ctime_ns > _SETTLED:
        _KNOWN[place] = state, digest
    return digest
