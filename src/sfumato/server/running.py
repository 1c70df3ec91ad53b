"""Run a server: HTTP and PostgreSQL endpoints in one process, with a witness and a graceful end."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import BadParameter
from sfumato.extras import missing_extra
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings
from sfumato.server.state import ServerState
from sfumato.server.witness import Witness

if TYPE_CHECKING:
    from sfumato.server.postgres.endpoint import PostgresEndpoint

__all__ = ["RunningServer", "default_witness", "run_server", "witness_of"]

_GRACE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """Where a server listens."""

    service: QueryService
    web: str
    """The web address."""
    port: int
    postgres_port: int | None
    stop: Callable[[], None]
    """Ends the server as a signal does."""


def default_witness(state: ServerState) -> Path | None:
    """Where the witness is kept unless the settings say otherwise; None for a state in PostgreSQL."""
    return None if isinstance(state.where, str) else witness_of(state.where)


def witness_of(folder: Path) -> Path:
    """The witness of a state folder: in the user's own state folder, which a backup of the server does not hold."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return home / "sfumato" / f"witness-{name}.json"


def run_server(
    service: QueryService,
    settings: ServerSettings,
    *,
    ready: Callable[[RunningServer], None],
) -> None:
    """Serve until the process is told to end; requests that run are finished first."""
    try:
        import uvicorn

        from sfumato.server.rest.application import create_application
        from sfumato.server.slow_clients import timed_protocol
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
    endpoint = _postgres(service, settings)
    path = settings.witness or default_witness(service.state)
    witness = None if path is None else Witness(path, service.state.ledger)
    if witness is not None:
        witness.start()

    def stop() -> None:
        server.should_exit = True

    async def started() -> None:
        if endpoint is not None:
            await endpoint.start()
        scheme = "https" if settings.secure else "http"
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        ready(
            RunningServer(
                service=service,
                web=f"{scheme}://{host}:{port}",
                port=port,
                postgres_port=None if endpoint is None else endpoint.port,
                stop=stop,
            )
        )

    async def stopped() -> None:
        if endpoint is not None:
            await endpoint.stop()
        if witness is not None:
            await asyncio.to_thread(witness.stop)

    app = create_application(service, settings, port=port, started=started, stopped=stopped)
    config = uvicorn.Config(
        app, http=timed_protocol(settings.request_seconds), ws="none", lifespan="on", log_config=None, access_log=False,
        server_header=False, proxy_headers=False, timeout_graceful_shutdown=_GRACE_SECONDS, timeout_keep_alive=30,
        ssl_certfile=None if settings.certificate is None else str(settings.certificate),
        ssl_keyfile=None if settings.key is None else str(settings.key),
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.run(sockets=[listener])


def _postgres(service: QueryService, settings: ServerSettings) -> PostgresEndpoint | None:
    if settings.postgres_port < 0:
        return None
    from sfumato.server.postgres.endpoint import PostgresEndpoint

    return PostgresEndpoint(
        service, host=settings.host, port=settings.postgres_port, certificate=settings.certificate, key=settings.key
    )
