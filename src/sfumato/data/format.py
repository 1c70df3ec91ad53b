"""The contract of a file format: one class per format in ``data/formats``, found by suffix."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import polars as pl

from sfumato.data.table import Table
from sfumato.errors import NotThatFormat, UnknownFormat, WrongKind
from sfumato.extras import missing_extra
from sfumato.params import Part
from sfumato.registry import registry
from sfumato.wording import with_article

SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\xff\xff\xff\xff", "an Arrow stream"),
    (b"FEA1", "a Feather file of version 1"),
    (b"PK\x03\x04", "a ZIP or Excel file"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel or Office file"),
    (b"$FL2", "an SPSS file"),
    (b"$FL3", "a compressed SPSS file"),
    (b"<stata_dta>", "a Stata file"),
    (b"HEADER RECORD*******", "a SAS transport file"),
    (b"\x1f\x8b", "a gzip file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a PNG picture"),
    (b"SQLite format 3", "an SQLite database"),
    (b"<!doctype html", "an HTML page"),
    (b"<!DOCTYPE html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<?xml", "an XML document"),
)
"""How files of other kinds begin; used to say what a wrongly named file really is."""


class Format(Part):
    """Reads and writes one kind of file. Fields are options that a recipe may set; None means "find out"."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """File name endings, with the dot, lower case."""
    read_only: ClassVar[frozenset[str]] = frozenset()
    """Those of the suffixes that are read but not written."""
    keeps: ClassVar[frozenset[str]] = frozenset({"types"})
    """What survives a round trip: "types", "labels", "value labels", "missing codes" (any numbers), "extended missing
    values" (Stata's ``.a`` to ``.z``)."""
    magic: ClassVar[tuple[bytes, ...]] = ()
    """How such a file begins; empty for text."""
    typed: ClassVar[bool] = False
    """Whether the file stores the type of each column. Otherwise :meth:`read` finds it by looking at the rows."""

    @abstractmethod
    def read(self, path: Path) -> Table:
        """The whole file as a table."""

    def cells(self, path: Path, names: Sequence[str]) -> pl.DataFrame:
        """The cells for :mod:`sfumato.data.declared`: what one row holds changes neither types nor other rows.

        A format whose ``read`` finds types by looking at rows gives every cell as text. ``names`` are the declared
        columns, for a format that names columns in its rows only; columns beyond them do no harm.
        """
        return self.read(path).frame

    @abstractmethod
    def write(self, table: Table, path: Path) -> None:
        """Write to ``path``, which does not exist yet; the caller renames it into place."""

    def scan(self, path: Path) -> str | None:
        """A DuckDB table expression that reads the file piece by piece, or None when DuckDB cannot."""
        return None

    @classmethod
    def offered(cls, path: Path) -> Mapping[str, Sequence[str]]:
        """Values that a file offers for an option, by the name of the option: the sheets of a workbook."""
        return {}

    def above_header(self, path: Path) -> int:
        """Lines above the names of the columns that reading refuses to guess; a draft of the document states them."""
        return 0

    def check(self, path: Path) -> None:
        """Refuse a file whose first bytes are not those of this format; an empty file passes."""
        with path.open("rb") as file:
            head = file.read(32)
        if head and self.magic and not head.startswith(self.magic):
            raise NotThatFormat(
                f"{path.name} is not {with_article(self.part_name())} file: {what_it_is(head)}.",
                fix="Rename it by its real format, or export it again.",
                path=str(path),
                format=self.part_name(),
            )


def refuse_nested(table: Table, what: str) -> None:
    """Refuse columns of lists, structures, bytes or durations for a format that has no place for them."""
    for name, kind in table.frame.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration):
            raise WrongKind(
                f"Column `{name}` holds {kind}, which {what} cannot store.",
                fix="Drop the column, make it text or numbers, or write Parquet.",
                column=name,
            )


def what_it_is(head: bytes) -> str:
    """In words, what a file that begins like this is.

    >>> what_it_is(b"PAR1....")
    'it looks like a Parquet file'
    """
    for mark, words in SIGNATURES:
        if head.startswith(mark):
            return f"it looks like {words}"
    return "its first bytes are not those of one"


@cache
def _by_suffix() -> dict[str, type[Format]]:
    found: dict[str, type[Format]] = {}
    for kind in registry("format"):
        assert issubclass(kind, Format)
        found.update(dict.fromkeys(kind.suffixes, kind))
    return found


def _endings(path: Path) -> Iterator[str]:
    """``people.2024.csv.gz`` ends in ``.csv.gz`` and in ``.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return ("".join(suffixes[start:]) for start in range(len(suffixes)))


def format_for(path: Path) -> type[Format]:
    """The format that reads and writes files of this name; an unknown suffix is refused with the known ones."""
    known = _by_suffix()
    for ending in _endings(path):
        if ending in known:
            return known[ending]
    raise UnknownFormat(
        f"No format is known for {path.name}"
        + (f" (suffix `{path.suffix}`)." if path.suffix else ", it has no suffix."),
        fix=f"Known: {', '.join(sorted(known))}.",
        path=str(path),
        known=tuple(sorted(known)),
    )


def library(name: str, *, extra: str, why: str) -> ModuleType:
    """An optional library, or an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise missing_extra(extra, name, needed_by=why) from None
