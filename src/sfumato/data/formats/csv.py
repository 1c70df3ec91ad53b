"""Delimited text: CSV, TSV and their relatives."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, Literal, cast

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.data.format import Format, refuse_nested, what_it_is
from sfumato.data.table import Table
from sfumato.data.text_files import (
    DELIMITERS,
    Content,
    CsvDialect,
    decode,
    explain,
    quotes_are_regular,
    sniff,
    to_utf8,
    without_lines,
)
from sfumato.data.type_inference import SpelledMissing, infer
from sfumato.errors import EmptyTable, NotThatFormat

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", ".", "?")
"""Fields that mean "no value" when they stand unquoted: R, pandas, SQL, Excel, SAS and Stata, and the UCI archive."""


_HEAD = 1 << 20
"""Bytes of a file that its dialect is found from."""


class Csv(Format):
    """Delimited text (.csv, .tsv, .txt, also gzipped), with delimiter, header, encoding and kinds found by looking.

    A column becomes numbers, dates or true/false only if all its values fit: codes with a leading zero or a plus sign,
    e-mail addresses and digit strings longer than 18 stay text, to the letter. Thousands separators are never guessed.
    A quoted ``"NA"`` or ``""`` is text, the bare word or nothing is a missing value, as R writes them. What this
    format writes reads back as the same table, except that a column of text whose every value looks like a number
    (or date) comes back as numbers, and NaN as missing. A line with too many or too few fields is an error.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
    examples = ({}, {"delimiter": ";", "decimal": ","}, {"delimiter": "\t"})

    delimiter: Annotated[str, Field(pattern=r"^[\t -~]$")] | None = None
    """The character between fields; found among comma, semicolon, tab and bar when not given."""
    header: bool | None = None
    """Whether the first line names the columns; found when not given. Unnamed columns are called column_1, column_2."""
    encoding: str | None = None
    """The text encoding when reading; found among UTF-8, UTF-16, Windows-1252 and Latin-1. Writing is always UTF-8."""
    decimal: Literal[".", ","] | None = None
    """The decimal sign; a comma is found by itself where the delimiter is another character."""
    missing: tuple[str, ...] = MISSING
    """Unquoted fields that mean "no value"."""
    text: tuple[str, ...] = ()
    """Columns to keep as text whatever they look like, for example codes such as 250.00."""
    skip: Annotated[int, Field(ge=0)] = 0
    """Lines above the header line (or above the first row)."""

    def read(self, path: Path) -> Table:
        if path.suffix.lower() == ".gz":
            return self.parse(load(path), path.name)
        with path.open("rb") as file:
            return self.parse(mmap(file.fileno(), 0, access=ACCESS_READ), path.name, path)

    def cells(self, path: Path, names: Sequence[str]) -> pl.DataFrame:
        from sfumato.data.declared import csv_cells

        return csv_cells(self, path)

    def parse(self, data: Content, name: str, path: Path | None = None) -> Table:
        """The table in these bytes; ``name`` is what messages call them, ``path`` the file if they are mapped."""
        refuse_foreign(data, name)
        data = to_utf8(data, self.encoding, name)
        if self.skip:
            data, path = without_lines(data, self.skip), None
            refuse_foreign(data, name)
        dialect = sniff(data, delimiter=self.delimiter, header=self.header, missing=self.missing, name=name)
        options: dict[str, Any] = {"decimal": self.decimal, "comma": dialect.delimiter != ",", "text": self.text}
        fast = cut_fast(data, dialect, missing=self.missing, name=name, path=path)
        if fast is not None:
            try:
                words = tuple(word for word in self.missing if word)
                frame = infer(fast, missing=words, quoted=data.find(b'"') >= 0, **options)
                return Table(frame=frame, origin="csv")
            except SpelledMissing:
                pass
        return Table(frame=infer(cut_exactly(data, dialect, missing=self.missing, name=name), **options), origin="csv")

    def write(self, table: Table, path: Path) -> None:
        part = self if self.delimiter or ".tsv" not in path.suffixes else self.model_copy(update={"delimiter": "\t"})
        with path.open("wb") as raw:
            if path.suffix == ".gz":
                # No time stamp inside: the same table gives the same bytes.
                with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed:
                    part.write_to(table, cast(IO[bytes], packed))
            else:
                part.write_to(table, raw)

    def write_to(self, table: Table, file: IO[bytes]) -> None:
        """Write to an open file."""
        refuse_nested(table, "delimited text")
        delimiter = self.delimiter or ","
        # Columns go by number in here: Polars takes a name like ^a$ for a pattern.
        plain = table.frame.rename({name: f"c{number}" for number, name in enumerate(table.columns)})
        ready = plain.select(
            self._written(kind, pl.col(name), delimiter, alone=plain.width == 1).alias(name)
            for name, kind in plain.schema.items()
        )
        if self.header is not False:
            names = pl.DataFrame({"name": table.frame.columns})
            quoted = names.select(_quoted(pl.col("name"), delimiter, self.missing).str.join(delimiter))
            file.write(f"{quoted.item()}\n".encode())
        ready.write_csv(file, include_header=False, separator=delimiter, quote_style="never")

    def _written(self, kind: pl.DataType, value: pl.Expr, delimiter: str, *, alone: bool) -> pl.Expr:
        """A column as it stands in the file. A lone column spells its gaps out: an empty line would be skipped."""
        if kind.is_float():
            value = value.fill_nan(None)
            if self.decimal == ",":
                value = _quoted(value.cast(pl.String).str.replace(".", ",", literal=True), delimiter, ())
        elif isinstance(kind, pl.Datetime):
            utc = value.dt.convert_time_zone("UTC") if kind.time_zone else value
            value = utc.dt.strftime("%Y-%m-%dT%H:%M:%S%.6f" + ("Z" if kind.time_zone else ""))
        elif kind == pl.Time:
            value = value.dt.strftime("%H:%M:%S%.6f")
        elif not kind.is_numeric() and not kind.is_temporal() and kind != pl.Boolean:
            value = _quoted(value.cast(pl.String), delimiter, self.missing)
        if alone:
            value = value.cast(pl.String).fill_null(next((word for word in self.missing if word), '""'))
        return value

    def scan(self, path: Path) -> str | None:
        from sfumato.data.scan import csv_expression

        return None if self.skip else csv_expression(self, path)


