"""Text files that are asked more than once: their rows are kept in memory, and read again when the file has changed.

Taking a line of text apart takes DuckDB ten times as long as counting what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.data.sql_quoting import quoted_name

_MOST_BYTES = 64_000_000
"""Larger files are read in place by every statement."""


@dataclass(kw_only=True)
class TextTable:
    """A view on a text file, or on a copy of its rows once a second statement reads it."""

    view: str
    reader: str
    """The expression that reads the file in place."""
    path: Path
    _asked: bool = False
    _stamp: tuple[int, int, int] | None = None
    """What the file was when its rows were copied; None while it is read in place."""

    def refresh(self, connection: Any) -> None:
        """Copy the rows if they are worth it, or if the file is no longer the one that was copied."""
        facts = self.path.stat()
        stamp = facts.st_size, facts.st_mtime_ns, facts.st_ino
        first, self._asked = not self._asked, True
        if first or stamp == self._stamp:
            return
        view, copy = quoted_name(self.view), quoted_name(f"sfumato copy of {self.view}")
        if self._stamp is None and facts.st_size > _MOST_BYTES:
            return
        self._stamp = None  # also if reading fails
        connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {self.reader}")
        connection.execute(f"DROP TABLE IF EXISTS {copy}")
        if facts.st_size <= _MOST_BYTES:
            connection.execute(f"CREATE TABLE {copy} AS SELECT * FROM {self.reader}")
            connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {copy}")
            self._stamp = stamp
