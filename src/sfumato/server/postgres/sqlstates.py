"""SQLSTATE codes of refusals and errors, so that clients and drivers know what kind of failure it is."""

from __future__ import annotations

from sfumato.errors import SfumatoError
from sfumato.server.error_codes import error_codes
from sfumato.server.postgres.messages import error_response


class SqlError(Exception):
    """An error of the protocol or of a command, with its SQLSTATE."""

    def __init__(self, code: str, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.code, self.text, self.hint = code, text, hint


def sqlstate(error: SqlError | SfumatoError) -> str:
    """The SQLSTATE of an error."""
    return error.code if isinstance(error, SqlError) else error_codes(error)[1]


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
