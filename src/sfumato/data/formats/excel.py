"""Excel workbooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar

import polars as pl
from pydantic import Field

from sfumato.data.format import Format
from sfumato.data.numeric_types import as_floats, dates_from_midnights, integers_from_floats
from sfumato.data.table import Table, refuse_duplicates
from sfumato.errors import EmptyTable, NotThatFormat, WriteFailed
from sfumato.wording import did_you_mean

_ROWS, _COLUMNS = 1_048_575, 16_384
_AS_TEXT = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
_NO_TIME = datetime(1980, 1, 1)
"""The same cells give the same bytes: a workbook of sheets does not say when it was made."""
_TOP = 20
"""Lines that are looked at to tell a header from a title above it."""


class Excel(Format):
    """One sheet of an Excel workbook: .xlsx and .xlsm, and to read also .xls and .xlsb.

    Excel has one kind of number: a column of whole numbers is read as integers, a column of midnights as dates. An
    empty cell is missing and an empty text cannot be told from it. Text that begins with ``=`` is written as text.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm", ".xls", ".xlsb")
    read_only: ClassVar[frozenset[str]] = frozenset({".xlsm", ".xls", ".xlsb"})
    magic: ClassVar[tuple[bytes, ...]] = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
    main: ClassVar[str | None] = "sheet"
    examples = ({}, {"sheet": "people"})

    sheet: str | None = None
    """Name of the sheet; the first one when not given. A sheet that is written is called ``data`` then."""
    skip: Annotated[int, Field(ge=0)] = 0
    """Lines above the header line."""

    @classmethod
    def offered(cls, path: Path) -> Mapping[str, Sequence[str]]:
        import fastexcel

        try:
            return {"sheet": fastexcel.read_excel(path).sheet_names}
        except fastexcel.FastExcelError:
            return {}

    def _sheet(self, path: Path) -> tuple[Any, str]:
        """The workbook, and the name of the sheet to read."""
        import fastexcel

        try:
            book = fastexcel.read_excel(path)
        except fastexcel.FastExcelError:
            raise NotThatFormat(
                f"{path.name} is not a whole Excel workbook, or has a password.", fix="Save it again.", path=str(path)
            ) from None
        if self.sheet is not None and self.sheet not in book.sheet_names:
            raise NotThatFormat(
                f"{path.name} has no sheet `{self.sheet}`.",
                fix=did_you_mean(self.sheet, book.sheet_names),
                path=str(path),
                sheet=self.sheet,
            )
        return book, book.sheet_names[0] if self.sheet is None else self.sheet

    def above_header(self, path: Path) -> int:
        book, sheet = self._sheet(path)
        top = book.load_sheet(sheet, header_row=None, skip_rows=self.skip, n_rows=_TOP, dtypes="string").to_polars()
        return _titles(top)[0]

    def read(self, path: Path) -> Table:
        book, sheet = self._sheet(path)
        top = book.load_sheet(sheet, header_row=None, skip_rows=self.skip, n_rows=_TOP, dtypes="string").to_polars()
        _refuse_titles(top, path, self)
        names = [
            str(name).strip() if name else f"column_{number}"
            for number, name in enumerate(top.row(0) if top.height else (), 1)
        ]
        refuse_duplicates(names, path.name)
        if top.height < 2:
            raise EmptyTable(
                f"The sheet `{sheet}` of {path.name} has no rows below a header.",
                fix=_other_sheets(path.name, sheet, book.sheet_names),
                path=str(path),
            )
        loaded = book.load_sheet(
            sheet, header_row=None, skip_rows=self.skip + 1, column_names=names, schema_sample_rows=None
        )
        frame = loaded.to_polars()
        frame = frame.with_columns(pl.col(pl.Null).cast(pl.String))
        return Table(frame=dates_from_midnights(integers_from_floats(frame)), origin="excel")

    def cells(self, path: Path, names: Sequence[str]) -> pl.DataFrame:
        """Every cell as text, for the columns that the header line names."""
        book, sheet = self._sheet(path)
        top = book.load_sheet(sheet, header_row=None, skip_rows=self.skip, n_rows=1, dtypes="string").to_polars()
        titles = [str(name).strip() if name else "" for name in (top.row(0) if top.height else ())]
        while titles and not titles[-1]:
            titles.pop()
        if not titles:
            raise EmptyTable(
                f"The sheet `{sheet}` of {path.name} has no header.",
                fix=_other_sheets(path.name, sheet, book.sheet_names), path=str(path),
            )  # fmt: skip
        named = [title or f"column_{number}" for number, title in enumerate(titles, 1)]
        refuse_duplicates(named, path.name)
        found = book.load_sheet(
            sheet, header_row=None, skip_rows=self.skip + 1, dtypes="string", use_columns=list(range(len(named)))
        ).to_polars()
        # A sheet has as many columns as its widest row.
        columns = [column.cast(pl.String) for column in found.get_columns()[: len(named)]]
        short = [pl.Series([None] * found.height, dtype=pl.String) for _ in range(len(named) - len(columns))]
        return pl.DataFrame([column.alias(name) for name, column in zip(named, columns + short, strict=True)])

    def write(self, table: Table, path: Path) -> None:
        import xlsxwriter

        frame = as_floats(table, "Excel")
        if path.suffix.lower() != ".xlsx":
            raise WriteFailed(
                f"Only .xlsx can be written, not {path.suffix}.", fix="Name the output .xlsx.", path=str(path)
            )
        if table.rows > _ROWS or len(table.columns) > _COLUMNS:
            raise WriteFailed(
                f"An Excel sheet holds {_ROWS:,} rows and {_COLUMNS:,} columns, the table has {table.rows:,} and "
                f"{len(table.columns):,}.",
                fix="Write CSV or Parquet.",
                path=str(path),
            )
        try:
            with xlsxwriter.Workbook(str(path), dict(_AS_TEXT)) as book:
                frame.write_excel(
                    book, self.sheet or "data", table_style="Table Style Light 1", autofit=table.rows <= 10_000
                )
        except xlsxwriter.exceptions.FileCreateError as failure:
            raise OSError(getattr(failure.args[0], "errno", 0), getattr(failure.args[0], "strerror", "")) from None


