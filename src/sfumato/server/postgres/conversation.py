"""The state of a signed-in connection: settings, transaction, spending limit, prepared statements and portals.

Only :meth:`Conversation.run` asks questions. Parsing, binding and describing read the text of a statement and the
public schema. A portal is run when rows are first fetched from it and never again: fetching page by page pays once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from sqlglot import exp

from sfumato.dp.loss import PrivacyMeasure
from sfumato.errors import AnswerFailed, Cancelled, NotComparable
from sfumato.query.plan.catalog import Catalog
from sfumato.query.results.answer import Answer
from sfumato.server.postgres.backend import Backend, Columns
from sfumato.server.postgres.catalog_sql import setting_changes
from sfumato.server.postgres.notices import answer_notice
from sfumato.server.postgres.parameters import cast_name, constants, parameter_types, sample_values
from sfumato.server.postgres.results import Portal, Prepared, StatementResult, text_outcome
from sfumato.server.postgres.settings import Settings
from sfumato.server.postgres.sqlstates import SqlError
from sfumato.server.postgres.statement_kinds import (
    CatalogStatement,
    Command,
    Copy,
    Declare,
    Empty,
    ExecuteStatement,
    Explain,
    Fetch,
    Prepare,
    QuestionStatement,
    SchemaStatement,
    SetStatement,
    Show,
    Statement,
)
from sfumato.server.postgres.statement_text import bind_numbered
from sfumato.server.postgres.statements import read_statement
from sfumato.server.postgres.type_mapping import BY_NAME, TEXT
from sfumato.server.workers import Workers

_MOST_PORTALS = 200
_MOST_PREPARED = 1_000
_MOST_TEXT = 2_000_000
"""Characters of all prepared statements of a connection."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class _Savepoint:
    """What a transaction goes back to."""

    name: str
    portals: frozenset[str]
    """Names of those that were open."""
    settings: dict[str, str]


