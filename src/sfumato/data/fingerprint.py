"""The content of a table as a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import polars as pl


def frame_digest(frame: pl.DataFrame) -> str:
    """SHA-256 of the content of a table: names, types and values."""
    digest = hashlib.sha256(repr(dict(frame.schema)).encode())
    sink = _Hashing(digest.update)
    frame.rechunk().write_ipc(sink, compression="uncompressed")  # type: ignore[call-overload]
    return digest.hexdigest()


class _Hashing:
    """A file object that hashes what is written to it."""

    def __init__(self, update: Callable[[bytes], None]) -> None:
        self._update = update
        self._position = 0

    def write(self, data: bytes) -> int:
        self._update(bytes(data))
        self._position += len(data)
        return len(data)

    def flush(self) -> None:
        pass

    def tell(self) -> int:
        return self._position
