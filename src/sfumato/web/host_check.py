"""Host check: refuse requests whose Host header names another host (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato.web.refusals import refuse


def local_hosts(port: int) -> frozenset[str]:
    """Host headers of a browser on the same machine.

    >>> sorted(local_hosts(8000))
    ['127.0.0.1:8000', '[::1]:8000', 'localhost:8000']
    """
    return frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))


class HostCheck:
    """Serve only requests whose one Host header is in ``hosts``; a page of another name cannot reach the service.

    A name that an attacker controls may resolve to 127.0.0.1. The browser then sends that name as the host.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).getlist("host")
        if len(given) != 1 or given[0].lower() not in self._hosts:
            await refuse(scope, receive, send, 421, "The request names another host.", "Open the address as printed.")
            return
        await self._app(scope, receive, send)
