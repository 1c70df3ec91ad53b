"""Messages of the PostgreSQL frontend/backend protocol, version 3.0: what clients send, and what they are sent.

Bytes of a client are untrusted. Every function here reads them with bounds and raises :class:`MalformedMessage`
for what does not fit; nothing is allocated by a length that a client claims.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_VERSION_3, _CANCEL = 196608, 80877102
_INT16, _INT32 = struct.Struct("!h"), struct.Struct("!i")


class MalformedMessage(Exception):
    """A message of a client does not follow the protocol."""


@dataclass(frozen=True, kw_only=True)
class Startup:
    """The first message: user, database and settings."""

    parameters: dict[str, str]
    newer_minor: int = 0
    """The minor version that was asked for where it is newer than 3.0."""


@dataclass(frozen=True, kw_only=True)
class CancelRequest:
    """Asks on a connection of its own that the query of another connection ends."""

    process: int
    secret: bytes


@dataclass(frozen=True, kw_only=True)
class Parse:
    """Prepares a statement."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Bind:
    """Makes a portal of a prepared statement and its parameters."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Execute:
    """Asks for rows of a portal; 0 rows stand for all."""

    portal: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class ColumnDescription:
    """One column of a result."""

    name: str
    oid: int
    size: int
    format: int = 0
    table: int = 0
    number: int = 0


class _Cursor:
    """Reads one message body from left to right."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def int16(self) -> int:
        return int(_INT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self.take(4))[0])

    def count(self) -> int:
        """A number of items of at least two bytes each: more than fit in the rest is malformed."""
        number = self.int16()
        if not 0 <= number <= len(self._body) - self._at:
            raise MalformedMessage("a count does not fit the message")
        return number

    def take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._body):
            raise MalformedMessage("a length does not fit the message")
        part = self._body[self._at : self._at + size]
        self._at += size
        return part

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise MalformedMessage("a string has no end")
        try:
            text = self._body[self._at : end].decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedMessage("a string is not UTF-8") from None
        self._at = end + 1
        return text

    def byte(self) -> bytes:
        return self.take(1)

    def end(self) -> None:
        if self._at != len(self._body):
            raise MalformedMessage("a message is longer than its content")


def parse_startup(body: bytes) -> Startup | CancelRequest:
    """The content of a message without a type byte, after a possible request for TLS."""
    cursor = _Cursor(body)
    code = cursor.int32()
    if code == _CANCEL:
        process, secret = cursor.int32(), body[8:]
        if not 4 <= len(secret) <= 256:
            raise MalformedMessage("a cancel request has no key")
        return CancelRequest(process=process, secret=secret)
    if code >> 16 != _VERSION_3 >> 16:
        raise MalformedMessage("this version of the protocol is not supported")
    parameters: dict[str, str] = {}
    while (name := cursor.text()) != "":
        parameters[name] = cursor.text()
    cursor.end()
    return Startup(parameters=parameters, newer_minor=code & 0xFFFF)


def parse_parse(body: bytes) -> Parse:
    """The content of Parse."""
    cursor = _Cursor(body)
    name, sql = cursor.text(), cursor.text()
    types = tuple(cursor.int32() & 0xFFFFFFFF for _ in range(cursor.count()))
    cursor.end()
    return Parse(name=name, sql=sql, types=types)


def parse_bind(body: bytes) -> Bind:
    """The content of Bind."""
    cursor = _Cursor(body)
    portal, statement = cursor.text(), cursor.text()
    formats = tuple(cursor.int16() for _ in range(cursor.count()))
    values: list[bytes | None] = []
    for _ in range(cursor.count()):
        size = cursor.int32()
        values.append(None if size == -1 else cursor.take(size))
    results = tuple(cursor.int16() for _ in range(cursor.count()))
    cursor.end()
    if not set(formats + results) <= {0, 1}:
        raise MalformedMessage("a format is neither text nor binary")
    return Bind(portal=portal, statement=statement, formats=formats, values=tuple(values), result_formats=results)


def parse_execute(body: bytes) -> Execute:
    """The content of Execute."""
    cursor = _Cursor(body)
    portal, rows = cursor.text(), cursor.int32()
    cursor.end()
    return Execute(portal=portal, rows=max(rows, 0))


def parse_target(body: bytes) -> tuple[bool, str]:
    """The content of Describe and Close: whether a portal is meant, and its name."""
    cursor = _Cursor(body)
    kind, name = cursor.byte(), cursor.text()
    cursor.end()
    if kind not in (b"S", b"P"):
        raise MalformedMessage("neither a statement nor a portal is named")
    return kind == b"P", name


def text_argument(body: bytes) -> str:
    """The content of a message of one string."""
    cursor = _Cursor(body)
    text = cursor.text()
    cursor.end()
    return text


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message to a client."""
    return kind + _INT32.pack(len(body) + 4) + body


def row_description(columns: Sequence[ColumnDescription]) -> bytes:
    """The names and types of the columns that follow."""
    body = bytearray(_INT16.pack(len(columns)))
    for column in columns:
        body += _name(column.name) + struct.pack(
            "!IhIhih", column.table, column.number, column.oid, column.size, -1, column.format
        )
    return message(b"T", bytes(body))


def data_row(values: Iterable[bytes | None], count: int) -> bytes:
    """One row."""
    body = bytearray(_INT16.pack(count))
    for value in values:
        if value is None:
            body += b"\xff\xff\xff\xff"
        else:
            body += _INT32.pack(len(value)) + value
    return message(b"D", bytes(body))


def _name(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


def _fields(severity: str, code: str, text: str, hint: str, position: int | None) -> bytes:
    fields = [(b"S", severity), (b"V", severity), (b"C", code), (b"M", text)]
    if hint:
        fields.append((b"H", hint))
    if position is not None:
        fields.append((b"P", str(position)))
    return b"".join(key + _name(value) for key, value in fields) + b"\0"


def error_response(
    *, code: str, text: str, hint: str = "", severity: str = "ERROR", position: int | None = None
) -> bytes:
    """An error: SQLSTATE, message, hint, and the character of the query it is about."""
    return message(b"E", _fields(severity, code, text, hint, position))


def notice_response(text: str, *, severity: str = "NOTICE", code: str = "00000", hint: str = "") -> bytes:
    """A notice, which clients show beside the result."""
    return message(b"N", _fields(severity, code, text, hint, None))
