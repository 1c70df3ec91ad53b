"""What REST operations share: the service, sign-in, limits, and who makes a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request

from sfumato.server.accounts.account_sessions import AccountSession, AccountSessions
from sfumato.server.accounts.passwords import Passwords
from sfumato.server.accounts.tokens import signed_out
from sfumato.server.metrics import Metrics
from sfumato.server.roles import Principal
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings
from sfumato.server.workers import Workers

COOKIE = "sfumato-session"


def cookie_name(*, secure: bool) -> str:
    """Name of the session's cookie. The prefix makes browsers refuse it from other hosts and over plain HTTP.

    >>> cookie_name(secure=True), cookie_name(secure=False)
    ('__Host-sfumato-session', 'sfumato-session')
    """
    return f"__Host-{COOKIE}" if secure else COOKIE


class ServerContext:
    """One server process."""

    def __init__(self, service: QueryService, settings: ServerSettings, workers: Workers | None = None) -> None:
        self.service, self.settings = service, settings
        self.passwords = Passwords(service.state, failures=settings.failures, lock_minutes=settings.lock_minutes)
        self.sessions = AccountSessions(service.state)
        self.cookie = cookie_name(secure=settings.secure)
        self._metrics = Metrics(service.state.ledger)
        self.workers = workers or Workers(settings)
        self._background: set[asyncio.Future[object]] = set()

    def close(self) -> None:
        """Wait for the questions that run; those that wait are not started."""
        self.workers.close()

    def count_request(self, operation: str) -> None:
        """Count a request for the metrics."""
        self._metrics.count(operation)

    def metrics_text(self) -> bytes:
        """The metrics of this process."""
        return self._metrics.text()

    def submit(self, person: str, work: Callable[[], object]) -> None:
        """Run a question in the background. Its errors are in the log of questions."""
        task = asyncio.ensure_future(self.workers.run(person, work))
        self._background.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[object]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            task.exception()

    def limit_sign_in(self, request: Request) -> None:
        """Refuse too many attempts to sign in from one address."""
        self.workers.count_sign_in(self.address(request))

    def address(self, request: Request) -> str:
        """Where a request comes from: the last address of ``X-Forwarded-For`` that no declared proxy has."""
        address = request.client.host if request.client else ""
        forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        while self.settings.is_proxy(address) and forwarded and forwarded[-1].strip():
            address = forwarded.pop().strip()
        return address[:100]

    def browser(self, request: Request) -> AccountSession | None:
        """The browser session of a request."""
        return self.sessions.get(request.cookies.get(self.cookie))


async def _context(request: Request) -> ServerContext:  # in the event loop: a function would take a thread
    context = request.app.state.context
    assert isinstance(context, ServerContext)
    return context


def _who(request: Request, context: Annotated[ServerContext, Depends(_context)]) -> Principal:
    """The holder of the token in the header, or of the session in the cookie. A token in the address is not read."""
    given = request.headers.get("authorization")
    if given is not None:
        kind, _, secret = given.partition(" ")
        if kind.lower() != "bearer":
            raise signed_out()
        principal = context.service.tokens.authenticate(secret.strip())
    else:
        session = context.browser(request)
        if session is None:
            raise signed_out()
        principal = session.user.principal()
    request.state.principal = principal.name
    return principal


ContextOf = Annotated[ServerContext, Depends(_context)]
Who = Annotated[Principal, Depends(_who)]