def write_sheets(path: Path, sheets: Mapping[str, Sequence[Sequence[int | float | str]]]) -> None:
    """Write lines of cells as sheets of a workbook; the first line is the header. Text is written as text."""
    import xlsxwriter

    with xlsxwriter.Workbook(str(path), dict(_AS_TEXT)) as book:
        book.set_properties({"created": _NO_TIME})
        head = book.add_format({"bold": True})
        for name, lines in sheets.items():
            sheet = book.add_worksheet(name)
            for number, line in enumerate(lines):
                sheet.write_row(number, 0, line, head if number == 0 else None)
            sheet.freeze_panes(1, 0)


def _other_sheets(name: str, sheet: str, sheets: list[str]) -> str:
    others = [other for other in sheets if other != sheet]
    if not others:
        return "Check that the file was written completely."
    listed = ", ".join(f"`{other}`" for other in others)
    return f"It also has {listed}: name one as {name}?sheet={others[0]}."


def _titles(top: pl.DataFrame) -> tuple[int, list[int]]:
    """Lines of titles above the header, and the filled cells of each line.

    A first line that names at most half of the columns below is a title. The header is the first of the widest lines.
    """
    filled = [sum(cell is not None and cell.strip() != "" for cell in row) for row in top.iter_rows()]
    header = filled.index(max(filled, default=0)) if filled else 0
    return (header if header and filled[0] * 2 <= filled[header] > 2 else 0), filled


def _refuse_titles(top: pl.DataFrame, path: Path, asked: Excel) -> None:
    """Refuse a sheet whose first line names hardly any of the columns below: that is a title and not the header."""
    header, filled = _titles(top)
    if header:
        told = f"sheet={asked.sheet}&" if asked.sheet is not None else ""
        raise NotThatFormat(
            f"{path.name}: the first line names {filled[0]} of {filled[header]} columns, like a title above a table.",
            fix=f"Say how many lines stand above the names of the columns: {path.name}?{told}skip={asked.skip + header}"
            f" if they are in line {asked.skip + header + 1}.",
            path=str(path),
        )
