"""Files of statistics packages: what SPSS, Stata and SAS files have in common, read and written by pyreadstat.

These packages store codes beside the words for them, titles of columns, and codes that mean "missing". All of it is
kept in :class:`~sfumato.data.table.ColumnLabels`. A missing code stays in the frame as the value it is, so that nothing
is lost on the way back; :func:`sfumato.data.blank_missing` turns the codes into nulls where an analysis wants that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data.format import library
from sfumato.data.numeric_types import as_floats, integers_from_floats
from sfumato.data.table import ColumnLabels, Table
from sfumato.errors import NotThatFormat, WriteFailed


def plain_code(code: object) -> object:
    """A code as a person writes it: 1, not 1.0."""
    return int(code) if isinstance(code, float) and code.is_integer() else code


def read_labelled(reader: str, path: Path, **options: Any) -> tuple[pl.DataFrame, Any]:
    """Call one of pyreadstat's readers; a file it cannot read is refused."""
    pyreadstat = library("pyreadstat", extra="statistics", why="Reading files of SPSS, Stata and SAS")
    try:
        frame, meta = getattr(pyreadstat, reader)(str(path), output_format="polars", **options)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeDecodeError):
        raise NotThatFormat(
            f"{path.name} is damaged, or uses features that cannot be read.", fix="Save it again.", path=str(path)
        ) from None
    empty = [name for name, kind in frame.schema.items() if kind == pl.Null]
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    # These packages know no missing text: blank is missing.
    blank = [pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in texts]
    rounded = [frame.get_column(n).dt.round("1ms") for n, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    return frame.with_columns(*blank, *rounded, *(frame.get_column(n).cast(pl.String) for n in empty)), meta


def labels_of(meta: Any, missing: Mapping[str, tuple[Any, ...]]) -> dict[str, ColumnLabels]:
    """What the file says about its columns."""
    found = {}
    for name in meta.column_names:
        entry = ColumnLabels(
            label=meta.column_names_to_labels.get(name) or None,
            value_labels={plain_code(code): words for code, words in meta.variable_value_labels.get(name, {}).items()},
            missing=missing.get(name, ()),
            display=meta.original_variable_types.get(name),
        )
        if entry != ColumnLabels():
            found[name] = entry
    return found


def whole_numbers(frame: pl.DataFrame, labels: Mapping[str, ColumnLabels], whole: Callable[[str | None], bool]) -> Any:
    """Columns whose display format or value labels say that they hold whole numbers, as integers if they do."""
    likely = [
        name
        for name in frame.columns
        if (entry := labels.get(name, ColumnLabels())).value_labels or entry.missing or whole(entry.display)
    ]
    return integers_from_floats(frame, likely)


def require_names(table: Table, pattern: str, package: str) -> None:
    """Refuse column names that the package does not allow."""
    for name in table.columns:
        if not re.fullmatch(pattern, name):
            raise WriteFailed(
                f"`{name}` is not a name that {package} allows for a column.",
                fix="Rename the column (letters, digits and underscores), or write another format.",
                column=name,
            )


def prepared(table: Table, package: str) -> pl.DataFrame:
    """The frame in the types these packages have: numbers, moments without a zone, and text, where blank is missing."""
    frame = as_floats(table, package)
    return frame.with_columns(
        pl.selectors.boolean().cast(pl.Int64),
        (pl.selectors.string() | pl.selectors.by_dtype(pl.Null)).cast(pl.String).fill_null(""),
    )


def fitting(column: pl.Series, codes: Mapping[Any, str]) -> dict[Any, str]:
    """The value labels that still fit: a column that was generalized to text no longer has codes."""
    text = column.dtype == pl.String
    if column.dtype.is_temporal():
        return {}
    return {code: words for code, words in codes.items() if isinstance(code, str) == text}


def write_labelled(
    writer: str, frame: pl.DataFrame, path: Path, labels: Mapping[str, ColumnLabels], **options: object
) -> None:
    """Call one of pyreadstat's writers; what it refuses becomes an error without its words, which may quote data."""
    pyreadstat = library("pyreadstat", extra="statistics", why="Writing files of SPSS, Stata and SAS")
    titles = {name: entry.label for name, entry in labels.items() if entry.label}
    try:
        getattr(pyreadstat, writer)(frame, str(path), column_labels=titles, **options)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as failure:
        raise WriteFailed(
            f"{path.name} could not be written ({type(failure).__name__}): disk full, or a value does not fit.",
            fix="Free some space, or write another format.",
            path=str(path),
        ) from None
