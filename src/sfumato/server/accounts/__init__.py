"""Accounts: users, groups, passwords, API tokens, browser sessions and one-time sign-in links."""

from sfumato.server.accounts.tokens import NewToken, ScramKey, ScramLogin, Token, Tokens
from sfumato.server.accounts.users import User, Users

__all__ = ["NewToken", "ScramKey", "ScramLogin", "Token", "Tokens", "User", "Users"]
