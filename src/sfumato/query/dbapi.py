"""DB-API 2.0 (PEP 249) connection to a session, for ``pandas.read_sql`` and other clients.

>>> from sfumato.demos.private_hospital import flu
>>> connection = flu(people=200, budget=10).connect(epsilon="0.5")
>>> cursor = connection.cursor().execute("SELECT COUNT(*) AS n FROM patients WHERE age >= ?", (65,))
>>> [column[0] for column in cursor.description], len(cursor.fetchall())
(['n'], 1)

Each ``execute`` asks one query at the cost that the connection was opened with; fetching rows costs nothing, and the
same query with the same parameters is free. There are no transactions and nothing can be written. A refusal is raised
as an error of this module, with the original error as its cause.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from sfumato.data.sql_quoting import quoted_text
from sfumato.errors import (
    AnswerDenied,
    AnswerFailed,
    BadParameter,
    MetadataMissing,
    OverBudget,
    QueryRefused,
    SfumatoError,
    UnknownBudget,
)

if TYPE_CHECKING:
    from sfumato.query.results.answer import Answer
    from sfumato.query.session import QueryOptions, Session

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, but not connections."""
paramstyle = "qmark"


class Warning(Exception):  # noqa: A001 - the names of this module's errors are those of PEP 249
    """Never raised: what matters is a refusal."""


class Error(Exception):
    """Base class of the errors of this module."""


class InterfaceError(Error):
    """The connection or cursor is closed, or is used in a way that it does not support."""


class DatabaseError(Error):
    """The query was not answered."""


class DataError(DatabaseError):
    """A parameter has no SQL form."""


class OperationalError(DatabaseError):
    """The budget is spent, the policy denies the answer, or the engine failed."""


class IntegrityError(DatabaseError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError):
    """Never raised by this module."""


class ProgrammingError(DatabaseError):
    """The SQL or its options are refused."""


class NotSupportedError(DatabaseError):
    """The method needs something that a private query interface does not have."""


_ERRORS: tuple[tuple[type[SfumatoError], type[DatabaseError]], ...] = (
    (QueryRefused, ProgrammingError),
    (BadParameter, ProgrammingError),
    (MetadataMissing, ProgrammingError),
    (OverBudget, OperationalError),
    (UnknownBudget, OperationalError),
    (AnswerDenied, OperationalError),
    (AnswerFailed, OperationalError),
)

Date, Timestamp, Binary = date, datetime, bytes
STRING, BINARY, NUMBER, DATETIME, ROWID = "string", "binary", "number", "datetime", "rowid"


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - named by PEP 249
    """The date of a time in seconds since the epoch."""
    return date(*time.localtime(ticks)[:3])


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802 - named by PEP 249
    """The local time of a time in seconds since the epoch."""
    return datetime(*time.localtime(ticks)[:6])


def connect(session: Session, *, intervals: bool = False, **options: Any) -> Connection:
    """Open a connection to a session; ``options`` are those of :meth:`~sfumato.query.session.Session.ask`."""
    return Connection(session, intervals=intervals, options=options)  # type: ignore[arg-type]


