"""The outermost layers: one log line per request without values, no traceback, and a time limit for requests."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.web.refusals import refuse

_log = logging.getLogger("sfumato.server")


class RequestGuard:
    """Log each request by its operation and status, and let no error out: a traceback could show a value.

    Paths, queries, headers and bodies are not logged: they may hold a one-time link, a token or a literal.
    """

    def __init__(self, app: ASGIApp, *, count: Callable[[str, str], None]) -> None:
        self._app, self._count = app, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def noticed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noticed)
        except Exception as error:
            _log.error("request failed", extra={"facts": {"error": type(error).__name__}})
            if not status:
                await refuse(scope, receive, noticed, 500, "Internal error.")
        route = scope.get("route")
        operation = str(getattr(route, "operation_id", None) or "none")
        self._count("rest", operation)
        facts = {
            "request": secrets.token_hex(6), "operation": operation, "method": scope["method"], "status": status,
            "user": scope.get("state", {}).get("principal", ""),
        }  # fmt: skip
        _log.info("request", extra={"facts": facts})


class RequestTime:
    """Refuse a client that takes too long to send its body."""

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        until, complete, late = loop.time() + self._seconds, False, False

        async def timed() -> Message:
            nonlocal complete, late
            if complete:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                late = True
                raise
            complete = not message.get("more_body", False)
            return message

        async def closing(message: Message) -> None:
            if late and message["type"] == "http.response.start":  # the rest of the body is not waited for
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        try:
            await self._app(scope, timed, closing)
        except TimeoutError:
            await refuse(scope, receive, closing, 408, "The request took too long to arrive.")
