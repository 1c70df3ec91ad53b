"""API tokens: 256 random bits after the prefix ``sfu_``, stored as SHA-256, with expiry, scopes and revocation.

Each token has a SCRAM-SHA-256 verifier (RFC 5802, RFC 7677) as well, so that a PostgreSQL client can sign in with the
user name and the token as password. The salt is that of the user: a server sends it before it knows which of the user's
tokens the client has. A token has 256 bits of entropy, so neither a slow hash nor many iterations would add anything.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.errors import BadParameter, NoSuchItem, NotSignedIn
from sfumato.secret import digest
from sfumato.server.roles import Principal, Scope
from sfumato.server.state import ServerState, later, now
from sfumato.server.users import find_user

PREFIX = "sfu_"
ITERATIONS = 4096
"""PostgreSQL's number of SCRAM iterations."""
_MOST_DAYS = 366
_LAST_USE_SECONDS = 60
"""``last_used`` is accurate to this many seconds, so that a request does not always write."""


def signed_out() -> NotSignedIn:
    """The one error for a missing, unknown, expired or revoked credential."""
    return NotSignedIn(
        "Sign in with a valid token, session or password.",
        fix="Make a token on the Account page; an administrator makes sign-in links.",
    )


@dataclass(frozen=True, kw_only=True)
class Token:
    """A token as it is listed: without its secret."""

    id: str
    user: str
    scopes: frozenset[Scope]
    label: str
    created: str
    expires: str
    last_used: str
    revoked: str

    def to_dict(self) -> dict[str, object]:
        return {"id": self.id, "user": self.user, "scopes": sorted(self.scopes), "label": self.label,
                "created": self.created, "expires": self.expires, "last_used": self.last_used,
                "revoked": self.revoked}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NewToken:
    """A new token with its secret, which is shown once."""

    token: Token
    secret: str

    def __repr__(self) -> str:
        return f"<NewToken {self.token.id}>"


@dataclass(frozen=True, kw_only=True)
class ScramKey:
    """SCRAM verifier of one token."""

    token: str
    stored_key: bytes
    server_key: bytes


@dataclass(frozen=True, kw_only=True)
class ScramLogin:
    """What a SCRAM exchange needs for a user name. An unknown name has a salt that looks like any other and no keys."""

    salt: bytes
    iterations: int
    keys: tuple[ScramKey, ...]


