"""The HTTP service of the app: routes, sign-in and security around one workspace."""

from __future__ import annotations

import getpass
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from starlette.datastructures import Headers, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato import __version__
from sfumato.app.ask_routes import ask_routes
from sfumato.app.data_routes import data_routes
from sfumato.app.documents import AppState, JobStatus, SignIn
from sfumato.app.recipe_routes import recipe_routes, recipe_state
from sfumato.app.run_routes import run_routes
from sfumato.app.runs import current_run
from sfumato.app.workspace import AppWorkspace
from sfumato.errors import SfumatoError
from sfumato.web import (
    BodyLimit,
    BrowserSessions,
    CsrfCheck,
    HostCheck,
    OneTimeTokens,
    SecurityHeaders,
    front_end,
    local_hosts,
    session_cookie,
)
from sfumato.web.refusals import refusal, refuse

_ROUTES = (recipe_routes, data_routes, run_routes, ask_routes)
_MOST_BYTES = 4_000_000
_OPEN = frozenset({"/api/sign-in"})
_OPENED_BY_BROWSERS = frozenset({"/report/internal", "/report/external", "/api/package", "/api/ask/told/page"})
"""Pages and downloads that are opened by address, with a ticket."""


class _SignedIn:
    """Refuse requests for data without a session and its second secret; pages and scripts themselves hold no data.

    Browsers send a cookie of 127.0.0.1 to every port of the machine, so a server that another user runs there may see
    it. The second secret is returned once, when signing in, and kept by the page in a storage that belongs to this port
    alone. It comes in the header ``X-CSRF-Token``, with requests that read too. What the browser opens without a
    script, a report or a download, comes with a one-time ticket instead.
    """

    def __init__(self, app: ASGIApp, *, cookie: str, sessions: BrowserSessions, tickets: OneTimeTokens) -> None:
        self._app, self._cookie, self._sessions, self._tickets = app, cookie, sessions, tickets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(("/api/", "/report/")) and scope["path"] not in _OPEN:
            headers = Headers(scope=scope)
            session = self._sessions.get(cookie_parser(headers.get("cookie", "")).get(self._cookie))
            secret = headers.get("x-csrf-token", "")
            ticket = QueryParams(scope.get("query_string", b"")).get("ticket", "")
            knows = session is not None and hmac.compare_digest(secret.encode(), session.csrf.encode())
            opens = scope["method"] == "GET" and scope["path"] in _OPENED_BY_BROWSERS
            if session is None or not (knows or (opens and self._tickets.redeem(ticket))):
                fix = "Open the link that `sfumato app` printed, or start it again."
                await refuse(scope, receive, send, 401, "This browser is not signed in.", fix)
                return
        await self._app(scope, receive, send)


def create_app(
    workspace: AppWorkspace,
    *,
    port: int,
    tokens: OneTimeTokens,
    signed_in: Callable[[], None] = lambda: None,
) -> ASGIApp:
    """The app as an ASGI application for 127.0.0.1 at ``port``. ``signed_in`` is called when a token was used."""
    sessions, tickets = BrowserSessions(), OneTimeTokens(seconds=60)
    cookie = f"sfumato_{port}"

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        workspace.close()

    app = FastAPI(title="sfumato app", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)

    @app.exception_handler(SfumatoError)
    def refused(_: Request, error: SfumatoError) -> JSONResponse:
        return JSONResponse({"error": error.to_dict()["error"]}, status_code=409 if error.facts.get("stale") else 400)

    @app.exception_handler(Exception)
    def failed(_: Request, error: Exception) -> JSONResponse:
        message = f"Internal error ({type(error).__name__}). Its details may contain values of your data."
        return refusal(500, message, "Reload the page. The command line shows more with SFUMATO_DEBUG=1.")

    @app.post("/api/sign-in")
    def sign_in(request: SignIn) -> Response:
        """Exchange the one-time token of the printed link for a session."""
        if not tokens.redeem(request.token):
            return refusal(403, "This link was used already or has expired.", "Use the newest link in the terminal.")
        identifier, session = sessions.open()
        response = JSONResponse({"csrf": session.csrf})
        response.set_cookie(cookie, identifier, **session_cookie())
        signed_in()
        return response

    @app.post("/api/ticket")
    def ticket() -> dict[str, str]:
        """A ticket for one page or download that the browser opens by its address."""
        return {"ticket": tickets.issue()}

    app.include_router(_state_routes(workspace))
    for routes in _ROUTES:
        app.include_router(routes(workspace))
    app.mount("/", front_end("index.html"))
    origins = [f"http://{host}" for host in local_hosts(port)]
    secured: ASGIApp = _SignedIn(app, cookie=cookie, sessions=sessions, tickets=tickets)
    secured = CsrfCheck(secured, origins=origins, cookie=cookie, session=sessions.get)
    secured = BodyLimit(secured, most=_MOST_BYTES)
    secured = SecurityHeaders(secured)
    return HostCheck(secured, hosts=local_hosts(port))


def _state_routes(workspace: AppWorkspace) -> APIRouter:
    """The route of everything that the frame of the pages shows."""
    router = APIRouter()

    @router.get("/api/state")
    def state() -> AppState:
        project = workspace.project
        run = current_run(project.folder) if project is not None else None
        return AppState(
            sfumato=__version__,
            project=project.name if project is not None else None,
            recipe=recipe_state(project) if project is not None else None,
            jobs=[JobStatus(**job) for job in workspace.jobs.to_list()],
            profiled=project is not None and (project.folder / "profile.json").is_file(),
            run=run.at if run is not None else None,
            study=project is not None and (project.folder / "study.json").is_file(),
            user=getpass.getuser(),
        )

    return router


def openapi(folder: Path) -> str:
    """The OpenAPI document, from which the types of the front end are generated."""
    app = FastAPI(title="sfumato app", version="1")
    workspace = AppWorkspace(folder)
    for routes in _ROUTES:
        app.include_router(routes(workspace))
    app.include_router(_state_routes(workspace))
    return json.dumps(app.openapi(), indent=1, sort_keys=True)
