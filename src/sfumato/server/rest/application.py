"""The HTTP application: REST operations behind Host check, security headers, limits and CSRF protection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato import __version__
from sfumato.server.rest import administration, questions, sign_in, status
from sfumato.server.rest.context import ServerContext
from sfumato.server.rest.errors import add_error_handlers
from sfumato.server.rest.guard import RequestGuard, RequestTime
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings
from sfumato.server.workers import Workers
from sfumato.web import BodyLimit, BrowserSession, CsrfCheck, HostCheck, SecurityHeaders, front_end, local_hosts

Hook = Callable[[], Awaitable[None]]
_ERROR = {
    "title": "Error",
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "fix"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "fix": {"type": "string"}},
        }
    },
}
_CREDENTIALS = {
    "token": {"type": "http", "scheme": "bearer", "description": "An API token."},
}


def create_application(
    service: QueryService,
    settings: ServerSettings,
    *,
    port: int | None = None,
    workers: Workers | None = None,
    started: Hook | None = None,
    stopped: Hook | None = None,
) -> FastAPI:
    """The application on a query service. ``started`` and ``stopped`` run with it, in its event loop."""
    context = ServerContext(service, settings, workers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if started is not None:
            await started()
        try:
            yield
        finally:
            await context.drop_waiting()
            if stopped is not None:
                await stopped()
            await asyncio.to_thread(context.workers.close)

    app = FastAPI(
        title="sfumato",
        version=__version__,
        summary="Private and audited answers to SQL queries.",
        openapi_url=None,  # nor are there pages of it, which would load scripts of another host
        lifespan=lifespan,
    )
    app.state.context = context
    for module in (questions, sign_in, administration, status):
        app.include_router(module.router)
    if settings.oidc is not None:
        from sfumato.server.rest.oidc import oidc_router

        app.include_router(oidc_router(settings.oidc))
    add_error_handlers(app)
    _describe(app)
    app.mount("/", front_end("server.html"))
    names = {*local_hosts(port or settings.port), f"{settings.reached}:{port or settings.port}", *settings.names}
    scheme = "https" if settings.secure else "http"
    origins = {f"{scheme}://{name}" for name in names}

    def session(identifier: str | None) -> BrowserSession | None:
        known = context.sessions.get(identifier)
        return None if known is None else BrowserSession(csrf=known.csrf, holder=known.user.name, _until=inf)

    checks = {"origins": origins, "cookie": context.cookie, "session": session}
    app.add_middleware(_SignInOrChecked, options=checks)
    app.add_middleware(RequestTime, seconds=settings.request_seconds)
    app.add_middleware(BodyLimit, most=settings.most_body)
    app.add_middleware(SecurityHeaders, secure=settings.secure)
    app.add_middleware(HostCheck, hosts=names)
    app.add_middleware(RequestGuard, count=context.workers.metrics.count)
    return app


class _SignInOrChecked:
    """CSRF protection. The form of a one-time link has no session yet: its origin is checked, not its token."""

    def __init__(self, app: ASGIApp, *, options: dict[str, Any]) -> None:
        self._checked = CsrfCheck(app, **options)
        self._sign_in = CsrfCheck(app, **{**options, "session": lambda _: None})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        signing_in = scope["type"] == "http" and str(scope["path"]).startswith(("/sign-in/", "/api/v1/sign-in"))
        await (self._sign_in if signing_in else self._checked)(scope, receive, send)


def _describe(app: FastAPI) -> None:
    """Add the shape of errors and the credentials to the OpenAPI document, which is written once for all strangers."""
    generate = app.openapi

    @cache
    def described() -> dict[str, Any]:
        document = generate()
        parts = document.setdefault("components", {})
        parts.setdefault("schemas", {})["Error"] = _ERROR
        parts["securitySchemes"] = _CREDENTIALS
        document["security"] = [{"token": []}]
        return document

    @cache
    def written() -> bytes:
        return json.dumps(described()).encode()

    app.openapi = described  # type: ignore[method-assign]

    @app.get("/api/v1/openapi.json", include_in_schema=False)
    async def document() -> Response:
        return Response(written(), media_type="application/json")


def openapi(folder: Path) -> str:
    """The OpenAPI document of a server without data, from which the types of the front end are generated."""
    app = create_application(QueryService.open(folder / "state"), ServerSettings())
    return json.dumps({**app.openapi(), "info": {"title": "sfumato", "version": "1"}}, indent=1, sort_keys=True)
