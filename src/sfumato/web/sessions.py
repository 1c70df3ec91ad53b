"""One-time sign-in tokens and browser sessions."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sfumato.secret import digest


class OneTimeTokens:
    """Sign-in tokens of 256 bits that work once and for a limited time. Only their hashes are kept.

    >>> tokens = OneTimeTokens()
    >>> token = tokens.issue()
    >>> tokens.redeem(token), tokens.redeem(token)
    (True, False)
    """

    def __init__(self, *, seconds: float = 900.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._valid_until: dict[str, float] = {}
        self._lock = threading.Lock()

    def issue(self) -> str:
        """A new token."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            now = self._clock()
            self._valid_until = {key: until for key, until in self._valid_until.items() if until > now}
            self._valid_until[digest(token)] = now + self._seconds
        return token

    def redeem(self, token: str) -> bool:
        """Whether the token is valid; it is not afterwards. Looked up by hash, so the time tells nothing about it."""
        with self._lock:
            until = self._valid_until.pop(digest(token), None)
        return until is not None and self._clock() < until


@dataclass(frozen=True, kw_only=True)
class BrowserSession:
    """A signed-in browser."""

    csrf: str
    """The token that requests which change something repeat in the header ``X-CSRF-Token``."""
    holder: Any = None
    """Who signed in; the service decides what that is."""
    _until: float = field(repr=False)


class BrowserSessions:
    """Browser sessions in memory, found by the hash of the identifier in the cookie. A restart ends them."""

    def __init__(self, *, seconds: float = 12 * 3600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._open: dict[str, BrowserSession] = {}
        self._lock = threading.Lock()

    def open(self, holder: Any = None) -> tuple[str, BrowserSession]:
        """A new session and the identifier for its cookie."""
        identifier = secrets.token_urlsafe(32)
        now = self._clock()
        session = BrowserSession(csrf=secrets.token_urlsafe(32), holder=holder, _until=now + self._seconds)
        with self._lock:
            self._open = {key: kept for key, kept in self._open.items() if kept._until > now}
            self._open[digest(identifier)] = session
        return identifier, session

    def get(self, identifier: str | None) -> BrowserSession | None:
        """The session of a cookie, or None if there is none or it has expired."""
        session = self._open.get(digest(identifier)) if identifier else None
        return session if session is not None and self._clock() < session._until else None

    def close(self, identifier: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(digest(identifier), None)


def session_cookie(*, secure: bool = False) -> dict[str, Any]:
    """Arguments of ``Response.set_cookie`` for a session: not readable by scripts, not sent by other sites."""
    return {"httponly": True, "samesite": "strict", "secure": secure, "path": "/"}
