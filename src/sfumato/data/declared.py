"""Declared reading: a table whose columns, types and order come from a declaration, and never from its rows.

Whatever has a guarantee about one person reads through this module. The kinds of the columns and the dialect of the
file are public; nothing is found by looking at rows. Each row is read by itself:

- A cell that cannot be read as its declared kind is a missing value of its row.
- A record of delimited text is a line, so a value cannot contain a line break: a quotation mark that one person leaves
  open would join the rows of others.
- A line that is no record is no row: one with more or fewer fields than the header or with an open quotation mark, a
  blank one, one of more than 16 MiB, and one with bytes that are not text in the declared encoding.

So adding or removing one line of the source adds or removes at most one row of the table and changes no other. Refusals
concern the declaration, the header and the file as a whole. A table without rows is a table. The owner sees lines that
are no records with :func:`sfumato.data.read`, which refuses them by their number.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sfumato.data.read_write import format_of, require_file
from sfumato.data.sql_quoting import quoted_name, quoted_text
from sfumato.data.table import Table, refuse_duplicates, refuse_no_header
from sfumato.data.url import file_and_options, is_url
from sfumato.errors import BadParameter, EmptyTable, FileMissing, NotThatFormat, UnknownColumn
from sfumato.wording import did_you_mean

if TYPE_CHECKING:
    from sfumato.data.formats.csv import Csv

DECLARED = "declared"
"""The origin of a table that was read as declared."""

BOOLEANS = {
    **dict.fromkeys(("true", "yes", "y", "t", "1", "1.0"), True),
    **dict.fromkeys(("false", "no", "n", "f", "0", "0.0"), False),
}
"""Accepted spellings of booleans, in lower case. pandas stores 0, 1 and missing as floats, hence 1.0 and 0.0."""

_TYPES: Mapping[str, Callable[[], pl.DataType]] = {
    "boolean": lambda: pl.Boolean(),
    "integer": lambda: pl.Int64(),
    "number": lambda: pl.Float64(),
    "date": lambda: pl.Date(),
    "datetime": lambda: pl.Datetime("us"),
    "category": lambda: pl.String(),
}
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y", "%d %b %Y")
"""Dates that can be read one by one. 01/02/1960 is not among them: only other rows would tell day and month apart."""
_CLOCKS = (" %H:%M:%S%.f", "T%H:%M:%S%.f", " %H:%M", "T%H:%M", "T%H:%M:%S%.fZ")
_EXACT = 2**53
_LINE, _BUFFER = 1 << 24, 1 << 25
_ASIDE = "\x02"
_ENCODINGS = {"ascii": "utf-8", "utf-8": "utf-8", "utf-8-sig": "utf-8", "iso8859-1": "latin-1"}
"""Encodings that can be read line by line: Python's name and DuckDB's. In UTF-16, one byte too many shifts all rows."""


def read_declared(source: object, kinds: Mapping[str, str | None], **options: Any) -> Table:
    """The declared columns of a source, in the order of ``kinds``, each cell read as the kind of its column.

    ``source`` is whatever :func:`sfumato.data.read` accepts; ``options`` are those of its format (the dialect). What a
    dialect leaves open is fixed: comma (tab for .tsv), UTF-8, decimal point, a header line. A kind is ``boolean``,
    ``integer``, ``number``, ``date``, ``datetime`` or ``category``, or None for the type that the source stores; a text
    file stores none.

    >>> read_declared(pl.DataFrame({"age": ["40", "41.5", "old"]}), {"age": "integer"}).frame["age"].to_list()
    [40, None, None]
    """
    cells, typed = _cells(source, tuple(kinds), options)
    refuse_no_header(cells.columns, tuple(kinds))
    for name, kind in kinds.items():
        if name not in cells.columns:
            raise UnknownColumn(
                f"The data have no column `{name}`.",
                fix=did_you_mean(name, cells.columns)
                + " In a text file, names stand in the first line, separated by commas unless `delimiter` is declared.",
                columns=(name,),
            )
        if kind is None and not typed:
            raise BadParameter(
                f"The kind of column `{name}` is not declared. With a guarantee it must not be found from the rows.",
                fix=f"Declare one of {', '.join(_TYPES)}.",
                column=name,
            )
    columns = [as_kind(cells.get_column(name), kind) for name, kind in kinds.items()]
    return Table(frame=pl.DataFrame(columns), origin=DECLARED)


def column_names(source: object, **options: Any) -> tuple[str, ...]:
    """The columns that a source names in its header or schema, which is public."""
    if isinstance(source, str | Path) and str(source) != "-" and not is_url(str(source)):
        from sfumato.data.formats.csv import Csv

        path, told = file_and_options(source)
        require_file(Path(path))
        part = format_of(Path(path), None, {**told, **options})
        if isinstance(part, Csv):
            return csv_header(part, Path(path))
    return tuple(_cells(source, (), options)[0].columns)


def kind_of_values(values: Iterable[object]) -> str:
    """The kind of a column whose possible values are declared; ``category`` unless all are of another kind.

    >>> kind_of_values([1, 2, 3]), kind_of_values([1, 2.5]), kind_of_values(["1", 2]), kind_of_values([True, False])
    ('integer', 'number', 'category', 'boolean')
    """
    from datetime import date, datetime

    types = {type(value) for value in values}
    for kind, known in (
        ("boolean", {bool}),
        ("integer", {int}),
        ("number", {int, float}),
        ("date", {date}),
        ("datetime", {date, datetime}),
    ):
        if types and types <= known:
            return kind
    return "category"


def as_kind(series: pl.Series, kind: str | None) -> pl.Series:
    """A column with each cell read as a kind by itself; null where that is not possible. Nothing is rounded.

    >>> as_kind(pl.Series(["7", "7.0", "1e300", "x"]), "integer").to_list()
    [7, 7, None, None]
    >>> as_kind(pl.Series([1.0, 2.5]), "category").to_list()
    ['1', '2.5']
    """
    if kind is None:
        return series
    wanted = _TYPES[str(kind)]()
    if series.dtype == wanted:
        return series.fill_nan(None).set(series.is_infinite(), None) if wanted == pl.Float64 else series
    match str(kind):
        case "category":
            return _texts(series)
        case "boolean":
            lower = _texts(series).str.strip_chars().str.to_lowercase()
            return lower.replace_strict(BOOLEANS, default=None, return_dtype=pl.Boolean)
        case "integer":
            texts = _texts(series).str.strip_chars()
            whole = texts.cast(pl.Int64, strict=False)
            floats = texts.cast(pl.Float64, strict=False)
            near = floats.set((floats.abs() > _EXACT).fill_null(True), None)
            return whole.zip_with(
                whole.is_not_null(), near.set((near.floor() != near).fill_null(True), None).cast(pl.Int64)
            )
        case "number":
            numeric = series.dtype.is_numeric() or series.dtype == pl.Boolean
            floats = (series if numeric else _texts(series).str.strip_chars()).cast(pl.Float64, strict=False)
            return floats.set((~floats.is_finite()).fill_null(True), None)
        case _:
            return _moments(series, wanted)


def _moments(series: pl.Series, wanted: object) -> pl.Series:
    """Dates or moments; a moment with a time of day is no date."""
    if isinstance(series.dtype, pl.Datetime):
        moments = (series.dt.replace_time_zone(None) if series.dtype.time_zone else series).cast(pl.Datetime("us"))
    elif series.dtype == pl.Date:
        moments = series.cast(pl.Datetime("us"))
    else:
        cells = _texts(series).str.strip_chars().alias("x")
        texts = cells.unique()
        formats = (*_DAYS, *(day + clock for day in _DAYS for clock in _CLOCKS))
        read = [
            pl.col("x").str.to_datetime(written, strict=False, time_unit="us", exact=True)
            if "%H" in written
            else pl.col("x").str.to_date(written, strict=False, exact=True).cast(pl.Datetime("us"))
            for written in formats
        ]
        known = texts.to_frame().select(pl.coalesce(read)).to_series()
        moments = cells.replace_strict(texts, known, default=None, return_dtype=pl.Datetime("us"))
    moments = moments.set((moments.dt.year() < 1000).fill_null(True), None).alias(series.name)
    if wanted != pl.Date:
        return moments
    days = moments.cast(pl.Date)
    return days.set((days.cast(pl.Datetime("us")) != moments).fill_null(True), None)


def _texts(series: pl.Series) -> pl.Series:
    """Cells as text, in one way for each value whatever the type of its column: 1.0 is `1`, a midnight is its day."""
    if series.dtype == pl.String:
        return series
    if series.dtype.is_float() or series.dtype.is_decimal():
        floats = series.cast(pl.Float64)
        whole = (floats.floor() == floats) & (floats.abs() <= _EXACT)
        digits = floats.cast(pl.Int64, strict=False).cast(pl.String)
        texts = digits.zip_with(whole.fill_null(False), floats.cast(pl.String))
        return texts.set((~floats.is_finite()).fill_null(True), None)
    if isinstance(series.dtype, pl.Datetime):
        plain = series.dt.replace_time_zone(None) if series.dtype.time_zone else series
        days = plain.cast(pl.Date)
        return days.cast(pl.String).zip_with((days.cast(plain.dtype) == plain).fill_null(True), plain.cast(pl.String))
    return series.cast(pl.String, strict=False)


def frame_cells(source: Any) -> pl.DataFrame:
    """Any frame that supports Arrow as a Polars frame.

    Columns of Python objects become text value by value, as if they came from a text file: a type guessed from all
    values would let one person's row change how everybody's are read.
    """
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        objects = [column for column in source if column.dtype == pl.Object]
        return source.with_columns(_object_texts(column).alias(column.name) for column in objects)
    if not type(source).__module__.startswith("pandas"):
        return pl.DataFrame(source)
    if any(name is not None for name in source.index.names):
        source = source.reset_index()
    columns: dict[str, pl.Series] = {}
    for place, name in enumerate(source.columns):
        if str(name) in columns:
            raise BadParameter("two columns of a frame have the same name.", fix="Rename one.")
        column = source.iloc[:, place]
        if str(column.dtype) == "object":
            columns[str(name)] = _object_texts(column)
        else:
            columns[str(name)] = pl.Series(pl.from_pandas(column))
    return pl.DataFrame(columns)


def _object_texts(column: Iterable[object]) -> pl.Series:
    return pl.Series([None if value is None or value != value else str(value) for value in column], dtype=pl.String)


def _cells(source: object, names: Sequence[str], options: Mapping[str, object]) -> tuple[pl.DataFrame, bool]:
    """All cells of a source, and whether it stores the types of its columns. Nothing is found by looking at rows."""
    from sfumato.data import read_write

    if isinstance(source, Table):
        refuse_found_types(source)
        return source.frame, True
    if not isinstance(source, str | Path):
        return frame_cells(source), True
    text = str(source)
    if is_url(text):
        return read_write.from_url(text).frame, True
    if text == "-":
        return _standard_input(options), False
    name, told = file_and_options(source)
    path = Path(name)
    require_file(path)
    part = format_of(path, None, {**told, **options})
    if path.stat().st_size == 0:
        raise EmptyTable(f"{path.name} is empty.", fix="Check that the file was written completely.", path=str(path))
    try:
        part.check(path)
        return part.cells(path, names), part.typed
    except PermissionError:
        raise FileMissing(f"{path} cannot be opened: permission denied.", path=str(path)) from None


def _standard_input(options: Mapping[str, object]) -> pl.DataFrame:
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        path = Path(folder) / "input.csv"
        path.write_bytes(sys.stdin.buffer.read())
        return _cells(path, (), options)[0]


def csv_cells(part: Csv, path: Path) -> pl.DataFrame:
    """All cells of delimited text, as text or missing: one row per line."""
    import duckdb

    from sfumato.data.scan import FileScan

    expression = csv_lines_expression(part, path)
    with FileScan(path=path.resolve(), expression=expression, columns={}).connect() as connection:
        try:
            found: Any = connection.sql(f"SELECT * FROM {expression}").to_arrow_table()
        except duckdb.Error:
            raise NotThatFormat(
                f"{path.name} cannot be read as delimited text.", fix="Copy or export it again.", path=str(path)
            ) from None
    return pl.DataFrame(found)


def csv_lines_expression(part: Csv, path: Path) -> str:
    """A DuckDB table expression for delimited text: a row per line, every column text, in the order of the header."""
    names, mark = csv_header(part, path), _delimiter(part, path)
    words, longest = f"[{', '.join(map(quoted_text, part.missing))}]::VARCHAR[]", max(map(len, part.missing), default=0)
    lines = (
        f"read_csv({quoted_text(path.resolve())}, auto_detect = false, header = false, skip = {part.skip + 1}, "
        "delim = '\x01', quote = '', escape = '', columns = {'line': 'VARCHAR'}, null_padding = true, "
        f"ignore_errors = true, strict_mode = false, encoding = '{_encoding(part, path)}', "
        f"max_line_size = {_LINE}, buffer_size = {_BUFFER})"
    )
    own, cut = f"\\x{ord(mark):02X}", quoted_text(mark)
    field = f' *"(?:[^"]|"")*" *|[^"{own}]*'
    regular = quoted_text(f"(?:{field})(?:{own}(?:{field}))*")
    # Every second part of a regular line stands in quotation marks: delimiters in there are set aside.
    aside = f"lambda part, place: CASE WHEN place % 2 = 0 THEN replace(part, {cut}, '{_ASIDE}') ELSE part END"
    inner = f"array_to_string(list_transform(string_split(line, '\"'), {aside}), '\"')"
    # In other lines, a field is in quotation marks, or goes up to the next delimiter: an open mark reaches no further.
    either = quoted_text(f'{own}(?: *"(?:[^"]|"")*"|[^{own}]*)')
    odd = f"list_transform(regexp_extract_all({cut} || line, {either}), lambda part: substring(part, 2))"
    fields = (
        f"SELECT CASE WHEN NOT contains(line, '\"') THEN string_split(line, {cut}) "
        f"WHEN regexp_full_match(line, {regular}) THEN string_split({inner}, {cut}) "
        f"ELSE {odd} END AS fields FROM {lines} "
        "WHERE line IS NOT NULL AND (NOT contains(line, '\"') OR len(string_split(line, '\"')) % 2 = 1)"
    )
    count = len(names)
    blank = f"trim(array_to_string(fields[{count + 1}:], ''), ' ') = ''"
    kept = f"SELECT fields AS f FROM ({fields}) WHERE len(fields) = {count} OR (len(fields) > {count} AND {blank})"
    chosen = []
    for place, name in enumerate(names, 1):
        x = f"trim(f[{place}], ' ')"
        # No IN with its join for each column, asked about or not.
        plain = (
            f"CASE WHEN {x} = '' OR (length({x}) <= {longest} AND list_contains({words}, {x})) THEN NULL ELSE {x} END"
        )
        if part.decimal == ",":
            plain = f"regexp_replace({plain}, '^([+-]?[0-9]*),([0-9]+)$', '\\1.\\2')"
        inside = f"replace(replace(substring({x}, 2, length({x}) - 2), '\"\"', '\"'), '{_ASIDE}', {cut})"
        marked = f"starts_with({x}, '\"') AND ends_with({x}, '\"') AND length({x}) > 1"
        chosen.append(f"CASE WHEN {marked} THEN {inside} ELSE {plain} END AS {quoted_name(name)}")
    return f"(SELECT {', '.join(chosen)} FROM ({kept}))"


def csv_header(part: Csv, path: Path) -> tuple[str, ...]:
    """The names in the header line of delimited text."""
    if part.header is False:
        raise BadParameter(
            f"{path.name}: with a guarantee, the first line must name the columns.", fix="Add a header line."
        )
    _encoding(part, path)
    mark, line = _delimiter(part, path), b""
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
        # A carriage return alone ends a line too.
        text = io.TextIOWrapper(file, encoding="latin-1", newline=None)
        for _ in range(part.skip + 1):
            line = text.readline().rstrip("\n").encode("latin-1")
    if line.startswith(codecs.BOM_UTF8):
        line = line[len(codecs.BOM_UTF8) :]
    cells = next(csv.reader([line.decode(part.encoding or "utf-8", "replace")], delimiter=mark), [])
    names = [cell.strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    if not names:
        raise EmptyTable(f"{path.name} has no header.", fix="Name the columns in its first line.", path=str(path))
    named = [name or f"column_{number}" for number, name in enumerate(names, 1)]
    refuse_duplicates(named, path.name)
    return tuple(named)


def _delimiter(part: Csv, path: Path) -> str:
    return part.delimiter or ("\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes] else ",")


def _encoding(part: Csv, path: Path) -> str:
    try:
        return _ENCODINGS[codecs.lookup(part.encoding or "utf-8").name]
    except (LookupError, KeyError):
        raise NotThatFormat(
            f"{path.name}: text in `{part.encoding}` cannot be read line by line, which a guarantee needs.",
            fix="Convert the file to UTF-8.",
            path=str(path),
        ) from None


def refuse_found_types(table: Table) -> None:
    """Refuse a table whose types were found by looking at rows: one row could have changed them."""
    from sfumato.registry import registry

    formats = registry("format")
    if table.origin in formats.names() and not formats.get(table.origin).typed:  # type: ignore[attr-defined]
        raise BadParameter(
            "The types of the table were found by looking at its rows; with a guarantee they must be declared.",
            fix="Pass the path of the file, with a declaration of the `kind` of each column, or a typed frame.",
        )
