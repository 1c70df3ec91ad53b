"""What REST operations share: the service, sign-in, limits, who makes a request, and the thread that it runs in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from inspect import iscoroutinefunction, signature
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, Response

from sfumato.errors import TooManyRequests
from sfumato.server.account_sessions import AccountSession, AccountSessions
from sfumato.server.passwords import Passwords
from sfumato.server.roles import Principal
from sfumato.server.service import QueryService
from sfumato.server.settings import ServerSettings
from sfumato.server.tokens import signed_out
from sfumato.server.workers import Workers, counted_address

COOKIE = "sfumato-session"
_MOST_WAITING = 100
"""Questions of one person that wait in the background."""
_MOST_STREAMS = 20
"""Streams of events that one person has open."""


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
        self.workers = workers or Workers(settings)
        self.stopping = False
        """Whether the process is told to end: streams of events end too."""
        self._waiting: dict[str, tuple[str, asyncio.Task[object]]] = {}
        """Questions that were begun in the background and have not ended: their analyst, and what answers them."""
        self._streams: Counter[str] = Counter()

    async def drop_waiting(self) -> None:
        """Cancel the questions in the background that wait for their turn."""
        for question, (_, task) in list(self._waiting.items()):
            if not self.service.runs(question):
                task.cancel()
                await asyncio.to_thread(self.service.drop, question)

    def check_waiting(self, person: str) -> None:
        """Refuse a person who has too many questions in the background."""
        if sum(name == person for name, _ in self._waiting.values()) >= _MOST_WAITING:
            raise TooManyRequests("Too many of your questions wait.", fix="Wait until they are answered.")

    def submit(self, person: str, question: str, work: Callable[[], object]) -> None:
        """Run a question in the background. Its errors are in the log of questions."""
        task = asyncio.ensure_future(self.workers.go_on(person, work))
        self._waiting[question] = person, task

        def ended(done: asyncio.Task[object]) -> None:
            self._waiting.pop(question, None)
            if not done.cancelled():
                done.exception()

        task.add_done_callback(ended)

    def check_streams(self, person: str) -> None:
        """Refuse a person who has too many streams of events open."""
        if self._streams[person] >= _MOST_STREAMS:
            raise TooManyRequests("Too many streams of events are open.", fix="Close some.")

    @contextmanager
    def stream(self, person: str) -> Iterator[None]:
        """Count a stream of events while it is open."""
        self._streams[person] += 1
        try:
            yield
        finally:
            self._streams[person] -= 1

    def limit_sign_in(self, request: Request) -> None:
        """Refuse too many attempts to sign in from one address."""
        self.workers.count_sign_in(self.address(request))

    def address(self, request: Request) -> str:
        """Where a request comes from: the last address of ``X-Forwarded-For`` that no declared proxy has.

        Of IPv6, the network of one household or host (/64): it has more addresses than any limit counts to.
        """
        address = request.client.host if request.client else ""
        forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        while self.settings.is_proxy(address) and forwarded and forwarded[-1].strip():
            address = forwarded.pop().strip()
        return counted_address(address)

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
    context.workers.count_request(principal.name)
    return principal


ContextOf = Annotated[ServerContext, Depends(_context)]
Who = Annotated[Principal, Depends(_who)]


class PersonRoute(APIRoute):
    """Runs an operation of a signed-in person in a worker, when it is their turn, and writes its JSON there.

    An operation that waits is a coroutine, and takes its turns itself.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, _in_turn(endpoint, options.get("status_code") or 200), **options)


def _in_turn(operation: Callable[..., Any], status: int) -> Callable[..., Any]:
    if iscoroutinefunction(operation) or "who" not in signature(operation).parameters:
        return operation

    def written(**given: object) -> Response:
        told = operation(**given)
        return told if isinstance(told, Response) else JSONResponse(told, status)

    @wraps(operation)
    async def taken(who: Principal, context: ServerContext, **given: object) -> Response:
        return await context.workers.run(who.name, partial(written, who=who, context=context, **given))

    return taken