def load(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz."""
    data = path.read_bytes()
    if path.suffix.lower() == ".gz" and data:
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise NotThatFormat(
                f"{path.name} is not a whole gzip file.", fix="Copy or download it again.", path=str(path)
            ) from None
    return data


def refuse_foreign(data: Content, name: str) -> None:
    """Refuse nothing at all, and files of another format."""
    if not data[:4096].strip() and not bytes(data).strip():
        raise EmptyTable(f"{name} is empty.", fix="Check that the file was written completely.", path=name)
    found = what_it_is(data[:32].lstrip())
    if found.startswith("it looks like"):
        raise NotThatFormat(f"{name} is not delimited text: {found}.", fix="Name it by its real format.", path=name)


def cut_fast(
    data: Content, dialect: CsvDialect, *, missing: Sequence[str], name: str, path: Path | None = None
) -> pl.DataFrame | None:
    """All fields as text, words for "missing" among them and nothing as null; None where that cannot be exact.

    Polars reads fastest, but fills short lines up silently and takes blank lines for rows.
    """
    quotes = data.find(b'"') >= 0
    if quotes and not quotes_are_regular(data, dialect.delimiter):
        # Either the file is malformed, and this says where, or it has bare quotes inside fields, which are allowed.
        explain(data, dialect, name)
        return None
    if "" not in missing:
        return None
    try:
        frame = pl.read_csv(
            data if isinstance(data, bytes) else path or bytes(data),
            glob=False,
            has_header=False,
            skip_lines=dialect.skip,
            separator=dialect.delimiter,
            quote_char='"' if quotes else None,
            schema=dict.fromkeys(dialect.names, pl.String),
        )
    except pl.exceptions.PolarsError:
        return None
    # A delimiter at the very end opens one more field, which Polars overlooks.
    if frame.width != len(dialect.names) or frame.height == 0 or data[-1:] == dialect.delimiter.encode():
        return None
    # A line that is too short has nothing in the last column; if that is always filled, no line is.
    if frame.get_column(frame.columns[-1]).null_count():
        rows = frame.height + int(dialect.header)
        if quotes or dialect.preamble or _count(data, dialect.delimiter) != rows * (frame.width - 1):
            return None
        if frame.width == 1:
            return None
    return _unpadded(frame, missing) if dialect.padded and not quotes else frame


def _unpadded(frame: pl.DataFrame, missing: Sequence[str]) -> pl.DataFrame:
    """Fields without the space that follows every delimiter."""
    plain = pl.all().str.strip_chars(" ")
    return frame.select(pl.when(~plain.is_in(list(missing))).then(plain))


def _count(data: Content, mark: str) -> int:
    whole, size = np.frombuffer(data, dtype=np.uint8), 1 << 20
    return sum(int(np.count_nonzero(whole[at : at + size] == ord(mark))) for at in range(0, whole.size, size))


def cut_exactly(data: Content, dialect: CsvDialect, *, missing: Sequence[str], name: str) -> pl.DataFrame:
    """All fields as text, or null where an unquoted word means "missing"."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)),
            read_options=csv.ReadOptions(column_names=dialect.names, skip_rows=dialect.skip, block_size=1 << 23),
            parse_options=csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(dialect.names, pa.large_string()),
                null_values=list(missing),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as failure:
        if "Empty CSV file" not in str(failure):
            explain(data, dialect, name)
            raise NotThatFormat(f"{name} cannot be cut into fields.", fix="Set `delimiter`.", path=name) from None
        frame = pl.DataFrame()
    else:
        frame = cast(pl.DataFrame, pl.from_arrow(table))
    if frame.height == 0:
        raise EmptyTable(
            f"{name} has a header but no rows." if dialect.header else f"{name} has no rows.",
            fix="Check that the file was written completely, or set `header: false`.",
            path=name,
        )
    return _unpadded(frame, missing) if dialect.padded and data.find(b'"') < 0 else frame


def _quoted(value: pl.Expr, delimiter: str, missing: Sequence[str]) -> pl.Expr:
    # Every likely delimiter is quoted, not only the one in use, so that a reader who must find it is not misled.
    special = value.str.contains_any([delimiter, *DELIMITERS, '"', "\n", "\r"]) | value.is_in([*missing, ""])
    special |= value.str.contains(r"^\s|\s$|^\x{FEFF}|^sep=")
    escaped = pl.format('"{}"', value.str.replace_all('"', '""', literal=True))
    return pl.when(special).then(escaped).otherwise(value)


_COMMA_DECIMAL = re.compile(rb"(?m)(?:^|[;\t|])[+-]?\d+,\d+\s*(?=[;\t|]|$)")


def found_dialect(path: Path, header: bool | None = None) -> dict[str, object]:
    """The dialect of delimited text, found once by looking, for its owner to review and declare.

    ``header`` says whether the first line names the columns, if somebody declared it.

    Only what differs from the fixed defaults of readers with a guarantee: comma, UTF-8, decimal point, a header line.
    """
    with path.open("rb") as file:
        mapped = mmap(file.fileno(), 0, access=ACCESS_READ) if path.suffix.lower() != ".gz" else load(path)
        encoding = decode(mapped)
        head = to_utf8(mapped[:_HEAD] if encoding == "utf-8" else bytes(mapped), None, path.name)[:_HEAD]
    head = head[: head.rfind(b"\n") + 1 or len(head)]
    dialect = sniff(head, delimiter=None, header=header, missing=MISSING, name=path.name)
    found: dict[str, object] = {}
    if dialect.delimiter != ("\t" if ".tsv" in path.suffixes else ",") and len(dialect.names) > 1:
        found["delimiter"] = dialect.delimiter
    if encoding not in ("utf-8", "utf-8-sig"):
        found["encoding"] = encoding
    if dialect.delimiter != "," and _COMMA_DECIMAL.search(head):
        found["decimal"] = ","
    if not dialect.header:
        found["header"] = False
    if dialect.preamble:
        found["skip"] = dialect.preamble
    return found
