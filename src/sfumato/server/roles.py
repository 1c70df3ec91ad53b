"""Roles, scopes and permissions: who may do what. What is not listed is denied."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sfumato.errors import AccessDenied


class AccountRole(StrEnum):
    """What an account is for. An account may have several roles."""

    ADMINISTRATOR = "administrator"
    """Runs the server: users and groups."""
    OWNER = "owner"
    """Registers data sets, grants access, sets budgets."""
    ANALYST = "analyst"
    """Asks questions."""
    AUDITOR = "auditor"
    """Reads everything except data, changes nothing."""


class Scope(StrEnum):
    """What a token may be used for, within the roles of its holder."""

    ASK = "ask"
    """Explain and ask questions, read the schema and the holder's own budget."""
    READ = "read"
    """Read accounts, data sets, budgets, questions and the ledger."""
    MANAGE = "manage"
    """Change accounts, data sets and budgets."""


class Action(StrEnum):
    """Something that a request does, with the roles that may do it and the scope that a token needs."""

    roles: frozenset[AccountRole]
    scope: Scope

    def __new__(cls, name: str, scope: Scope, *roles: AccountRole) -> Action:
        action = str.__new__(cls, name)
        action._value_ = name
        action.scope, action.roles = scope, frozenset(roles)
        return action

    ASK = "ask", Scope.ASK, AccountRole.ANALYST
    OWN_BUDGET = "read own budget", Scope.ASK, AccountRole.ANALYST
    REQUEST_BUDGET = "request budget", Scope.ASK, AccountRole.ANALYST
    SCHEMA = "read a schema", Scope.ASK, AccountRole.ANALYST, AccountRole.OWNER, AccountRole.AUDITOR
    READ_DATASETS = "read data sets", Scope.READ, AccountRole.OWNER, AccountRole.AUDITOR, AccountRole.ADMINISTRATOR
    READ_USERS = "read users", Scope.READ, AccountRole.ADMINISTRATOR, AccountRole.OWNER, AccountRole.AUDITOR
    READ_LEDGER = "read the ledger", Scope.READ, AccountRole.OWNER, AccountRole.AUDITOR
    READ_QUESTIONS = "read all questions", Scope.READ, AccountRole.OWNER, AccountRole.AUDITOR
    READ_METRICS = "read metrics", Scope.READ, AccountRole.ADMINISTRATOR, AccountRole.AUDITOR
    MANAGE_USERS = "manage users", Scope.MANAGE, AccountRole.ADMINISTRATOR
    MANAGE_DATASETS = "manage data sets", Scope.MANAGE, AccountRole.OWNER
    MANAGE_BUDGETS = "manage budgets", Scope.MANAGE, AccountRole.OWNER
    APPROVE_BUDGET = "approve budget requests", Scope.MANAGE, AccountRole.OWNER, AccountRole.ADMINISTRATOR
    OWN_TOKENS = "manage own tokens", Scope.MANAGE, *AccountRole


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Who makes a request: an account that was authenticated."""

    name: str
    roles: frozenset[AccountRole]
    scopes: frozenset[Scope] = frozenset(Scope)
    groups: tuple[str, ...] = ()
    """Names of the groups, sorted."""
    token: str = ""
    """The identifier of the token that was used; empty for a browser session."""

    @property
    def accounts(self) -> tuple[str, ...]:
        """Names in the ledger whose grants apply: the account and its groups."""
        return self.name, *(f"@{group}" for group in self.groups)

    def may(self, action: Action) -> bool:
        """Whether the roles and the scopes allow an action."""
        return bool(self.roles & action.roles) and action.scope in self.scopes


def require(principal: Principal, action: Action) -> None:
    """Refuse an action that the principal's roles or scopes do not allow."""
    if not principal.may(action):
        raise AccessDenied(
            f"This account or token may not {action}.",
            fix="Ask an administrator for the role.",
        )
