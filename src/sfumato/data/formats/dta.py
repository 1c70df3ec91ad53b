"""Stata files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from sfumato.data.format import Format
from sfumato.data.stat_packages import (
    fitting,
    labels_of,
    plain_code,
    prepared,
    read_labelled,
    require_names,
    whole_numbers,
    write_labelled,
)
from sfumato.data.table import ColumnLabels, Table

_FIRST = 2_147_483_622
"""How Stata itself stores .a in a column of type long; .b to .z follow."""


class Dta(Format):
    """Stata .dta with column labels, value labels and the extended missing values .a to .z.

    The extended missing values appear in the table as the codes 2147483622 (.a) to 2147483647 (.z), which is how Stata
    stores them in a ``long``; the column's labels list those that occur, and they are written as .a to .z again. Other
    missing codes are ordinary values to Stata: they and their value labels are written, that they mean "missing" is
    not. Stata labels numbers only, so labels of texts are left out. Blank text is missing. True/false becomes 1/0.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".dta",)
    keeps: ClassVar[frozenset[str]] = frozenset({"types", "labels", "value labels", "extended missing values"})
    # Since Stata 13 files begin with a tag, before with their version number, 105 to 115.
    magic: ClassVar[tuple[bytes, ...]] = (b"<stata_dta>", *(bytes([version]) for version in range(105, 116)))

    def read(self, path: Path) -> Table:
        frame, meta = read_labelled("read_dta", path, user_missing=True)
        frame = frame.with_columns(
            pl.Series(name, [_number(value) for value in frame.get_column(name).to_list()], dtype=pl.Float64)
            for name, kind in frame.schema.items()
            if kind == pl.Object
        )
        tags = {
            name: tuple(int(_number(tag)) for tag in sorted(tags)) for name, tags in meta.missing_user_values.items()
        }
        labels = labels_of(meta, tags)
        kinds = frame.schema
        for name, entry in labels.items():
            if kinds[name].is_numeric():
                coded = {plain_code(_number(code)): words for code, words in entry.value_labels.items()}
                labels[name] = replace(entry, value_labels=coded)
        return Table(frame=whole_numbers(frame, labels, _is_whole), labels=labels, origin="dta")

    def write(self, table: Table, path: Path) -> None:
        require_names(table, r"[^\W\d]\w{0,31}", "Stata")
        frame = prepared(table, "Stata")
        values, tags, formats, columns = {}, {}, {}, []
        for column in frame.iter_columns():
            entry = table.labels.get(column.name, ColumnLabels())
            numeric = column.dtype.is_numeric()
            letters = {code: _letter(code) for code in entry.missing if numeric and _is_tag(code)}
            found = fitting(column, entry.value_labels) if numeric else {}  # Stata has no labels of texts
            if found:
                values[column.name] = {letters.get(code, code): words for code, words in found.items()}
            if numeric:
                coded = bool(found or letters)
                formats[column.name] = _display(entry.display or "", column.dtype.is_integer(), coded)
            if letters:
                tags[column.name] = sorted(letters.values())
                mixed = [letters.get(value, None if value is None else float(value)) for value in column.to_list()]
                column = pl.Series(column.name, mixed, dtype=pl.Object)
            columns.append(column)
        write_labelled(
            "write_dta",
            pl.DataFrame(columns),
            path,
            table.labels,
            variable_value_labels=values,
            missing_user_values=tags or None,
            variable_format=formats,
        )


def _is_whole(display: str | None) -> bool:
    return re.fullmatch(r"%-?0?\d+\.0fc?", display or "") is not None


def _number(value: object) -> Any:
    return float(_FIRST + ord(value) - ord("a")) if isinstance(value, str) else value


def _is_tag(code: object) -> bool:
    return isinstance(code, int) and _FIRST <= code < _FIRST + 26


def _letter(code: int) -> str:
    return chr(ord("a") + code - _FIRST)


def _display(own: str, whole: bool, coded: bool) -> str:
    """The display format to write: the column's own where it still says the right thing about whole numbers."""
    if re.fullmatch(r"%-?0?\d+\.\d+[gfe]c?", own) and (not whole or coded or _is_whole(own)):
        return own
    return "%12.0f" if whole else "%10.0g"
