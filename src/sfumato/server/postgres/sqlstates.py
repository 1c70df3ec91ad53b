"""SQLSTATE codes of refusals and errors, so that clients and drivers know what kind of failure it is."""

from __future__ import annotations

from sfumato.errors import (
    AccessDenied,
    AnswerDenied,
    AnswerFailed,
    BadParameter,
    Cancelled,
    Conflict,
    MetadataMissing,
    NoSuchItem,
    NotSignedIn,
    OverBudget,
    QueryRefused,
    SfumatoError,
    TooManyRequests,
    UnknownBudget,
)
from sfumato.server.postgres.messages import error_response

_CODES: tuple[tuple[type[SfumatoError], str], ...] = (
    (OverBudget, "53400"),  # configuration_limit_exceeded
    (UnknownBudget, "53400"),
    (QueryRefused, "0A000"),  # feature_not_supported
    (MetadataMissing, "0A000"),
    (BadParameter, "22023"),  # invalid_parameter_value
    (AnswerDenied, "42501"),  # insufficient_privilege
    (AccessDenied, "42501"),
    (NoSuchItem, "3D000"),  # invalid_catalog_name
    (NotSignedIn, "28000"),  # invalid_authorization_specification
    (Cancelled, "57014"),  # query_canceled
    (TooManyRequests, "53300"),  # too_many_connections
    (Conflict, "55000"),  # object_not_in_prerequisite_state
    (AnswerFailed, "XX000"),  # internal_error
)


class SqlError(Exception):
    """An error of the protocol or of a command, with its SQLSTATE."""

    def __init__(self, code: str, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.code, self.text, self.hint = code, text, hint


def sqlstate(error: SqlError | SfumatoError) -> str:
    """The SQLSTATE of an error."""
    if isinstance(error, SqlError):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), "XX000")


def error_message(error: SqlError | SfumatoError, sql: str = "") -> bytes:
    """The message to the client; for a refused query also the character where the reason stands."""
    if isinstance(error, SqlError):
        return error_response(code=error.code, text=error.text, hint=error.hint)
    code = sqlstate(error)
    text = f"{error.code}  {error.message}"
    return error_response(code=code, text=text, hint=error.fix, position=_position(error, sql))


def _position(error: SfumatoError, sql: str) -> int | None:
    line, column = error.facts.get("line"), error.facts.get("column")
    if not isinstance(line, int) or not isinstance(column, int):
        return None
    lines = sql.split("\n")
    if not 1 <= line <= len(lines) or column < 1:
        return None
    return sum(len(one) + 1 for one in lines[: line - 1]) + min(column, len(lines[line - 1]) + 1)
