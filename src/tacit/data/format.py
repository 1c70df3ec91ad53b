"""The contract of a file format: one class per format in ``data/formats``, found by suffix."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from tacit.data.table import Table
from tacit.params import Part

__all__ = ["Format"]


class Format(Part):
    """Reads and writes one kind of file. Fields are options that a recipe may set; None means "find out"."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """File name endings, with the dot, lower case."""
    keeps: ClassVar[frozenset[str]] = frozenset({"types"})
    """What survives a round trip: "types", "labels", "value labels", "missing codes"."""

    @abstractmethod
    def read(self, path: Path) -> Table:
        """The whole file as a table."""

    @abstractmethod
    def write(self, table: Table, path: Path) -> None:
        """Write to ``path``, which does not exist yet; the caller renames it into place."""

    def scan(self, path: Path) -> str | None:
        """A DuckDB table expression that reads the file piece by piece, or None when DuckDB cannot."""
        return None
