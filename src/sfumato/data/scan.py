"""Files larger than memory: DuckDB reads them piece by piece, spilling to disk where it must."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sfumato.data.format import Format
from sfumato.data.in_process import open_duckdb
from sfumato.data.read_write import format_of, require_file
from sfumato.data.sql_quoting import quoted_name, quoted_text
from sfumato.data.text_files import decode, sniff, to_utf8
from sfumato.data.type_inference import THOUSANDS, TypeRule, allowed, plausible, settle
from sfumato.data.url import file_and_options, is_url, parse_url
from sfumato.errors import EmptyTable, NotThatFormat, RaggedLine, UnknownFormat
from sfumato.memory import available_memory

if TYPE_CHECKING:
    import duckdb

    from sfumato.data.formats.csv import Csv

_HEAD = 1 << 20
_FIRST_ROWS = 5000
_GROWTH = {
    ".csv": 2.0,
    ".tsv": 2.0,
    ".txt": 2.0,
    ".gz": 10.0,
    ".parquet": 6.0,
    ".pq": 6.0,
    ".duckdb": 4.0,
    ".xlsx": 15.0,
}
"""Bytes in memory per byte on disk, roughly and rather too high."""


@dataclass(frozen=True, kw_only=True)
class SizeHint:
    """Whether a file may be read whole. An estimate from its size, not a promise."""

    on_disk: int
    in_memory: int
    available: int

    @property
    def fits(self) -> bool:
        """True if reading it takes less than half of the memory that is free; work needs the other half."""
        return self.in_memory * 2 < self.available


def size_hint(path: str | Path) -> SizeHint:
    """How large a file is, how large it will be in memory, and how much memory there is."""
    place = Path(file_and_options(path)[0])
    require_file(place)
    size = place.stat().st_size
    return SizeHint(
        on_disk=size, in_memory=int(size * _GROWTH.get(place.suffix.lower(), 3.0)), available=available_memory()
    )


@dataclass(frozen=True, kw_only=True)
class FileScan:
    """A file that is queried where it lies, with the same columns and types that :func:`sfumato.data.read` would
    give."""

    path: Path
    expression: str
    """A DuckDB table expression: ``SELECT ... FROM {scan.expression}``."""
    columns: Mapping[str, str]
    """Column names and their DuckDB types, in order."""
    attached: bool = False
    """Whether the file is a DuckDB database, attached as ``source``."""

    def connect(
        self,
        *,
        memory: str = "2GB",
        threads: int | None = None,
        temporary: Path | None = None,
        writes: Sequence[Path] = (),
        folder: Path | None = None,
        ordered: bool = True,
    ) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A DuckDB connection that can read this one file and nothing else, in ``memory``, spilling to disk.

        No other file, network, extension or setting can be reached through it, except files that it ``writes`` and the
        content of a ``folder`` for intermediate tables.
        Rows come in the order of the file unless not ``ordered``, which needs less memory. The spill folder is inside
        ``temporary``, or the system's.
        """
        return open_duckdb(
            memory=memory,
            threads=threads,
            temporary=temporary,
            files=[*([] if self.attached else [self.path]), *writes],
            folder=folder,
            attached=self.path if self.attached else None,
            ordered=ordered,
        )

    def count(self) -> int:
        """How many rows there are; Parquet and DuckDB know it, a text file is read through."""
        with self.connect() as connection:
            found = connection.execute(f"SELECT count(*) FROM {self.expression}").fetchone()
        assert found is not None
        return int(found[0])


def scan(source: str | Path, *, format: Format | None = None, **options: object) -> FileScan:  # noqa: A002
    """Prepare a CSV, Parquet or DuckDB file for querying without reading it into memory.

    A CSV file is read through once to find the kinds of its columns, by the same rules as :func:`sfumato.data.read`.
    """
    from sfumato.data.formats.database import Database

    text = str(source)
    if is_url(text):
        address = parse_url(text)
        if address.kind != "duckdb":
            raise UnknownFormat("Only DuckDB files are scanned by URL.", fix="Export the table to Parquet.")
        path: Path = Path(address.location)
        part: Format = Database(table=address.table, query=address.query)
    else:
        name, told = file_and_options(source)
        path = Path(name)
        require_file(path)
        part = format_of(path, format, {**told, **options})
    require_file(path)
    path = path.resolve()
    part.check(path)
    attached = isinstance(part, Database)
    expression = _attached_expression(part, path) if isinstance(part, Database) else part.scan(path)
    if expression is None:
        raise UnknownFormat(
            f"A {part.part_name()} file cannot be scanned piece by piece.", fix="Convert it to CSV or Parquet."
        )
    bare = FileScan(path=path, expression=expression, columns={}, attached=attached)
    with bare.connect() as connection:
        found = _guarded(connection, f"DESCRIBE SELECT * FROM {expression}", path)
    columns = {str(row[0]): str(row[1]) for row in found}
    return FileScan(path=path, expression=expression, columns=columns, attached=attached)


def _attached_expression(part: Any, path: Path) -> str:
    with part.opened(path) as (_, statement):
        return f"({statement})"


_ENCODINGS = {
    "ascii": "utf-8",
    "utf-8": "utf-8",
    "utf-8-sig": "utf-8",
    "iso8859-1": "latin-1",
    "utf-16": "utf-16",
    "utf-16-le": "utf-16",
}
"""Encodings that DuckDB reads: Python's name and DuckDB's."""


