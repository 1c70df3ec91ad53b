"""SPSS system files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import polars as pl

from sfumato.data.format import Format
from sfumato.data.missing import is_missing
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
from sfumato.errors import WriteFailed


class Sav(Format):
    """SPSS .sav and .zsav with column labels, value labels and user-missing codes (single ones and ranges).

    Missing codes stay in the table as values and are listed in its labels. Blank text is missing. True/false becomes
    1/0. SPSS allows three missing codes, or a range and one code: more are written as one range that covers only them,
    and refused if there is none.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".sav", ".zsav")
    keeps: ClassVar[frozenset[str]] = frozenset({"types", "labels", "value labels", "missing codes"})
    magic: ClassVar[tuple[bytes, ...]] = (b"$FL2", b"$FL3")

    def read(self, path: Path) -> Table:
        frame, meta = read_labelled("read_sav", path, user_missing=True)
        missing = {name: tuple(map(_code, ranges)) for name, ranges in meta.missing_ranges.items()}
        labels = labels_of(meta, missing)
        return Table(frame=whole_numbers(frame, labels, _is_whole), labels=labels, origin="sav")

    def write(self, table: Table, path: Path) -> None:
        require_names(table, r"[^\W\d_][\w.@#$]{0,63}|[@#$][\w.@#$]{0,63}", "SPSS")
        frame = prepared(table, "SPSS")
        values, missing, formats = {}, {}, {}
        for column in frame.iter_columns():
            entry = table.labels.get(column.name, ColumnLabels())
            if found := fitting(column, entry.value_labels):
                values[column.name] = found
            if codes := _ranges(entry, column):
                missing[column.name] = codes
            if column.dtype.is_numeric():
                coded = bool(found or codes)
                formats[column.name] = _display(entry.display or "", column.dtype.is_integer(), coded)
        write_labelled(
            "write_sav",
            frame,
            path,
            table.labels,
            compress=path.suffix.lower() == ".zsav",
            variable_value_labels=values,
            missing_ranges=missing,
            variable_format=formats,
        )


def _is_whole(display: str | None) -> bool:
    return re.fullmatch(r"[FN]\d+(\.0)?", display or "") is not None


def _display(own: str, whole: bool, coded: bool) -> str:
    """The display format to write: the column's own where it still says the right thing about whole numbers."""
    if re.fullmatch(r"[A-Z]+\d+(\.\d+)?", own) and own[0] != "A" and (not whole or coded or _is_whole(own)):
        return own
    return "F12.0" if whole else "F16.4"


def _code(entry: dict[str, object]) -> object:
    low, high = plain_code(entry["lo"]), plain_code(entry["hi"])
    return low if low == high else (low, high)


def _ranges(entry: ColumnLabels, column: pl.Series) -> list[object]:
    """The missing codes as SPSS wants them: at most three, or one range and one code."""
    codes = [code for code in entry.missing if isinstance(code, str) != column.dtype.is_numeric()]
    ranges = [code for code in codes if isinstance(code, tuple)]
    if len(codes) > 3 or len(ranges) > 1 or (ranges and len(codes) > 2):
        ends = [end for code in codes for end in (code if isinstance(code, tuple) else (code,))]
        low, high = min(ends), max(ends)
        inside = column.filter(column.is_between(low, high) & ~is_missing(column, tuple(codes)))
        if inside.len() or not column.dtype.is_numeric():
            raise WriteFailed(
                f"Column `{column.name}` has {len(codes)} missing codes; SPSS allows three, or a range and one.",
                fix="Declare fewer missing codes, or write Parquet or Stata.",
                column=column.name,
            )
        codes = [(low, high)]
    return [{"lo": code[0], "hi": code[1]} if isinstance(code, tuple) else code for code in codes]
