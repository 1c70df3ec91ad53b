"""Refusals of requests: one JSON shape, the same as for errors on the command line."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send


def refusal(status: int, message: str, fix: str = "") -> JSONResponse:
    """A response ``{"error": {"code", "message", "fix"}}`` for a request that is not served."""
    return JSONResponse({"error": {"code": "SFU-002", "message": message, "fix": fix}}, status_code=status)


async def refuse(scope: Scope, receive: Receive, send: Send, status: int, message: str, fix: str = "") -> None:
    """Answer a request with a refusal. A WebSocket is closed before it is accepted."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await refusal(status, message, fix)(scope, receive, send)
