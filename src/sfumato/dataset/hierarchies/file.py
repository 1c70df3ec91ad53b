"""Hierarchy from a CSV file."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from typing import Annotated, Any, ClassVar

import polars as pl
from pydantic import Field

from sfumato.dataset.hierarchy import BoundHierarchy, Hierarchy
from sfumato.dataset.hierarchy_rows import bound_from_rows
from sfumato.errors import FileMissing, NotThatFormat
from sfumato.params import InputFile

_DELIMITERS = (";", ",", "\t", "|")


class FileHierarchy(Hierarchy):
    """A file without header, one line per value: the value, then its label at each level, the last being the root.

    This is the interchange format of ARX and other tools; ``.gz`` files are read too. Values need not occur in the
    data; a value of the data without a line is refused. A release publishes the lines, not the path.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "city.csv")
    >>> _ = path.write_text("Berlin;Germany;*\\nParis;France;*\\n")
    >>> FileHierarchy.build(str(path)).bind("city", pl.Series(["Paris"])).rows()
    [['Berlin', 'Germany', '*'], ['Paris', 'France', '*']]
    """

    main: ClassVar[str | None] = "path"
    examples = ({"path": "city.csv"}, {"path": "city.csv", "delimiter": ";", "encoding": "utf-8"})
    sample = ("Bonn", "Paris")

    path: InputFile
    """The file, relative to the recipe."""
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    """Cell delimiter. Default: detected (``;``, comma, tab or ``|``)."""
    encoding: str | None = None
    """Text encoding. Default: UTF-8, else Latin-1."""

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        return bound_from_rows(column, values, self._lines())

    def public(self) -> dict[str, Any]:
        """The lines of the file as an inline table, because readers of the release do not have the file."""
        return {"table": {"rows": self._lines()}}

    def _lines(self) -> list[list[str | None]]:
        text = self._text()
        delimiter = self.delimiter or _delimiter_of(text)
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        return [[cell if cell != "" else None for cell in line] for line in lines if line]

    def _text(self) -> str:
        try:
            raw = self.path.read_bytes()
        except OSError as failure:
            raise FileMissing(
                f"The hierarchy file {self.path} cannot be read: {failure.strerror}.",
                fix="Paths are relative to the recipe.",
                path=self.path,
            ) from None
        try:
            raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
            return raw.decode(self.encoding or "utf-8-sig")
        except UnicodeDecodeError:
            if self.encoding is None:
                return raw.decode("latin-1")
            raise NotThatFormat(f"The hierarchy file {self.path} is not written in {self.encoding}.") from None
        except (LookupError, OSError, EOFError, zlib.error) as failure:
            raise NotThatFormat(f"The hierarchy file {self.path} cannot be decoded: {failure}.") from None


def _delimiter_of(text: str) -> str:
    """The first delimiter that splits every line into the same number of cells, at least two."""
    for delimiter in _DELIMITERS:
        widths = {len(line) for line in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if line}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return ";"
