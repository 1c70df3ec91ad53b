"""Source of a table: a file with its declared dialect (delimiter, encoding, missing codes, sheet), or a database URL.

In a document, a source is a file name, a URL, or a mapping with the options of the file's format:

.. code-block:: yaml

    data: patients.parquet
    data: {file: patients.csv, delimiter: ";", encoding: latin-1, missing: ["", "NA"]}
    data: {file: patients.xlsx, sheet: "2024"}

Options are those of the format's class (:class:`sfumato.data.formats.csv.Csv` for delimited text). Readers with a
guarantee take what is left open as fixed (comma, UTF-8, decimal point); ``sfumato init`` writes down what it found.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ConfigDict, ValidationInfo, model_validator

from sfumato.data.read_write import format_of, read
from sfumato.data.table import Table
from sfumato.data.url import file_and_options, is_url
from sfumato.errors import BadParameter, UnknownFormat
from sfumato.field_docs import DocumentedModel
from sfumato.params import located


class Source(DocumentedModel):
    """Where the data of a table is, and how its file is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    location: str
    """A file or a database URL."""
    options: Mapping[str, Any] = {}
    """Options of the file's format: the dialect of delimited text, the sheet of a workbook."""

    @model_validator(mode="before")
    @classmethod
    def _from_document(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, Source) or (isinstance(value, dict) and "location" in value):
            return value
        options: dict[str, Any] = {}
        if isinstance(value, dict):
            options = {str(key): item for key, item in value.items() if key not in ("file", "url")}
            value = value.get("file", value.get("url"))
        if not isinstance(value, str | Path) or not str(value):
            raise ValueError("must be a file name, a database URL, or {file: ..., option: ...}")
        try:
            location, told = file_and_options(str(located(value, info)))
            options = {**told, **options}
            if options and not is_url(location) and not Path(location).is_dir():
                format_of(Path(location), None, options)
        except UnknownFormat:
            pass  # the reader names the formats that it knows
        except BadParameter as refusal:
            raise ValueError(str(refusal)) from None
        return {"location": location, "options": options}

    @property
    def is_database(self) -> bool:
        """Whether this is the URL of a database."""
        return is_url(self.location)

    @property
    def address(self) -> str:
        """The source as one text: ``people.csv?delimiter=%3B&encoding=latin-1``."""
        pairs = [
            f"{quote(name)}={quote(str(item).lower() if isinstance(item, bool) else str(item))}"
            for name, value in self.options.items()
            for item in (value if isinstance(value, list | tuple) else (value,))
        ]
        return f"{self.location}?{'&'.join(pairs)}" if pairs else self.location

    def read(self) -> Table:
        """The whole table. Kinds that nobody declared are found by looking at its rows."""
        return read(self.location, **self.options)

    @classmethod
    def found(cls, source: str, *, beside: Path | None = None) -> Source:
        """The source as a document in the folder ``beside`` names it, with the dialect that was found by looking."""
        from sfumato.data.formats.csv import Csv, found_dialect

        location, options = file_and_options(source)
        if is_url(location) or location == "-" or Path(location).is_dir():
            found: dict[str, object] = {}
        elif above := lines_above(source):
            found = above
        else:
            part = format_of(Path(location), None, options)
            found = found_dialect(Path(location), part.header) if isinstance(part, Csv) else {}
        if beside is not None and not is_url(location) and location != "-":
            location = Path(os.path.relpath(location, beside)).as_posix()
        return cls(location=location, options={**found, **options})

    def to_dict(self) -> str | dict[str, Any]:
        """The source as a document writes it."""
        return {"file": self.location, **self.options} if self.options else self.location


def lines_above(source: str) -> dict[str, Any]:
    """The option ``skip`` that a draft has to state, because reading does not guess it; empty if there is none."""
    location, options = file_and_options(source)
    path = Path(location)
    if is_url(location) or "skip" in options or not path.is_file():
        return {}
    above = format_of(path, None, options).above_header(path)
    return {"skip": above} if above else {}
