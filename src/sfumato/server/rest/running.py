"""Run a server: HTTP and PostgreSQL endpoints in one process, with a witness and a graceful end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from socket import socket
from typing import TYPE_CHECKING

from sfumato.errors import BadParameter
from sfumato.extras import missing_extra
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings
from sfumato.server.witness import Witness, witness_store

if TYPE_CHECKING:
    from sfumato.server.postgres.endpoint import PostgresEndpoint
    from sfumato.server.workers import Workers

_GRACE_SECONDS = 30
_MOST_CONNECTIONS = 2_000
"""HTTP connections; as many PostgreSQL connections are open beside them."""
_MOST_FILES = 8_192
_SWITCH_SECONDS = 0.001
"""A worker that plans gives way so soon: the event loop of both doors waits for it at every step of a request."""


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """Where a server listens."""

    service: QueryService
    web: str
    """The web address."""
    port: int
    postgres_host: str
    postgres_port: int | None
    stop: Callable[[], None]
    """Ends the server as a signal does."""


def run_server(
    service: QueryService,
    settings: ServerSettings,
    *,
    ready: Callable[[RunningServer], None],
    without_witness: str | None = None,
    by: str = "",
) -> None:
    """Serve until the process is told to end; requests that run are finished first.

    ``without_witness`` is the reason to begin a new witness for a ledger that had one, given by the operator ``by``.
    """
    try:
        import uvicorn

        from sfumato.server.rest.application import create_application
        from sfumato.server.rest.slow_clients import timed_protocol
        from sfumato.server.workers import Workers
        from sfumato.web import listening_socket
    except ImportError as failure:
        raise missing_extra("server", failure.name or "fastapi", needed_by="The server") from None
    if not settings.local and not settings.secure:
        raise BadParameter(
            "the server listens beyond this machine only with TLS.",
            fix="Give a certificate and its key, or `behind_proxy: true` if a proxy ends TLS.",
        )
    listener = listening_socket(settings.host, settings.port, fix="Choose another with --port.")
    port = int(listener.getsockname()[1])
    workers = Workers(settings)
    endpoint = _postgres(service, settings, workers)
    witness = service.witness = Witness(service.state, witness_store(service.state, settings.witness))
    witness.start(without=without_witness, by=by)

    doors: list[asyncio.Future[None]] = []

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket] | None = None) -> None:
            """Both doors close at once: neither takes questions while the other finishes its own."""
            app.state.context.stopping = True
            if endpoint is not None:
                doors.append(asyncio.ensure_future(endpoint.stop(grace=_GRACE_SECONDS)))
            await super().shutdown(sockets)

    def stop() -> None:
        server.should_exit = True

    async def started() -> None:
        if endpoint is not None:
            await endpoint.start()
        scheme = "https" if settings.secure else "http"
        names = *settings.names, f"{settings.reached}:{port}"
        host = settings.reached if settings.local else names[0].rpartition(":")[0] or names[0]
        ready(
            RunningServer(
                service=service,
                web=f"{scheme}://{names[0]}",
                port=port,
                postgres_host=host.strip("[]"),
                postgres_port=None if endpoint is None else endpoint.port,
                stop=stop,
            )
        )

    async def stopped() -> None:
        await asyncio.gather(*doors)
        service.interrupt_all()  # what has not finished by now
        await asyncio.to_thread(workers.close)
        await asyncio.to_thread(witness.stop)

    app = create_application(service, settings, port=port, workers=workers, started=started, stopped=stopped)
    config = uvicorn.Config(
        app, http=timed_protocol(settings.request_seconds), ws="none", lifespan="on", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_SECONDS, timeout_keep_alive=30,
        ssl_certfile=None if settings.certificate is None else str(settings.certificate),
        ssl_keyfile=None if settings.key is None else str(settings.key),
    )  # fmt: skip
    server = Server(config)
    _allow_files()
    sys.setswitchinterval(_SWITCH_SECONDS)
    server.run(sockets=[listener])


def _allow_files() -> None:
    """Let this process open as many files as both doors may have connections: the usual limit is 1,024."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < _MOST_FILES:
            most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(_MOST_FILES, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _postgres(service: QueryService, settings: ServerSettings, workers: Workers) -> PostgresEndpoint | None:
    if settings.postgres_port < 0:
        return None
    from sfumato.server.postgres.endpoint import PostgresEndpoint

    return PostgresEndpoint(
        service, host=settings.host, port=settings.postgres_port, certificate=settings.certificate, key=settings.key,
        workers=workers,
    )  # fmt: skip