@dataclass
class Conversation:
    """One client after it signed in."""

    backend: Backend
    settings: Settings
    workers: Workers
    notify: Callable[[str], None]
    """Sends a notice to the client."""
    until_gone: Callable[[], Coroutine[object, object, None]]
    """Waits until the client has closed the connection."""
    status: bytes = b"I"
    """As clients are told: idle, in a transaction, or in a failed one."""
    prepared: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    spent: Fraction = Fraction(0)
    """What this connection has paid; counted against ``sfumato.max_epsilon``."""
    last: Answer | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    _question: str = ""
    _known: tuple[str, Statement, Catalog] | None = None
    """The text that was read last."""
    _before: dict[str, str] = field(default_factory=dict)
    """Settings when the transaction began."""
    _savepoints: list[_Savepoint] = field(default_factory=list)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await self.workers.run(self.backend.user, partial(work, *arguments))

    async def read(self, sql: str) -> Statement:
        """Recognize a statement."""
        return (await self._in_thread(self._read, sql))[0]

    def _read(self, sql: str) -> tuple[Statement, Catalog]:
        """A statement, and the schema that it was read with. Drivers send a text twice: it is parsed once."""
        catalog = self.backend.catalog()  # checks token and grant each time
        if self._known is None or self._known[0] != sql or self._known[2] is not catalog:
            self._known = sql, read_statement(sql, catalog), catalog
        return self._known[1:]

    async def prepare(self, name: str, sql: str, stated: Sequence[int]) -> None:
        """Prepare a statement. Nothing is run."""
        if name and name in self.prepared:
            raise SqlError("42P05", f'prepared statement "{name}" already exists')
        if len(self.prepared) >= _MOST_PREPARED:
            raise SqlError(
                "53000", f"a connection has at most {_MOST_PREPARED:,} prepared statements", "DEALLOCATE some."
            )
        if len(sql) + sum(len(one.sql) for one in self.prepared.values()) > _MOST_TEXT:
            raise SqlError("53000", "the prepared statements of this connection are too long", "DEALLOCATE some.")

        def work() -> Prepared:
            statement, catalog = self._read(sql)
            return Prepared(statement=statement, types=parameter_types(_tree(statement), stated, catalog), sql=sql)

        self.prepared[name] = await self._in_thread(work)

    async def columns(self, prepared: Prepared, values: Sequence[Any] | None) -> Columns | None:
        """The columns of a statement, with example values for parameters that are not bound yet."""
        return await self._in_thread(self._columns, prepared, values)

    def _columns(self, prepared: Prepared, values: Sequence[object] | None) -> Columns | None:
        statement = prepared.statement
        match statement:
            case QuestionStatement():
                known = values
                if known is None:
                    known = sample_values(statement.tree, prepared.types, self.backend.catalog())
                return self.backend.columns(bind_numbered(statement.sql, known))
            case CatalogStatement():
                known = values or [None] * len(prepared.types)
                tree = statement.tree.copy()
                for call in [one for one in tree.find_all(exp.Anonymous) if one.name.lower() == "set_config"]:
                    call.replace(exp.cast(exp.Literal.string(""), "VARCHAR"))
                return self.backend.catalog_columns(replace(statement, tree=tree), known, self.settings)
            case Explain():
                return (("QUERY PLAN", TEXT),)
            case Show(name=name):
                return ((name, TEXT),)
            case ExecuteStatement(name=name):
                inner = self._prepared(name)
                return self._columns(inner, constants(statement.values, inner.types))
            case Fetch(name=name):
                portal = self._cursor(name)
                return self._columns(portal.prepared, portal.values)
            case SchemaStatement():
                return tuple((name, TEXT) for name in self.backend.schema_answer(statement.sql).columns)
        return None

    async def run(self, statement: Statement, values: Sequence[Any]) -> StatementResult:
        """Run a statement."""
        ending = isinstance(statement, Command) and statement.tag in ("ROLLBACK", "COMMIT", "ROLLBACK TO")
        if self.status == b"E" and not ending:
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        match statement:
            case QuestionStatement():
                return await self._ask(statement, values)
            case CatalogStatement():
                statement = self._configured(statement, values)
                result = await self._in_thread(self.backend.catalog_answer, statement, values, self.settings, self.last)
                return StatementResult(
                    tag="SELECT", columns=tuple(zip(result.names, result.types, strict=True)), rows=result.rows
                )
            case SchemaStatement():
                answer = await self._in_thread(self.backend.schema_answer, statement.sql)
                cells = [[cell.value for cell in row] for row in answer.rows]
                return StatementResult(tag="SELECT", columns=tuple((name, TEXT) for name in answer.columns), rows=cells)
            case Explain(question=question):
                self.workers.count_request(self.backend.user)
                sql = bind_numbered(question.sql, values)
                explanation = await self._in_thread(self.backend.explain, sql, self.settings)
                return text_outcome("QUERY PLAN", str(explanation).split("\n"), "EXPLAIN")
            case Copy(query=query):
                inner = await self.run(query, values)
                return StatementResult(tag="COPY", columns=inner.columns, rows=inner.rows, copy=statement)
            case Show(name=name):
                return self._show(name)
            case Declare():
                return self._declare(statement)
            case Fetch():
                return await self._fetch(statement)
            case Prepare():
                oids = [BY_NAME[cast_name(one)].oid for one in statement.types]
                await self.prepare(statement.name, statement.sql, oids)
                return StatementResult(tag="PREPARE")
            case ExecuteStatement():
                prepared = self._prepared(statement.name)
                return await self.run(prepared.statement, constants(statement.values, prepared.types))
            case SetStatement():
                return self._set(statement)
            case Command():
                return self._command(statement)
            case Empty():
                return StatementResult(tag="")

    def _show(self, name: str) -> StatementResult:
        if name.lower() == "all":
            rows = [(key, value, "") for key, value in sorted(self.settings.all().items())]
            return StatementResult(
                tag="SHOW", columns=(("name", TEXT), ("setting", TEXT), ("description", TEXT)), rows=rows
            )
        return text_outcome(name, [self.settings.get(name)], "SHOW")

    def _set(self, statement: SetStatement) -> StatementResult:
        before = self.settings.copy()
        self.settings.set(statement.name, statement.value)
        if statement.local and self.status == b"I":
            self.settings.restore(before)
            self.notify("SET LOCAL can only be used in transaction blocks")
        elif statement.local:
            self._local.setdefault(statement.name.lower(), before.get(statement.name.lower(), ""))
        return StatementResult(tag="RESET" if statement.value is None else "SET")

    def _configured(self, statement: CatalogStatement, values: Sequence[object]) -> CatalogStatement:
        """Carry out calls of ``set_config``; the statement then has their values."""
        tree = statement.tree.copy()
        for call, name, value, local in setting_changes(tree, values):
            self._set(SetStatement(name=name, value=value, local=local))
            call.replace(exp.alias_(exp.cast(exp.Literal.string(value), "VARCHAR"), "set_config")
                         if isinstance(call.parent, exp.Select) else exp.Literal.string(value))  # fmt: skip
        return replace(statement, tree=tree)

    async def _ask(self, statement: QuestionStatement, values: Sequence[object]) -> StatementResult:
        self.cancelled.clear()
        self.workers.count_request(self.backend.user)
        self.workers.check_computing(self.backend.user)
        async with self.workers.turn(self.backend.user):
            return await self._asked(statement, values)

    async def _asked(self, statement: QuestionStatement, values: Sequence[object]) -> StatementResult:
        sql = bind_numbered(statement.sql, values)
        limit = self.settings.number("max_epsilon")
        most = None if limit is None else max(Fraction(0), limit - self.spent)
        self._question = ""
        started = False

        def begun(question: str) -> bool:
            nonlocal started
            self._question, started = question, not self.cancelled.is_set()
            return started

        running: asyncio.Future[Any] = self.workers.start(
            self.backend.user, partial(self.backend.ask, sql, self.settings, most=most, begun=begun)
        )
        stop: asyncio.Future[Any] = asyncio.ensure_future(self.cancelled.wait())
        left: asyncio.Future[Any] = asyncio.ensure_future(self.until_gone())
        try:
            await asyncio.wait([running, stop, left], return_when=asyncio.FIRST_COMPLETED)
            if left.done() and not running.done():
                self.cancel()
            if not running.done():
                running.add_done_callback(_seen)
                raise Cancelled(
                    "The question was cancelled. What was charged before stays charged.",
                    fix="sfumato.budget shows what was charged; asked again, the question is not charged twice.",
                )
            answer, columns = running.result()
        except (AnswerFailed, Cancelled):
            if started:  # it may have been charged: count it, so that the limit holds
                self.spent += self.settings.number("epsilon") or (most or Fraction(0))
            raise
        finally:
            stop.cancel()
            left.cancel()
            await asyncio.wait([left])  # it reads from the client, and only one may
            self._question = ""
        self._count(answer)
        self.last = answer
        if not self.settings.quiet():
            self.notify(answer_notice(answer))
        return StatementResult(
            tag="SELECT", columns=columns, rows=[[cell.value for cell in row] for row in answer.rows]
        )

    def _count(self, answer: Answer) -> None:
        if answer.loss is None or answer.cached:
            return
        try:
            self.spent += answer.loss.to(PrivacyMeasure.EPSILON).size
        except NotComparable:
            return  # with a limit in epsilon the service refuses a cost in rho

    def cancel(self) -> None:
        """A client asked on another connection that the question of this one ends."""
        self.cancelled.set()
        if self._question:
            # Not in a worker: all of them may run questions.
            threading.Thread(target=self.backend.cancel, args=(self._question,), daemon=True).start()

    def _command(self, statement: Command) -> StatementResult:
        tag = statement.tag
        match tag:
            case "BEGIN" | "START TRANSACTION":
                if self.status != b"I":
                    self.notify("there is already a transaction in progress")
                else:
                    self.status, self._before = b"T", self.settings.copy()
            case "COMMIT" | "ROLLBACK":
                failed = self.status == b"E"
                if self.status == b"I":
                    self.notify("there is no transaction in progress")
                self._end(undo=failed or tag == "ROLLBACK")
                tag = "ROLLBACK" if failed else tag
            case "SAVEPOINT" | "RELEASE" | "ROLLBACK TO":
                self._savepoint(tag, statement.argument)
                tag = "ROLLBACK" if tag == "ROLLBACK TO" else tag
            case "DEALLOCATE":
                self._deallocate(statement.argument)
            case "DISCARD ALL":
                self._deallocate("ALL")
                self.portals.clear()
                self.settings.reset()
            case "CLOSE CURSOR":
                self._close_cursor(statement.argument)
            case "RESET ALL":
                self.settings.reset()
                tag = "RESET"
        return StatementResult(tag=tag)

    def _prepared(self, name: str) -> Prepared:
        prepared = self.prepared.get(name)
        if prepared is None:
            raise SqlError("26000", f'prepared statement "{name[:80]}" does not exist')
        return prepared

    def _close_cursor(self, name: str) -> None:
        if name.upper() == "ALL":
            self.portals.clear()
        elif self.portals.pop(name, None) is None:
            raise SqlError("34000", f'cursor "{name[:80]}" does not exist')

    def _declare(self, statement: Declare) -> StatementResult:
        """A named cursor. Its query is run when rows are first fetched, and never again."""
        if self.status == b"I" and not statement.hold:
            raise SqlError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        prepared = Prepared(statement=statement.query, types=(), sql="")
        portal = Portal(prepared=prepared, values=(), formats=(), hold=statement.hold, kept=self.status == b"I")
        self.open_portal(statement.name, portal)
        return StatementResult(tag="DECLARE CURSOR")

    def open_portal(self, name: str, portal: Portal) -> None:
        """Keep a portal under its name; the one without a name is replaced."""
        if name and name in self.portals:
            raise SqlError("42P03", f'cursor "{name[:80]}" already exists')
        if len(self.portals) >= _MOST_PORTALS:
            raise SqlError("53000", f"a connection has at most {_MOST_PORTALS:,} open portals", "Close some.")
        self.portals[name] = portal

    def end_statements(self) -> None:
        """What a client sent together has ended, and outside of a transaction its portals with it."""
        if self.status == b"I":
            self.portals = {name: portal for name, portal in self.portals.items() if portal.kept}

    def _cursor(self, name: str) -> Portal:
        portal = self.portals.get(name)
        if portal is None:
            raise SqlError("34000", f'cursor "{name[:80]}" does not exist')
        return portal

    async def _fetch(self, statement: Fetch) -> StatementResult:
        portal = self._cursor(statement.name)
        if portal.outcome is None:
            portal.outcome = await self.run(portal.prepared.statement, ())
        rows = portal.outcome.rows[portal.sent :]
        rows = rows if statement.count is None else rows[: statement.count]
        portal.sent += len(rows)
        return StatementResult(tag="FETCH", columns=portal.outcome.columns, rows=rows)

    def _end(self, *, undo: bool) -> None:
        """End the transaction. Settings go back to what they were; budget that was spent does not come back."""
        if self.status != b"I" and undo:
            self.settings.restore(self._before)
        elif self.status != b"I":
            self.settings.restore({**self.settings.copy(), **self._local})
        self._local.clear()
        self._savepoints.clear()
        for portal in self.portals.values():
            portal.kept = portal.kept or (portal.hold and not undo)
        self.status = b"I"
        self.end_statements()

    def _savepoint(self, tag: str, name: str) -> None:
        if self.status == b"I":
            raise SqlError("25P01", f"{tag} can only be used in transaction blocks")
        if tag == "SAVEPOINT":
            self._savepoints.append(
                _Savepoint(name=name, portals=frozenset(self.portals), settings=self.settings.copy())
            )
            return
        names = [one.name for one in self._savepoints]
        if name not in names:
            raise SqlError("3B001", f'savepoint "{name[:80]}" does not exist')
        place = len(names) - 1 - names[::-1].index(name)
        if tag == "ROLLBACK TO":
            there = self._savepoints[place]
            self.portals = {known: portal for known, portal in self.portals.items() if known in there.portals}
            self.settings.restore(there.settings)
        del self._savepoints[place + (tag == "ROLLBACK TO") :]
        self.status = b"T"

    def _deallocate(self, name: str) -> None:
        if name.upper() == "ALL":
            self.prepared.clear()
        elif self.prepared.pop(name, None) is None:
            raise SqlError("26000", f'prepared statement "{name[:80]}" does not exist')

    def failed(self) -> None:
        """A statement failed: its transaction has failed too."""
        if self.status == b"T":
            self.status = b"E"

    _local: dict[str, str] = field(default_factory=dict)
    """What settings go back to at the end of the transaction."""


def _tree(statement: Statement) -> object:
    match statement:
        case QuestionStatement() | CatalogStatement():
            return statement.tree
        case Explain(question=question):
            return question.tree
        case Copy(query=query):
            return query.tree
    return None


def _seen(done: asyncio.Future[Any]) -> None:
    """The result of a question whose client no longer waits; its answer is stored."""
    if not done.cancelled():
        done.exception()