def _encoding_name(encoding: str) -> str | None:
    """The one name of an encoding that has several; None for one that does not exist."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return None


def csv_expression(part: Csv, path: Path) -> str:
    """The expression that reads a CSV file with the kinds of its columns."""
    import gzip

    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
        head = file.read(_HEAD)
    # A cut in the middle of a character would look like another encoding.
    end = head.rfind(b"\n") + 1 or len(head)
    encoding = part.encoding or decode(head[:end])
    spelled = _encoding_name(encoding)
    if spelled is not None and spelled not in _ENCODINGS:
        raise NotThatFormat(
            f"{path.name} is {encoding} text, which can be read whole but not scanned.", fix="Convert it to UTF-8."
        )
    text = to_utf8(head if (spelled or "").startswith("utf-16") else head[:end], encoding, path.name)
    assert spelled is not None
    dialect = sniff(text, delimiter=part.delimiter, header=part.header, missing=part.missing, name=path.name)
    columns = ", ".join(f"{quoted_text(name)}: 'VARCHAR'" for name in dialect.names)
    words = ", ".join(map(quoted_text, part.missing))
    raw = (
        f"read_csv({quoted_text(path)}, auto_detect = false, header = false, skip = {dialect.skip}, "
        f"delim = {quoted_text(dialect.delimiter)}, quote = '\"', escape = '\"', columns = {{{columns}}}, "
        f"nullstr = [{words}], allow_quoted_nulls = false, encoding = '{_ENCODINGS[spelled]}', "
        f"max_line_size = 16777216, buffer_size = 33554432)"
    )
    if dialect.padded and b'"' not in text:
        plain = [f"trim({quoted_name(name)}, ' ')" for name in dialect.names]
        chosen = [
            f"CASE WHEN {value} NOT IN ({words}) THEN {value} END AS {quoted_name(name)}"
            for name, value in zip(dialect.names, plain, strict=True)
        ]
        raw = f"(SELECT {', '.join(chosen)} FROM {raw})"
    rules = _csv_rules(raw, dialect.names, part, comma=dialect.delimiter != ",", path=path)
    chosen = [
        f"{rules[name].sql.format(_value(name)) if name in rules else quoted_name(name)} AS {quoted_name(name)}"
        for name in dialect.names
    ]
    return f"(SELECT {', '.join(chosen)} FROM {raw})"


def _csv_rules(raw: str, names: tuple[str, ...], part: Csv, *, comma: bool, path: Path) -> dict[str, TypeRule]:
    """The rule of each column that is not text: proposed by the first rows, confirmed by all. The twin of ``infer``."""
    with FileScan(path=path, expression=raw, columns={}).connect() as connection:
        rows = _guarded(connection, f"SELECT * FROM {raw} LIMIT {_FIRST_ROWS}", path)
        if not rows:
            raise EmptyTable(f"{path.name} has a header but no rows.", path=str(path))
        first = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
        rules = allowed(part.decimal, comma)
        waiting = {
            # Values are trimmed in here, so each rule is tried once.
            column.name: list(dict.fromkeys(rule for rule, _ in plausible(column, rules)))
            for column in first.iter_columns()
            if column.name not in part.text
        }
        # A column without a value in the first rows may have some later.
        waiting |= {name: rules.copy() for name in names if first[name].null_count() == len(rows) and name in waiting}
        done: dict[str, TypeRule] = {}
        while waiting := {name: rest for name, rest in waiting.items() if rest}:
            tried = {name: rest.pop(0) for name, rest in waiting.items()}
            asked = [
                f"coalesce(bool_and({rule.sql_fits(value)}) FILTER (WHERE {value} IS NOT NULL), false)"
                for name, rule in tried.items()
                for value in [_value(name)]
            ]
            (row,) = _guarded(connection, f"SELECT count(*), {', '.join(asked)} FROM {raw}", path)
            for (name, rule), holds in zip(tried.items(), row[1:], strict=True):
                if holds:
                    done[name] = rule
                    waiting.pop(name)

        def clear(name: str) -> bool:
            value = _value(name)
            doubt = f"regexp_matches({value}, '[.,]') AND NOT regexp_full_match({value}, '{THOUSANDS}')"
            return bool(_guarded(connection, f"SELECT coalesce(bool_or({doubt}), false) FROM {raw}", path)[0][0])

        keep = settle(done, part.decimal, clear)
    return {name: rule for name, rule in done.items() if name in keep}


def _value(column: str) -> str:
    return f"nullif(trim({quoted_name(column)}, ' '), '')"


def _guarded(connection: duckdb.DuckDBPyConnection, query: str, path: Path) -> list[tuple[object, ...]]:
    """Run a query over a file; DuckDB's message may quote the line, so only its number is kept."""
    import duckdb

    try:
        return connection.execute(query).fetchall()
    except duckdb.Error as failure:
        found = re.search(r"[Ll]ine:? (\d+)", str(failure))
        if found:
            raise RaggedLine(
                f"{path.name}, line {found[1]}: the line cannot be cut into as many fields as the first one.",
                fix="Quote fields that contain the delimiter, or set `delimiter`.",
                path=str(path),
                line=int(found[1]),
            ) from None
        raise NotThatFormat(
            f"{path.name} cannot be scanned ({type(failure).__name__}).", fix="Export it again.", path=str(path)
        ) from None
