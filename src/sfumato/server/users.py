"""Users and groups."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.errors import BadParameter, Conflict, NoSuchItem
from sfumato.ledger.ledger import Transaction
from sfumato.server.roles import AccountRole, Principal, Scope
from sfumato.server.state import ServerState, later, now

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def check_name(name: str, *, what: str) -> str:
    """The name, if it can be one: in the ledger, in a URL and as a PostgreSQL user it must read alike."""
    if not _NAME.fullmatch(name):
        raise BadParameter(
            f"a name of {what} has up to 63 lower-case letters, digits, dots, hyphens and underscores.",
            fix="It starts with a letter or a digit.",
        )
    return name


@dataclass(frozen=True, kw_only=True)
class User:
    """One account."""

    name: str
    roles: frozenset[AccountRole]
    active: bool
    groups: tuple[str, ...]
    created: str
    reset_at: str = ""
    """When somebody else last gave the user a credential, a one-time link or a token; empty if nobody did."""
    reset_by: str = ""

    @property
    def barred(self) -> bool:
        """Whether the user may not approve yet: whoever gave them a credential could act in their name for a day."""
        return self.reset_at > later(days=-1)

    def principal(self, scopes: Iterable[Scope] = tuple(Scope), *, token: str = "") -> Principal:
        """The user as the one who makes a request."""
        return Principal(name=self.name, roles=self.roles, scopes=frozenset(scopes), groups=self.groups, token=token)

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "roles": sorted(self.roles), "active": self.active, "groups": list(self.groups),
                "created": self.created}  # fmt: skip


class Users:
    """The users and groups of a server. Changes are entered in the ledger with who made them."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def add(self, name: str, *, roles: Iterable[AccountRole], by: str) -> User:
        """Add a user without a password and without tokens."""
        check_name(name, what="a user")
        given = frozenset(roles)
        if not given:
            raise BadParameter("a user needs at least one role.", fix=f"Roles: {', '.join(AccountRole)}.")
        with self._state.store.write() as transaction:
            if transaction.query("SELECT 1 FROM sfumato_server_users WHERE name = ?", name):
                raise Conflict(f"There is a user `{name}` already.")
            transaction.query(
                "INSERT INTO sfumato_server_users (name, roles, salt, active, created) VALUES (?, ?, ?, 1, ?)",
                name, ",".join(sorted(given)), secrets.token_hex(16), now(),
            )  # fmt: skip
        self._record("add user", by, user=name, roles=sorted(given))
        return self.get(name)

    def get(self, name: str) -> User:
        """A user by name."""
        with self._state.store.read() as transaction:
            user = find_user(transaction, name)
        if user is None:
            raise NoSuchItem(f"There is no user `{name}`.")
        return user

    def all(self) -> tuple[User, ...]:
        """All users, by name."""
        with self._state.store.read() as transaction:
            names = [row[0] for row in transaction.query("SELECT name FROM sfumato_server_users ORDER BY name")]
            return tuple(user for name in names if (user := find_user(transaction, name)) is not None)

    def set_roles(self, name: str, roles: Iterable[AccountRole], *, by: str) -> User:
        """Replace the roles of a user."""
        given = sorted(frozenset(roles))
        if not given:
            raise BadParameter("a user needs at least one role.", fix="Deactivate the user instead.")
        self.get(name)
        with self._state.store.write() as transaction:
            transaction.query("UPDATE sfumato_server_users SET roles = ? WHERE name = ?", ",".join(given), name)
        self._record("set roles", by, user=name, roles=given)
        return self.get(name)

    def set_active(self, name: str, active: bool, *, by: str) -> User:
        """Deactivate or reactivate a user. An inactive one cannot sign in; browser sessions end, charges stay."""
        self.get(name)
        with self._state.store.write() as transaction:
            transaction.query("UPDATE sfumato_server_users SET active = ? WHERE name = ?", int(active), name)
            transaction.query("DELETE FROM sfumato_server_sessions WHERE user_name = ?", name)
        self._record("activate user" if active else "deactivate user", by, user=name)
        return self.get(name)

    def reset(self, name: str, *, by: str) -> User:
        """Record that somebody gave the user a credential. The user is told, and does not approve for a day."""
        self.get(name)
        with self._state.store.write() as transaction:
            transaction.query(
                "UPDATE sfumato_server_users SET reset_at = ?, reset_by = ? WHERE name = ?", now(), by, name
            )
        self._record("reset credentials", by, user=name)
        return self.get(name)

    def add_group(self, name: str, *, by: str) -> None:
        """Add a group."""
        check_name(name, what="a group")
        with self._state.store.write() as transaction:
            if transaction.query("SELECT 1 FROM sfumato_server_groups WHERE name = ?", name):
                raise Conflict(f"There is a group `{name}` already.")
            transaction.query("INSERT INTO sfumato_server_groups (name, created) VALUES (?, ?)", name, now())
        self._record("add group", by, group=name)

    def groups(self) -> dict[str, tuple[str, ...]]:
        """All groups with their members."""
        with self._state.store.read() as transaction:
            names = [row[0] for row in transaction.query("SELECT name FROM sfumato_server_groups ORDER BY name")]
            members = transaction.query(
                "SELECT group_name, user_name FROM sfumato_server_members ORDER BY group_name, user_name"
            )
        return {name: tuple(user for group, user in members if group == name) for name in names}

    def set_member(self, group: str, user: str, member: bool, *, by: str) -> None:
        """Add a user to a group or remove them. Charges of the past stay with the group."""
        self.get(user)
        if group not in self.groups():
            raise NoSuchItem(f"There is no group `{group}`.")
        with self._state.store.write() as transaction:
            transaction.query("DELETE FROM sfumato_server_members WHERE group_name = ? AND user_name = ?", group, user)
            if member:
                transaction.query(
                    "INSERT INTO sfumato_server_members (group_name, user_name) VALUES (?, ?)", group, user
                )
        self._record("join group" if member else "leave group", by, user=user, group=group)

    def _record(self, what: str, by: str, **facts: object) -> None:
        self._state.ledger.record_event(json.dumps({"event": what, "by": by, **facts}, ensure_ascii=False))


def find_user(transaction: Transaction, name: str) -> User | None:
    """A user by name, or None."""
    rows = transaction.query(
        "SELECT roles, active, created, reset_at, reset_by FROM sfumato_server_users WHERE name = ?", name
    )
    if not rows:
        return None
    groups = transaction.query(
        "SELECT group_name FROM sfumato_server_members WHERE user_name = ? ORDER BY group_name", name
    )
    roles, active, created, reset_at, reset_by = rows[0]
    return User(
        name=name, roles=frozenset(map(AccountRole, roles.split(","))), active=bool(active),
        groups=tuple(row[0] for row in groups), created=created, reset_at=reset_at, reset_by=reset_by,
    )  # fmt: skip
