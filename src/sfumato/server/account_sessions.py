"""Browser sessions and one-time sign-in links, in the server's database: every process knows them.

Identifiers have 256 bits; only their hashes are stored.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sfumato.secret import digest
from sfumato.server.state import ServerState, later, now
from sfumato.server.tokens import signed_out
from sfumato.server.users import User, find_user


@dataclass(frozen=True, kw_only=True)
class AccountSession:
    """A signed-in browser."""

    user: User
    csrf: str
    """The token that requests which change something repeat in a header."""
    by_link: bool
    """Whether a one-time link opened it: its user may set a password without knowing the old one."""


class AccountSessions:
    """The browser sessions of a server."""

    def __init__(self, state: ServerState, *, hours: float = 12, link_minutes: float = 30) -> None:
        self._state, self._hours, self._link_minutes = state, hours, link_minutes

    def open(self, user: str, *, by_link: bool = False) -> tuple[str, AccountSession]:
        """A new session and the identifier for its cookie."""
        identifier, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        with self._state.store.write() as transaction:
            transaction.query("DELETE FROM sfumato_server_sessions WHERE expires <= ?", now())
            transaction.query(
                "INSERT INTO sfumato_server_sessions (hash, user_name, csrf, created, expires, by_link) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                digest(identifier), user, csrf, now(), later(hours=self._hours), int(by_link),
            )  # fmt: skip
        session = self.get(identifier)
        if session is None:
            raise signed_out()
        return identifier, session

    def get(self, identifier: str | None) -> AccountSession | None:
        """The session of a cookie; None if there is none, it has expired, or the user is not active."""
        if not identifier:
            return None
        with self._state.store.read() as transaction:
            rows = transaction.query(
                "SELECT user_name, csrf, by_link FROM sfumato_server_sessions WHERE hash = ? AND expires > ?",
                digest(identifier),
                now(),
            )
            user = find_user(transaction, rows[0][0]) if rows else None
        if user is None or not user.active:
            return None
        return AccountSession(user=user, csrf=rows[0][1], by_link=bool(rows[0][2]))

    def close(self, identifier: str) -> None:
        """End a session."""
        with self._state.store.write() as transaction:
            transaction.query("DELETE FROM sfumato_server_sessions WHERE hash = ?", digest(identifier))

    def make_link(self, user: str) -> str:
        """A secret that signs a user in once, within some minutes."""
        secret = secrets.token_urlsafe(32)
        with self._state.store.write() as transaction:
            transaction.query("DELETE FROM sfumato_server_links WHERE expires <= ?", now())
            transaction.query(
                "INSERT INTO sfumato_server_links (hash, user_name, expires) VALUES (?, ?, ?)",
                digest(secret), user, later(minutes=self._link_minutes),
            )  # fmt: skip
        return secret

    def redeem(self, secret: str) -> str:
        """The user of a one-time link, which is used up."""
        with self._state.store.write() as transaction:
            rows = transaction.query(
                "SELECT user_name FROM sfumato_server_links WHERE hash = ? AND expires > ?", digest(secret), now()
            )
            transaction.query("DELETE FROM sfumato_server_links WHERE hash = ?", digest(secret))
        if not rows:
            raise signed_out()
        return str(rows[0][0])
