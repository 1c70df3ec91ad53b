"""Passwords: argon2id, lock-out after failed attempts, and the same work for unknown names.

An unknown name, an account without a password and a wrong password take the same hash computation and give the same
error, and names without an account are locked out as others are: neither message nor time tells which names exist.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from sfumato.errors import BadParameter, NotSignedIn, TooManyRequests
from sfumato.extras import missing_extra
from sfumato.ledger.ledger import Transaction
from sfumato.secret import digest
from sfumato.server.state import ServerState, later, now
from sfumato.server.users import User, Users, find_user

if TYPE_CHECKING:
    from argon2 import PasswordHasher

_SHORTEST, _LONGEST = 12, 1024
_TURNS = threading.BoundedSemaphore(2)
"""A computation takes 64 MiB: attempts from many addresses at the same moment wait for each other."""


class Passwords:
    """Passwords of a server's users."""

    def __init__(self, state: ServerState, *, failures: int = 5, lock_minutes: float = 15) -> None:
        self._state, self._failures, self._lock_minutes = state, failures, lock_minutes

    @cached_property
    def _hasher(self) -> PasswordHasher:
        try:
            from argon2 import PasswordHasher
        except ImportError:
            raise missing_extra("server", "argon2-cffi", needed_by="Signing in with a password") from None
        return PasswordHasher()  # argon2id with the parameters of RFC 9106 for constrained memory

    @cached_property
    def _nobody(self) -> str:
        """A hash that no password has, for names without one."""
        return self._hasher.hash(self._state.secret)

    def set(self, name: str, password: str) -> None:
        """Set the password of a user and end their browser sessions."""
        if not _SHORTEST <= len(password) <= _LONGEST:
            raise BadParameter(f"a password has {_SHORTEST} to {_LONGEST:,} characters.")
        if name in password.lower():
            raise BadParameter("a password must not contain the user name.")
        Users(self._state).get(name)
        hashed = self._hasher.hash(password.encode("utf-8", "surrogatepass"))
        with self._state.store.write() as transaction:
            transaction.query("UPDATE sfumato_server_users SET password = ? WHERE name = ?", hashed, name)
            transaction.query("DELETE FROM sfumato_server_sessions WHERE user_name = ?", name)

    def exists(self, name: str) -> bool:
        """Whether a user has a password."""
        with self._state.store.read() as transaction:
            rows = transaction.query("SELECT password FROM sfumato_server_users WHERE name = ?", name)
        return bool(rows and rows[0][0])

    def authenticate(self, name: str, password: str, *, address: str) -> User:
        """The user with this name and password.

        After too many failures the name is locked for some minutes, for the address that they came from: nobody
        locks somebody else out. Guesses from many addresses are bounded by the limit of each address.
        """
        from argon2.exceptions import Argon2Error, InvalidHashError

        key = digest(f"{name}\n{address}")
        with self._state.store.write() as transaction:
            failures, until = _lockout(transaction, key)
            user = find_user(transaction, name)
            rows = transaction.query("SELECT password FROM sfumato_server_users WHERE name = ?", name)
        if until > now():
            raise TooManyRequests(
                "Too many failed attempts to sign in with this name.", fix=f"Wait {self._lock_minutes:g} minutes."
            )
        stored = rows[0][0] if rows and rows[0][0] else self._nobody
        right = False
        with _TURNS, suppress(Argon2Error, InvalidHashError):
            right = bool(self._hasher.verify(stored, password.encode("utf-8", "surrogatepass")))
        if right and user is not None and user.active and stored != self._nobody:
            with self._state.store.write() as transaction:
                transaction.query("DELETE FROM sfumato_server_lockouts WHERE hash = ?", key)
            return user
        with self._state.store.write() as transaction:
            failures = _lockout(transaction, key)[0] + 1
            locked = later(minutes=self._lock_minutes) if failures >= self._failures else ""
            transaction.query("DELETE FROM sfumato_server_lockouts WHERE hash = ?", key)
            transaction.query(
                "INSERT INTO sfumato_server_lockouts (hash, failures, until) VALUES (?, ?, ?)",
                key, 0 if locked else failures, locked,
            )  # fmt: skip
        raise NotSignedIn("User name or password is wrong.")


def _lockout(transaction: Transaction, key: str) -> tuple[int, str]:
    rows = transaction.query("SELECT failures, until FROM sfumato_server_lockouts WHERE hash = ?", key)
    return (int(rows[0][0]), str(rows[0][1])) if rows else (0, "")
