"""The PostgreSQL endpoint: accepts connections and serves each of them."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import BadParameter
from sfumato.server.postgres.catalog_process import CatalogProcesses
from sfumato.server.postgres.certificates import end_point_binding, tls_context
from sfumato.server.postgres.channel import ClientChannel
from sfumato.server.postgres.connection import ClientConnection
from sfumato.server.postgres.messages import CancelRequest, error_response
from sfumato.server.postgres.sign_in import Tls
from sfumato.server.service import QueryService
from sfumato.server.workers import Workers, counted_address
from sfumato.web.listening import listening_socket

_SHARE = 4


@dataclass(frozen=True, kw_only=True)
class EndpointLimits:
    """What one client, and all of them together, may take."""

    connections: int = 2_000
    """One person has a quarter of them, and so have the clients of one address that have not signed in."""
    message_bytes: int = 1_000_000
    """A message that a client announces to be longer ends its connection; nothing of it is read."""
    stall_seconds: float = 20.0
    """A message that has begun must be complete within this time, and a client must take what it is sent."""


class PostgresEndpoint:
    """Serves the data sets of a query service to PostgreSQL clients."""

    def __init__(
        self,
        service: QueryService,
        *,
        host: str = "127.0.0.1",
        port: int = 5432,
        certificate: Path | None = None,
        key: Path | None = None,
        limits: EndpointLimits | None = None,
        workers: Workers | None = None,
    ) -> None:
        if (certificate is None) != (key is None):
            raise BadParameter("TLS needs a certificate and its key.", fix="Give both files.")
        if certificate is None and not _is_loopback(host):
            raise BadParameter(
                "the PostgreSQL endpoint listens beyond this machine only with TLS.",
                fix="Give a certificate and its key, or bind it to 127.0.0.1.",
            )
        self._service = service
        self._limits = limits or EndpointLimits()
        self._tls = (
            None
            if certificate is None or key is None
            else Tls(context=tls_context(certificate, key), binding=end_point_binding(certificate))
        )
        self._socket = listening_socket(host, port, fix="Choose another PostgreSQL port, or -1 for none.")
        self._own_workers = workers is None
        self._workers = workers or Workers()
        self._workers.metrics.connections.set_function(lambda: len(self._open))
        self._engines = CatalogProcesses(most=2 * self._workers.each)  # one person does not take all
        self._open: dict[int, tuple[bytes, ClientConnection, asyncio.Task[None]]] = {}
        self._next = int.from_bytes(os.urandom(2), "big")
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, sock=self._socket, backlog=512, limit=16_384)

    async def stop(self, *, grace: float = 25.0) -> None:
        """Take no new connections, tell all clients, and let statements that run finish within some seconds."""
        if self._server is not None:
            self._server.close()
        connections = list(self._open.values())
        finishing = [task for _, connection, task in connections if connection.stop()]
        idle = [(connection, task) for _, connection, task in connections if task not in finishing]
        await asyncio.gather(*(connection.terminate() for connection, _ in idle))
        for _, task in idle:
            task.cancel()
        if finishing:
            _, late = await asyncio.wait(finishing, timeout=grace)
            for task in late:
                task.cancel()
        if connections:
            await asyncio.wait([task for _, _, task in connections], timeout=5)
        if self._own_workers:
            await asyncio.to_thread(self._workers.close)
        await asyncio.to_thread(self._engines.close)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = counted_address(str((writer.get_extra_info("peername") or ("",))[0]))
        if len(self._open) >= self._limits.connections or self._full(lambda one: one.stranger_at == address):
            writer.write(error_response(code="53300", text="too many connections", severity="FATAL"))
            writer.close()
            return
        self._next = self._next % 0x7FFFFFFF + 1
        process, secret = self._next, os.urandom(4)
        connection = ClientConnection(
            ClientChannel(reader, writer, stall=self._limits.stall_seconds), service=self._service,
            engines=self._engines, workers=self._workers, tls=self._tls, largest=self._limits.message_bytes,
            process=process, secret=secret, address=address, cancel=self._cancel, full=self._full_for,
        )  # fmt: skip
        task = asyncio.current_task()
        assert task is not None
        self._open[process] = secret, connection, task
        try:
            await connection.serve()
        except asyncio.CancelledError:
            return  # the endpoint stops, and the client was told
        finally:
            del self._open[process]

    def _full(self, counted: Callable[[ClientConnection], bool]) -> bool:
        """Whether those that are counted have all the connections that they may have."""
        return sum(counted(one) for _, one, _ in self._open.values()) >= max(1, self._limits.connections // _SHARE)

    def _full_for(self, user: str) -> bool:
        return self._full(lambda one: one.user == user)

    def _cancel(self, request: CancelRequest) -> None:
        """Cancel the question of the connection whose key was given; a wrong key does nothing and is not told."""
        known = self._open.get(request.process)
        if known is not None and hmac.compare_digest(known[0], request.secret) and known[1].conversation is not None:
            known[1].conversation.cancel()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