class Tokens:
    """The API tokens of a server."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def create(
        self, user: str, *, scopes: Iterable[Scope], days: float, label: str = "", made_by: str = ""
    ) -> NewToken:
        """Make a token; the secret is in the result and is not stored.

        ``made_by`` is the token that a request to make it was signed in with: it is not valid for longer than that one.
        """
        given = frozenset(scopes)
        if not given:
            raise BadParameter("a token needs at least one scope.", fix=f"Scopes: {', '.join(Scope)}.")
        if not 0 < days <= _MOST_DAYS:
            raise BadParameter(f"a token is valid for more than 0 and at most {_MOST_DAYS} days.")
        expires = later(days=days)
        if made_by:
            expires = min(expires, self.get(made_by).expires)
        secret, identifier = PREFIX + secrets.token_hex(32), secrets.token_hex(6)
        with self._state.store.write() as transaction:
            rows = transaction.query("SELECT salt FROM sfumato_server_users WHERE name = ?", user)
            if not rows:
                raise NoSuchItem(f"There is no user `{user}`.")
            stored_key, server_key = scram_keys(secret, bytes.fromhex(rows[0][0]))
            transaction.query(
                "INSERT INTO sfumato_server_tokens (id, user_name, hash, stored_key, server_key, scopes, label, "
                "created, expires, made_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                identifier, user, digest(secret), base64.b64encode(stored_key).decode(),
                base64.b64encode(server_key).decode(), ",".join(sorted(given)), label[:200], now(), expires,
                made_by,
            )  # fmt: skip
        return NewToken(token=self.get(identifier), secret=secret)

    def get(self, identifier: str) -> Token:
        """A token by its identifier."""
        for token in self._listed("id = ?", identifier):
            return token
        raise NoSuchItem("There is no such token.")

    def of(self, user: str) -> tuple[Token, ...]:
        """The tokens of a user."""
        return self._listed("user_name = ?", user)

    def revoke(self, identifier: str) -> Token:
        """End a token for good, and those that were made with it."""
        self.get(identifier)
        with self._state.store.write() as transaction:
            ending = [identifier]
            for one in ending:
                ending += [row[0] for row in transaction.query(
                    "SELECT id FROM sfumato_server_tokens WHERE made_by = ?", one)]  # fmt: skip
                transaction.query(
                    "UPDATE sfumato_server_tokens SET revoked = ? WHERE id = ? AND revoked = ''", now(), one
                )
        return self.get(identifier)

    def authenticate(self, secret: str) -> Principal:
        """Who holds a token; :class:`~sfumato.errors.NotSignedIn` for one that is not valid."""
        return self._principal("hash = ?", digest(secret))

    def authenticated(self, identifier: str) -> Principal:
        """Who holds the token of a completed SCRAM exchange; also the check that it is still valid."""
        return self._principal("id = ?", identifier)

    def scram_login(self, user: str) -> ScramLogin:
        """Salt and verifiers of a user name."""
        with self._state.store.read() as transaction:
            known = find_user(transaction, user)
            salt = transaction.query("SELECT salt FROM sfumato_server_users WHERE name = ?", user)
            rows = transaction.query(
                "SELECT id, stored_key, server_key FROM sfumato_server_tokens "
                "WHERE user_name = ? AND revoked = '' AND expires > ? ORDER BY id",
                user,
                now(),
            )
        if known is None or not known.active:
            mock = hmac.digest(self._state.secret, b"salt " + user.encode("utf-8", "surrogatepass"), "sha256")[:16]
            return ScramLogin(salt=mock, iterations=ITERATIONS, keys=())
        keys = tuple(
            ScramKey(token=row[0], stored_key=base64.b64decode(row[1]), server_key=base64.b64decode(row[2]))
            for row in rows
        )
        return ScramLogin(salt=bytes.fromhex(salt[0][0]), iterations=ITERATIONS, keys=keys)

    def _principal(self, where: str, value: str) -> Principal:
        with self._state.store.read() as transaction:
            rows = transaction.query(
                f"SELECT id, user_name, scopes, expires, revoked, last_used FROM sfumato_server_tokens WHERE {where}",
                value,
            )
            user = find_user(transaction, rows[0][1]) if rows else None
        if not rows or user is None or not user.active or rows[0][4] or rows[0][3] <= now():
            raise signed_out()
        identifier, _, scopes, _, _, last_used = rows[0]
        if last_used < later(seconds=-_LAST_USE_SECONDS):
            with self._state.store.write() as transaction:
                transaction.query("UPDATE sfumato_server_tokens SET last_used = ? WHERE id = ?", now(), identifier)
        return user.principal(map(Scope, scopes.split(",")), token=identifier)

    def _listed(self, where: str, value: str) -> tuple[Token, ...]:
        with self._state.store.read() as transaction:
            rows = transaction.query(
                "SELECT id, user_name, scopes, label, created, expires, last_used, revoked "
                f"FROM sfumato_server_tokens WHERE {where} ORDER BY created, id",
                value,
            )
        return tuple(
            Token(id=row[0], user=row[1], scopes=frozenset(map(Scope, row[2].split(","))), label=row[3],
                  created=row[4], expires=row[5], last_used=row[6], revoked=row[7])
            for row in rows
        )  # fmt: skip


def scram_keys(secret: str, salt: bytes, iterations: int = ITERATIONS) -> tuple[bytes, bytes]:
    """StoredKey and ServerKey of SCRAM-SHA-256."""
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256")
