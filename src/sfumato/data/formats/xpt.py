"""SAS transport files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from sfumato.data.format import Format
from sfumato.data.numeric_types import integers_from_floats
from sfumato.data.stat_packages import labels_of, prepared, read_labelled, require_names, write_labelled
from sfumato.data.table import ColumnLabels, Table


class Xpt(Format):
    """SAS transport files (.xpt, version 5 or 8 to read, 8 to write) with column labels and display formats.

    The file format itself has no value labels (SAS keeps them in a catalogue apart) and its special missing values
    .A to .Z are read as plain missing. Blank text is missing, true/false becomes 1/0; a column of whole numbers is read
    as integers unless its display format shows decimals.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".xpt",)
    keeps: ClassVar[frozenset[str]] = frozenset({"types", "labels"})
    magic: ClassVar[tuple[bytes, ...]] = (b"HEADER RECORD*******",)

    def read(self, path: Path) -> Table:
        frame, meta = read_labelled("read_xport", path)
        labels = labels_of(meta, {})
        shown = {name: labels.get(name, ColumnLabels()).display or "" for name in frame.columns}
        whole = [name for name, display in shown.items() if re.fullmatch(r"|F?\d+(\.0?)?", display)]
        return Table(frame=integers_from_floats(frame, whole), labels=labels, origin="xpt")

    def write(self, table: Table, path: Path) -> None:
        require_names(table, r"[A-Za-z_][A-Za-z0-9_]{0,31}", "SAS")
        frame = prepared(table, "SAS")
        formats = {}
        for column in frame.iter_columns():
            own = table.labels.get(column.name, ColumnLabels()).display or ""
            if column.dtype.is_float():
                formats[column.name] = own if re.fullmatch(r"(F|BEST|COMMA|E)\d+(\.[1-9]\d*)?", own) else "BEST12"
            elif column.dtype.is_integer():
                formats[column.name] = own if re.fullmatch(r"F\d+(\.0)?", own) else "F12.0"
        write_labelled(
            "write_xport",
            frame,
            path,
            table.labels,
            variable_format=formats,
        )