class Connection:
    """A connection to a session. Closing it closes its cursors, not the session."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(self, session: Session, *, intervals: bool = False, options: QueryOptions) -> None:
        self.session, self.intervals, self.options = session, intervals, options
        self._closed = False

    def cursor(self) -> Cursor:
        """A new cursor."""
        self.check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Does nothing: a cost is charged when a query is asked, and nothing is written."""
        self.check_open()

    def rollback(self) -> None:
        """Does nothing: a cost that was charged stays charged."""
        self.check_open()

    def close(self) -> None:
        """Refuse further use."""
        self._closed = True

    def check_open(self) -> None:
        """Refuse a closed connection."""
        if self._closed:
            raise InterfaceError("The connection is closed.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursor:
    """Asks queries and hands out the rows of the latest answer."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self.answer: Answer | None = None
        """The latest answer, with intervals, cost and explanation."""
        self._rows: Iterator[tuple[object, ...]] | None = None
        self._closed = False

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Self:
        """Ask a query. Each ``?`` stands for one parameter; the values are bound as literals, never as SQL."""
        self._check_open()
        self.description, self._rows, self.rowcount, self.answer = None, None, -1, None
        sql = bind_parameters(operation, parameters)
        try:
            answer = self.connection.session.ask(sql, **self.connection.options)
        except SfumatoError as refusal:
            kind = next((error for cause, error in _ERRORS if isinstance(refusal, cause)), DatabaseError)
            raise kind(f"{refusal.code}  {refusal}") from refusal
        frame = answer.intervals if self.connection.intervals else answer.frame
        if answer.limits is not None and answer.limits_title not in frame.columns:
            frame = frame.with_columns(pl.lit(answer.limits).alias(answer.limits_title))
        self.answer, self.rowcount, self._rows = answer, frame.height, iter(frame.rows())
        self.description = [
            (name, _type_code(dtype), None, None, None, None, True) for name, dtype in frame.schema.items()
        ]
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[object]]) -> None:
        """Refused: PEP 249 leaves no way to fetch the rows of several queries."""
        raise NotSupportedError("Ask the queries one by one with execute().")

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""
        return next(self._answered(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[object, ...]]:
        """The next rows, as many as ``size`` or :attr:`arraysize`."""
        rows = self._answered()
        return [row for _, row in zip(range(self.arraysize if size is None else size), rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All remaining rows."""
        return list(self._answered())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._answered()

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Does nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Refuse further use."""
        self._closed, self._rows = True, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answered(self) -> Iterator[tuple[object, ...]]:
        self._check_open()
        if self._rows is None:
            raise InterfaceError("No query was asked with this cursor.")
        return self._rows

    def _check_open(self) -> None:
        self.connection.check_open()
        if self._closed:
            raise InterfaceError("The cursor is closed.")


def _type_code(dtype: Any) -> str:
    return NUMBER if dtype.is_numeric() else DATETIME if dtype.is_temporal() else STRING


def bind_parameters(sql: str, parameters: Sequence[object]) -> str:
    """Put the literal of each parameter in place of its ``?``. A ``?`` in a string, name or comment is no placeholder.

    >>> bind_parameters("SELECT COUNT(*) FROM t WHERE a = ? -- why?", ["it's"])
    "SELECT COUNT(*) FROM t WHERE a =  'it''s'  -- why?"
    """
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError
    from sqlglot.tokenizer_core import TokenType

    if isinstance(parameters, str | Mapping) or not isinstance(parameters, Sequence):
        raise ProgrammingError("Parameters are a sequence with one value for each `?`.")
    if not parameters and "?" not in sql:
        return sql
    try:
        places = [token.start for token in DuckDB().tokenize(sql) if token.token_type is TokenType.PLACEHOLDER]
    except SqlglotError:
        raise ProgrammingError("The SQL cannot be parsed.") from None
    if len(places) != len(parameters):
        raise ProgrammingError(f"The query has {len(places)} `?`, but {len(parameters)} parameters were given.")
    parts, last = [], 0
    for start, value in zip(places, parameters, strict=True):
        # A space on both sides: a prefix such as E would give the literal another meaning.
        parts += [sql[last:start], f" {literal_text(value)} "]
        last = start + 1
    return "".join([*parts, sql[last:]])


def literal_text(value: object) -> str:
    """The SQL literal of a value; :class:`DataError` for one that has none."""
    plain = value.item() if hasattr(value, "item") and not isinstance(value, str) else value  # a NumPy scalar
    match plain:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if plain else "FALSE"
        case int():
            return str(plain) if plain >= 0 else f"({plain})"
        case float() | Decimal() if isfinite(plain):
            text = format(Decimal(repr(plain)) if isinstance(plain, float) else plain, "f")
            return f"({text})" if text.startswith("-") else text
        case str() if "\0" not in plain:
            return quoted_text(plain)
        case datetime():
            return f"TIMESTAMP {quoted_text(plain.isoformat(sep=' '))}"
        case date():
            return f"DATE {quoted_text(plain.isoformat())}"
        case _:
            raise DataError(f"A parameter of type {type(plain).__name__} has no SQL form, or is not finite.")
