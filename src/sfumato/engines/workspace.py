"""Workspace: SQL over one source that may be larger than memory, for masking out of core."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import polars as pl


class Workspace(ABC):
    """One open source. Statements are written in DuckDB's dialect; the back end translates them into its own.

    The back end works within the memory limit of its engine and spills to disk beyond it.
    """

    order: ClassVar[str]
    """A keyed hash of a text, as SQL with one gap ``{}``. Rows of a release are sorted by it."""
    source: str
    """Name of the source in statements."""
    row_number: str | None = None
    """Column of the source that numbers its rows from 0, where the workspace was opened with ``numbered``."""
    memory: int
    """Memory limit in bytes."""

    @abstractmethod
    def query(self, statement: str, title: str) -> pl.DataFrame:
        """Return the rows of a statement. They must fit into memory."""

    @abstractmethod
    def put(self, name: str, frame: pl.DataFrame) -> None:
        """Register a small table under a name."""

    @abstractmethod
    def store(self, name: str, frame: pl.DataFrame) -> None:
        """Write a table of any size to a temporary file and register it under a name."""

    @abstractmethod
    def write(self, statement: str, path: Path, suffix: str) -> None:
        """Write the rows of a statement to a new file, in the format of the suffix."""
