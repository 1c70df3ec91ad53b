"""Limit on the size of request bodies."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.web.refusals import refusal, refuse


class BodyLimit:
    """Refuse requests with a body of more than ``most`` bytes, whether or not they declare their length."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared) > self._most:
            await refuse(scope, receive, send, 413, f"The request is larger than {self._most:,} bytes.")
            return
        read, started, refused = 0, False, False

        async def counted() -> Message:
            nonlocal read, refused
            message = await receive()
            read += len(message.get("body", b""))
            if read <= self._most:
                return message
            if not started and not refused:
                await refusal(413, f"The request is larger than {self._most:,} bytes.")(scope, receive, send)
            refused = True
            return {"type": "http.disconnect"}

        async def noticed(message: Message) -> None:
            nonlocal started
            if not refused:  # what the service still says has no reader
                started = True
                await send(message)

        await self._app(scope, counted, noticed)
