"""What REST operations share: the service, sign-in, limits, and who makes a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from sfumato.errors import TooManyRequests
from sfumato.server.accounts.account_sessions import AccountSession, AccountSessions
from sfumato.server.accounts.passwords import Passwords
from sfumato.server.accounts.tokens import signed_out
from sfumato.server.heads import HEADER, check_head
from sfumato.server.metrics import Metrics
from sfumato.server.roles import Principal
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings

__all__ = ["COOKIE", "ContextOf", "ServerContext", "Who", "cookie_name"]

COOKIE = "sfumato-session"
Result = TypeVar("Result")


def cookie_name(*, secure: bool) -> str:
    """Name of the session's cookie. The prefix makes browsers refuse it from other hosts and over plain HTTP.

    >>> cookie_name(secure=True), cookie_name(secure=False)
    ('__Host-sfumato-session', 'sfumato-session')
    """
    return f"__Host-{COOKIE}" if secure else COOKIE


class ServerContext:
    """One server process."""

    def __init__(self, service: QueryService, settings: ServerSettings) -> None:
        self.service, self.settings = service, settings
        self.passwords = Passwords(service.state, failures=settings.failures, lock_minutes=settings.lock_minutes)
        self.sessions = AccountSessions(service.state)
        self.cookie = cookie_name(secure=settings.secure)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._ask_limit, self._sign_in_limit = parse(settings.ask_limit), parse(settings.sign_in_limit)
        self._metrics = Metrics(service.state.ledger)
        self._askers = ThreadPoolExecutor(settings.workers, thread_name_prefix="question")

    def close(self) -> None:
        """Wait for the questions that run; those that wait are not started."""
        self._askers.shutdown(wait=True, cancel_futures=True)

    def count_request(self, operation: str) -> None:
        """Count a request for the metrics."""
        self._metrics.count(operation)

    def metrics_text(self) -> bytes:
        """The metrics of this process."""
        return self._metrics.text()

    async def in_asker(self, work: Callable[[], Result]) -> Result:
        """Run a question in a thread of its own kind, so that many of them do not hold up anything else."""
        return await asyncio.get_running_loop().run_in_executor(self._askers, work)

    def submit(self, work: Callable[[], Any]) -> None:
        """Run a question in the background. Its errors are in the log of questions."""
        self._askers.submit(work)

    def limit_asking(self, principal: Principal) -> None:
        """Refuse too many questions of one analyst."""
        if not self._limiter.hit(self._ask_limit, "ask", principal.name):
            raise TooManyRequests("Too many questions in a short time.", fix="Wait, then ask again.")

    def limit_sign_in(self, request: Request) -> None:
        """Refuse too many attempts to sign in from one address."""
        address = request.client.host if request.client else ""
        if not self._limiter.hit(self._sign_in_limit, "sign-in", address):
            raise TooManyRequests("Too many attempts to sign in.", fix="Wait, then try again.")

    def browser(self, request: Request) -> AccountSession | None:
        """The browser session of a request."""
        return self.sessions.get(request.cookies.get(self.cookie))


def _context(request: Request) -> ServerContext:
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
    head = request.headers.get(HEADER)
    if head is not None:
        check_head(context.service.state, head)
    request.state.principal = principal.name
    return principal


ContextOf = Annotated[ServerContext, Depends(_context)]
Who = Annotated[Principal, Depends(_who)]
