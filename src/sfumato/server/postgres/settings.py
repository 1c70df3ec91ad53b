"""Settings of a connection: ``SET``, ``SHOW`` and the values that a client is told when it connects.

The three settings of sfumato decide what questions cost. All others exist because clients set them; their values are
kept and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sfumato.rationals import rational
from sfumato.server.postgres.sqlstates import SqlError

VERSION = "15.0"
REPORTED = ("server_version", "server_encoding", "client_encoding", "application_name", "DateStyle", "IntervalStyle",
            "TimeZone", "integer_datetimes", "standard_conforming_strings", "is_superuser", "session_authorization",
            "default_transaction_read_only", "in_hot_standby")  # fmt: skip
"""Settings whose values clients are told without asking."""
_FIXED = {
    "server_version": VERSION, "server_version_num": "150000", "server_encoding": "UTF8", "integer_datetimes": "on",
    "standard_conforming_strings": "on", "is_superuser": "off", "in_hot_standby": "off", "max_identifier_length": "63",
    "max_index_keys": "32", "block_size": "8192", "lc_collate": "C.UTF-8", "lc_ctype": "C.UTF-8",
    "transaction_read_only": "off", "wal_level": "replica", "server_process": "sfumato",
}  # fmt: skip
_FREE = {
    "client_encoding": "UTF8", "application_name": "", "datestyle": "ISO, MDY", "intervalstyle": "postgres",
    "timezone": "UTC", "search_path": '"$user", public', "extra_float_digits": "1", "client_min_messages": "notice",
    "default_transaction_read_only": "off", "default_transaction_isolation": "read committed",
    "transaction_isolation": "read committed", "statement_timeout": "0", "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0", "bytea_output": "hex", "row_security": "on", "xmloption": "content",
    "default_tablespace": "", "check_function_bodies": "on", "synchronize_seqscans": "on",
    "jit": "off", "cursor_tuple_fraction": "0.1", "default_transaction_deferrable": "off",
    "backslash_quote": "safe_encoding",
    "session_replication_role": "origin", "escape_string_warning": "on", "enable_seqscan": "on", "datlastsysoid": "0",
    "lc_messages": "C.UTF-8", "lc_monetary": "C.UTF-8", "lc_numeric": "C.UTF-8", "lc_time": "C.UTF-8",
    "work_mem": "4MB",
}  # fmt: skip
_NUMBERS = ("sfumato.epsilon", "sfumato.delta", "sfumato.max_epsilon")
_UTF8 = ("utf8", "utf-8", "unicode")


class Settings:
    """The settings of one connection."""

    def __init__(self, user: str) -> None:
        self._values = {**_FREE, **_FIXED, "session_authorization": user, **dict.fromkeys(_NUMBERS, "")}
        self._start = dict(self._values)

    def start(self, given: Mapping[str, str]) -> None:
        """Set what the client asked for when it connected: a reset goes back to it."""
        for name, value in given.items():
            self.set(name, value)
        self._start = dict(self._values)

    def reset(self) -> None:
        """Bring every setting back to its value at the start."""
        self._values = dict(self._start)

    def all(self) -> Mapping[str, str]:
        """Every setting by its name in lower case."""
        return self._values

    def get(self, name: str) -> str:
        """The value of a setting."""
        try:
            return self._values[name.lower()]
        except KeyError:
            raise _unknown(name) from None

    def number(self, name: str) -> Fraction | None:
        """A setting of sfumato as a number; None where it is not set."""
        text = self._values[f"sfumato.{name}"]
        return rational(text) if text else None

    def set(self, name: str, value: str | None) -> None:
        """Change a setting; None restores its value at the start of the connection."""
        key = name.lower()
        if value is None and key in self._start:
            self._values[key] = self._start[key]
        elif value is not None and key in _NUMBERS:
            self._values[key] = _number(key, value)
        elif key.startswith("sfumato.") or (key not in _FREE and key not in _FIXED and "." not in key):
            raise _unknown(name)
        elif key in _FIXED or key == "session_authorization":
            if value is None or value.lower() != self._values[key].lower():
                raise SqlError("55P02", f'parameter "{name}" cannot be changed')
        elif key == "client_encoding" and value is not None and value.lower().strip("'") not in _UTF8:
            raise SqlError("22023", f'client_encoding must be UTF8, not "{value[:40]}"')
        elif key == "datestyle" and value is not None and not value.lower().startswith("iso"):
            raise SqlError("22023", "DateStyle must be ISO: dates are written as 2026-01-31")
        elif value is None and key not in _FREE:
            self._values.pop(key, None)
        else:
            self._values[key] = (value or "")[:1000]

    def copy(self) -> dict[str, str]:
        """The values, to be restored when a transaction is rolled back."""
        return dict(self._values)

    def restore(self, values: dict[str, str]) -> None:
        """Bring back values of :meth:`copy`."""
        self._values = dict(values)

    def quiet(self) -> bool:
        """Whether the client asked not to be sent notices."""
        return self._values["client_min_messages"].lower() in ("warning", "error", "fatal", "panic")


def _unknown(name: str) -> SqlError:
    return SqlError("42704", f'unrecognized configuration parameter "{name[:80]}"',
                    "Settings of sfumato: sfumato.epsilon, sfumato.delta, sfumato.max_epsilon.")  # fmt: skip


def _number(name: str, value: str) -> str:
    """A number above 0 (delta: from 0), kept as it was written: 0.1 stays exactly one tenth."""
    try:
        number = rational(value.strip())
    except Exception:
        number = Fraction(-1)
    if not (number > 0 or (number == 0 and name != "sfumato.epsilon")) or (name == "sfumato.delta" and number >= 1):
        raise SqlError("22023", f"{name} must be a number above 0", f"For example: SET {name} = 0.1")
    return value.strip()


def startup_settings(parameters: Mapping[str, str]) -> dict[str, str]:
    """The settings in a startup message, also those in ``options`` as ``-c name=value``.

    >>> startup_settings({"user": "ann", "options": "-c sfumato.epsilon=0.1", "application_name": "psql"})
    {'application_name': 'psql', 'sfumato.epsilon': '0.1'}
    """
    found = {name: value for name, value in parameters.items()
             if name not in ("user", "database", "options", "replication")
             and not name.startswith("_pq_.")}  # fmt: skip
    words = parameters.get("options", "").replace("-c ", "-c").split()
    for word in words:
        name, equals, value = word.removeprefix("--").removeprefix("-c").partition("=")
        if equals and word.startswith("-"):
            found[name.replace("-", "_")] = value
    return found
