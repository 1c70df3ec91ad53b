"""One client connection: reads messages, hands them to the conversation, sends what comes of them.

Errors of a statement are sent at once and the connection goes on; errors of the protocol end it. In the extended
protocol, messages after an error are skipped until Sync.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from collections.abc import Awaitable, Callable

from sfumato.errors import NotSignedIn, SfumatoError
from sfumato.query.dbapi import DataError
from sfumato.server.postgres.backend import Backend
from sfumato.server.postgres.catalog_process import CatalogProcesses
from sfumato.server.postgres.channel import ClientChannel, TooLarge
from sfumato.server.postgres.conversation import Conversation
from sfumato.server.postgres.messages import (
    CancelRequest,
    MalformedMessage,
    error_response,
    message,
    notice_response,
    parse_bind,
    parse_execute,
    parse_parse,
    parse_target,
    text_argument,
)
from sfumato.server.postgres.parameters import bound_values
from sfumato.server.postgres.results import (
    Portal,
    StatementResult,
    complete,
    copy_lines,
    described,
    encoded_rows,
)
from sfumato.server.postgres.settings import REPORTED, Settings, startup_settings
from sfumato.server.postgres.sign_in import Refused, Tls, sign_in
from sfumato.server.postgres.sqlstates import SqlError, error_message, sqlstate
from sfumato.server.postgres.statement_kinds import Empty
from sfumato.server.postgres.statement_text import separate_numbers, split_statements
from sfumato.server.service import QueryService
from sfumato.server.workers import Workers

_log = logging.getLogger("sfumato.server")
_RUNNING = (b"Q", b"E")
_READY = (b"Q", b"S")
"""Messages after which the client waits until the server is ready."""
_FLUSH_AT = 65_536
_SIGN_IN_SECONDS = 30.0


class ClientConnection:
    """Serves one client until it leaves."""

    def __init__(
        self,
        channel: ClientChannel,
        *,
        service: QueryService,
        engines: CatalogProcesses,
        workers: Workers,
        tls: Tls | None,
        largest: int,
        process: int,
        secret: bytes,
        address: str,
        cancel: Callable[[CancelRequest], None],
        full: Callable[[str], bool],
    ) -> None:
        self._channel, self._service, self._engines = channel, service, engines
        self._workers, self._tls, self._largest = workers, tls, largest
        self._process, self._secret, self._cancel_other = process, secret, cancel
        self._address, self._full = address, full
        self.conversation: Conversation | None = None
        self._reported: dict[str, str] = {}
        self._skipping = self._busy = self._stopping = False
        self._operation = "none"
        self._handlers: dict[bytes, Callable[[bytes], Awaitable[None]]] = {
            b"Q": self._query, b"P": self._parse, b"B": self._bind, b"D": self._describe, b"E": self._execute,
            b"C": self._close, b"S": self._sync, b"H": self._flush, b"d": self._ignore, b"c": self._ignore,
            b"f": self._ignore,
        }  # fmt: skip

    async def serve(self) -> None:
        """Sign the client in and answer it; whatever goes wrong ends this connection and no other."""
        try:
            async with asyncio.timeout(_SIGN_IN_SECONDS):
                ready = await self._begin()
            if ready:
                await self._loop()
        except (ConnectionError, ssl.SSLError, TimeoutError, asyncio.IncompleteReadError):
            return  # the client has gone, or does not take part
        except Refused as refusal:
            _log.info("connection refused", extra={"facts": {"code": refusal.code}})
            await self._farewell(refusal.message)
        except MalformedMessage as failure:
            await self._fatal("08P01", f"protocol violation: {failure}")
        except TooLarge:
            await self._fatal("54000", f"a message is longer than {self._largest:,} bytes", "Send a shorter query.")
        except NotSignedIn:
            await self._fatal("28000", "the token is no longer valid", "Connect with another one.")
        finally:
            self._channel.close()

    @property
    def user(self) -> str:
        """Who has signed in; empty before."""
        return "" if self.conversation is None else self.conversation.backend.user

    @property
    def stranger_at(self) -> str:
        """The address of a client that has not signed in; empty afterwards."""
        return self._address if self.conversation is None else ""

    def stop(self) -> bool:
        """End the connection after the statement that runs; False if none does."""
        self._stopping = True
        return self._busy

    async def terminate(self) -> None:
        """Tell the client that the server stops."""
        await self._fatal("57P01", "terminating connection because the server stops")
        self._channel.close()

    async def _fatal(self, code: str, text: str, hint: str = "") -> None:
        await self._farewell(error_response(code=code, text=text, hint=hint, severity="FATAL"))

    async def _farewell(self, last: bytes) -> None:
        try:
            self._channel.write(last)
            await self._channel.flush()
        except (OSError, ssl.SSLError, TimeoutError):
            return

    async def _begin(self) -> bool:
        who = await sign_in(self._channel, self._service, self._tls)
        if isinstance(who, CancelRequest):
            self._cancel_other(who)
            return False
        if self._full(who.user):
            raise Refused("53300", "too many connections of this account", "Close some, or use a pool.")
        settings = Settings(who.user)
        try:
            settings.start(startup_settings(who.startup.parameters))
        except SqlError as wrong:
            raise Refused(wrong.code, wrong.text, wrong.hint) from None
        backend = Backend(
            service=self._service, engines=self._engines, user=who.user, token=who.token, dataset=who.dataset
        )
        self.conversation = Conversation(
            backend=backend,
            settings=settings,
            workers=self._workers,
            notify=self._notify,
            until_gone=self._channel.until_gone,
        )
        self._report()
        self._channel.write(message(b"K", struct.pack("!i", self._process) + self._secret))
        await self._ready()
        return True

    @property
    def _talk(self) -> Conversation:
        assert self.conversation is not None
        return self.conversation

    def _notify(self, text: str) -> None:
        self._channel.write(notice_response(text))

    def _report(self) -> None:
        """Tell the client the values of settings that changed."""
        for name in REPORTED:
            value = self._talk.settings.get(name)
            if self._reported.get(name) != value:
                self._reported[name] = value
                self._channel.write(message(b"S", f"{name}\0{value}\0".encode()))

    async def _ready(self) -> None:
        self._channel.write(message(b"Z", self._talk.status))
        await self._channel.flush()

    async def _loop(self) -> None:
        while True:
            kind, body = await self._channel.read_message(largest=self._largest, idle=None)
            if kind == b"X":
                return
            handler = self._handlers.get(kind)
            if handler is None:
                raise MalformedMessage("a message of an unknown kind")
            if self._skipping and kind != b"S":
                continue
            self._busy = True
            try:
                await handler(body)
                if kind in _RUNNING:
                    self._log("00000")  # before the client is told: no answer without its line
                if kind in _READY:
                    await self._ready()
            except NotSignedIn:
                raise
            except (SqlError, SfumatoError, DataError) as failure:
                await self._failed(failure, extended=kind != b"Q")
            except MalformedMessage:
                raise
            except RecursionError:
                await self._failed(SqlError("54001", "the query is nested too deeply"), extended=kind != b"Q")
            except (ConnectionError, TimeoutError, ssl.SSLError):
                raise
            except Exception:
                # The reason may depend on the data.
                await self._failed(SqlError("XX000", "the statement failed"), extended=kind != b"Q")
            finally:
                self._busy = False
            if self._stopping and kind in _READY:
                await self.terminate()
                return

    def _log(self, code: str) -> None:
        """One line for a statement, without its text: the kind of the statement, the user and the SQLSTATE."""
        facts = {"operation": self._operation, "user": self._talk.backend.user, "code": code}
        _log.info("statement", extra={"facts": facts})
        self._workers.metrics.count("postgres", self._operation)

    async def _failed(self, failure: SqlError | SfumatoError | DataError, *, extended: bool) -> None:
        self._talk.failed()
        told = SqlError("22023", str(failure)) if isinstance(failure, DataError) else failure
        self._log(sqlstate(told))
        self._channel.write(error_message(told, self._sql))
        if extended:
            self._skipping = True
            await self._channel.flush()  # a client may wait for it before it sends Sync
        else:
            await self._ready()

    _sql = ""
    """The text of the statement at hand, for positions in errors."""

    async def _query(self, body: bytes) -> None:
        """The simple protocol: all statements of a text, one after the other."""
        self._sql = text = separate_numbers(text_argument(body))
        statements = split_statements(text)
        if not statements:
            self._channel.write(message(b"I"))
        for one in statements:
            self._sql = one if len(statements) > 1 else text
            self._operation = "none"
            statement = await self._talk.read(one)
            self._operation = type(statement).__name__
            outcome = await self._talk.run(statement, ())
            if outcome.columns is not None and outcome.copy is None:
                self._channel.write(described(outcome.columns))
            await self._send(outcome, outcome.rows, ())
            self._channel.write(complete(outcome, len(outcome.rows)))
            self._report()
        self._talk.end_statements()

    async def _send(self, outcome: StatementResult, rows: object, formats: tuple[int, ...]) -> None:
        if outcome.columns is None:
            return
        assert isinstance(rows, list | tuple)
        parts = (
            encoded_rows(outcome.columns, rows, formats)
            if outcome.copy is None
            else copy_lines(outcome.copy, outcome.columns, rows)
        )
        for part in parts:
            self._channel.write(part)
            if self._channel.waiting > _FLUSH_AT:
                await self._channel.flush()

    async def _parse(self, body: bytes) -> None:
        parsed = parse_parse(body)
        self._sql = parsed.sql
        parts = split_statements(separate_numbers(parsed.sql))
        if len(parts) > 1:
            raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
        if not parsed.name:
            self._talk.prepared.pop("", None)
        await self._talk.prepare(parsed.name, parts[0] if parts else "", parsed.types)
        self._channel.write(message(b"1"))

    async def _bind(self, body: bytes) -> None:
        bind = parse_bind(body)
        prepared = self._talk.prepared.get(bind.statement)
        if prepared is None:
            raise SqlError("26000", f'prepared statement "{bind.statement[:80]}" does not exist')
        values = bound_values(bind, prepared.types)
        self._talk.open_portal(bind.portal, Portal(prepared=prepared, values=values, formats=bind.result_formats))
        self._channel.write(message(b"2"))

    def _portal(self, name: str) -> Portal:
        portal = self._talk.portals.get(name)
        if portal is None:
            raise SqlError("34000", f'portal "{name[:80]}" does not exist')
        return portal

    async def _describe(self, body: bytes) -> None:
        is_portal, name = parse_target(body)
        if is_portal:
            portal = self._portal(name)
            self._sql = portal.prepared.sql
            columns = await self._talk.columns(portal.prepared, portal.values)
            self._channel.write(described(columns, portal.formats))
            return
        prepared = self._talk.prepared.get(name)
        if prepared is None:
            raise SqlError("26000", f'prepared statement "{name[:80]}" does not exist')
        self._sql = prepared.sql
        columns = await self._talk.columns(prepared, None)
        oids = [kind.oid for kind in prepared.types]
        self._channel.write(message(b"t", struct.pack(f"!h{len(oids)}I", len(oids), *oids)))
        self._channel.write(described(columns))

    async def _execute(self, body: bytes) -> None:
        """Run a portal if it has not been run, and send as many of its rows as are asked for."""
        asked = parse_execute(body)
        portal = self._portal(asked.portal)
        self._sql = portal.prepared.sql
        if isinstance(portal.prepared.statement, Empty):
            self._channel.write(message(b"I"))
            return
        self._operation = type(portal.prepared.statement).__name__
        if portal.outcome is None:
            portal.outcome = await self._talk.run(portal.prepared.statement, portal.values)
        outcome = portal.outcome
        end = len(outcome.rows) if not asked.rows or outcome.copy else min(portal.sent + asked.rows, len(outcome.rows))
        rows = list(outcome.rows[portal.sent : end])
        await self._send(outcome, rows, portal.formats)
        portal.sent = end
        if end < len(outcome.rows):
            self._channel.write(message(b"s"))
        else:
            self._channel.write(complete(outcome, len(rows)))
        self._report()

    async def _close(self, body: bytes) -> None:
        is_portal, name = parse_target(body)
        if is_portal:
            self._talk.portals.pop(name, None)
        else:
            self._talk.prepared.pop(name, None)
        self._channel.write(message(b"3"))

    async def _sync(self, body: bytes) -> None:
        self._skipping = False
        self._talk.end_statements()

    async def _flush(self, body: bytes) -> None:
        await self._channel.flush()

    async def _ignore(self, body: bytes) -> None:
        """Parts of a COPY FROM that failed before it began."""
