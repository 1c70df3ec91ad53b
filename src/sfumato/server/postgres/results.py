"""Prepared statements, portals and their results, and how these are sent: as rows or as the lines of COPY."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.server.postgres.backend import Columns
from sfumato.server.postgres.messages import ColumnDescription, data_row, message, row_description
from sfumato.server.postgres.sqlstates import SqlError
from sfumato.server.postgres.statement_kinds import Copy, Statement
from sfumato.server.postgres.type_mapping import TEXT, PostgresType, encode


@dataclass(frozen=True, kw_only=True)
class StatementResult:
    """What a statement came to."""

    tag: str
    """The command, as a client is told: ``SELECT`` is followed by the number of rows."""
    columns: Columns | None = None
    """None for a command without a result."""
    rows: Sequence[Sequence[Any]] = ()
    copy: Copy | None = None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A prepared statement."""

    statement: Statement
    types: tuple[PostgresType, ...]
    sql: str


@dataclass(kw_only=True)
class Portal:
    """A statement with its parameters; its outcome once it was run, and how many rows were sent."""

    prepared: Prepared
    values: Sequence[Any]
    formats: tuple[int, ...]
    hold: bool = False
    """Whether it outlives its transaction, if that is not undone."""
    kept: bool = False
    """Whether it has outlived it."""
    outcome: StatementResult | None = None
    sent: int = 0


def text_outcome(name: str, lines: Sequence[str], tag: str) -> StatementResult:
    """A result of one column of text."""
    return StatementResult(tag=tag, columns=((name, TEXT),), rows=[(line,) for line in lines])


def _formats(columns: Columns, asked: Sequence[int]) -> list[int]:
    if len(asked) > 1 and len(asked) != len(columns):
        raise SqlError("08P01", "the number of result formats does not fit the number of columns")
    return [asked[0] if len(asked) == 1 else asked[i] if asked else 0 for i in range(len(columns))]


def described(columns: Columns | None, formats: Sequence[int] = ()) -> bytes:
    """The description of a result, or that there is none."""
    if columns is None:
        return message(b"n")
    chosen = _formats(columns, formats)
    return row_description(
        [
            ColumnDescription(name=name, oid=kind.oid, size=kind.size, format=chosen[i])
            for i, (name, kind) in enumerate(columns)
        ]
    )


def encoded_rows(columns: Columns, rows: Sequence[Sequence[object]], formats: Sequence[int] = ()) -> Iterator[bytes]:
    """The rows as messages."""
    chosen = [(kind, asked == 1) for (_, kind), asked in zip(columns, _formats(columns, formats), strict=True)]
    for row in rows:
        cells = [encode(cell, kind, binary=binary) for cell, (kind, binary) in zip(row, chosen, strict=True)]
        yield data_row(cells, len(cells))


def complete(outcome: StatementResult, rows: int) -> bytes:
    """The end of a statement."""
    tag = f"{outcome.tag} {rows}" if outcome.tag in ("SELECT", "COPY", "FETCH") else outcome.tag
    return message(b"C", tag.encode() + b"\0")


def copy_lines(copy: Copy, columns: Columns, rows: Sequence[Sequence[object]]) -> Iterator[bytes]:
    """The messages of ``COPY ... TO STDOUT``."""
    if copy.binary:
        yield message(b"H", struct.pack(f"!bh{len(columns)}h", 1, len(columns), *[1] * len(columns)))
        head = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)  # in one message with the first row, as clients expect
        for row in rows:
            cells = [encode(cell, kind, binary=True) for cell, (_, kind) in zip(row, columns, strict=True)]
            sized = (struct.pack("!i", -1) if cell is None else struct.pack("!i", len(cell)) + cell for cell in cells)
            yield message(b"d", head + struct.pack("!h", len(cells)) + b"".join(sized))
            head = b""
        yield message(b"d", head + struct.pack("!h", -1))
        yield message(b"c")
        return
    yield message(b"H", struct.pack(f"!bh{len(columns)}h", 0, len(columns), *[0] * len(columns)))
    if copy.header:
        yield message(b"d", _line(copy, [name for name, _ in columns]))
    for row in rows:
        yield message(b"d", _line(copy, [_copy_text(cell, kind) for cell, (_, kind) in zip(row, columns, strict=True)]))
    yield message(b"c")


def _copy_text(cell: object, kind: PostgresType) -> str | None:
    raw = encode(cell, kind, binary=False)
    return None if raw is None else raw.decode("utf-8")


_ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _line(copy: Copy, cells: Sequence[str | None]) -> bytes:
    texts = [copy.null if cell is None else _csv(copy, cell) if copy.csv else _escaped(copy, cell) for cell in cells]
    return (copy.delimiter.join(texts) + "\n").encode()


def _escaped(copy: Copy, cell: str) -> str:
    text = "".join(_ESCAPES.get(character, character) for character in cell)
    return text.replace(copy.delimiter, f"\\{copy.delimiter}") if copy.delimiter not in _ESCAPES else text


def _csv(copy: Copy, cell: str) -> str:
    plain = cell != copy.null and cell != "\\." and not any(mark in cell for mark in (copy.delimiter, '"', "\n", "\r"))
    return cell if plain else '"' + cell.replace('"', '""') + '"'
