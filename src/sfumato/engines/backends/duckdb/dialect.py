"""DuckDB's dialect, with a hash function that all engines share."""

from __future__ import annotations

from sfumato.data.sql_quoting import quoted_text
from sfumato.engines.sql_writer import Writer

__all__ = ["DuckdbWriter"]

_NAMES = {
    "int": "BIGINT", "huge": "HUGEINT", "float": "DOUBLE", "text": "VARCHAR", "date": "DATE", "time": "TIMESTAMP",
    "flag": "BOOLEAN",
}  # fmt: skip


class DuckdbWriter(Writer):
    """Leaves statements as they are, except that SHA-256 replaces DuckDB's own hash."""

    title = "DuckDB"

    def text(self, value: str) -> str:
        return quoted_text(value)

    def constant(self, value: str, kind: str) -> str:
        return f"CAST('{value}' AS {_NAMES[kind]})"

    def cast(self, sql: str, kind: str, to: str) -> str:
        return sql if kind == to else f"TRY_CAST({sql} AS {_NAMES[to]})"

    def arithmetic(self, sign: str, a: str, b: str) -> str:
        return f"({a} {sign} {b})"

    def modulo(self, a: str, b: str) -> str:
        return f"({a} % {b})"

    def function(self, name: str, a: str, *, small: bool = False) -> str:
        return f"trim({a}, ' ')" if name == "trim" else f"{name}({a})"

    def round_to(self, a: str, places: int) -> str:
        return f"round({a}, {places})"

    def shaped(self, a: str, pattern: str) -> str:
        return f"regexp_extract({a}, {self.text(pattern)})"

    def read_stored(self, sql: str, to: str) -> str:
        return self.cast(sql, "text", to)

    def substring(self, items: list[str]) -> str:
        return f"substring({', '.join(items)})"

    def part(self, part: str, a: str) -> str:
        return f"date_part('{part}', {a})"

    def like(self, a: str, pattern: str, *, fold: bool) -> str:
        return f"({a} {'ILIKE' if fold else 'LIKE'} {self.text(pattern)})"

    def whole_division(self, a: str, b: str, kind: str) -> str:
        return f"({a} // {b})"

    def digest(self, text: str) -> str:
        return f"CAST('0x' || substr(sha256({text}), 1, 15) AS BIGINT)"

    def joined(self, items: list[str]) -> str:
        return "(" + " || ".join(items) + ")"
