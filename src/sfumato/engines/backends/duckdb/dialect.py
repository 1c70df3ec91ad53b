"""DuckDB's dialect."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.data.sql_quoting import quoted_text
from sfumato.engines.expressions import Origin, Read, ShiftRight
from sfumato.engines.functions import Hash
from sfumato.engines.generator import Columns, SqlGenerator
from sfumato.engines.regular_expressions import PatternBranch, written_pattern

_NAMES = {
    "int": "BIGINT", "huge": "HUGEINT", "float": "DOUBLE", "text": "VARCHAR", "date": "DATE", "time": "TIMESTAMP",
    "flag": "BOOLEAN",
}  # fmt: skip


_SURE = {("int", "float"), ("int", "huge"), ("huge", "float"), ("small float", "int"), ("small huge", "int")}
"""Casts that cannot fail."""


class DuckdbGenerator(SqlGenerator):
    """Without the stored types of tables, hashes are DuckDB's own; with them, those that all engines share."""

    title = "DuckDB"

    def __init__(self, tables: Mapping[str, Columns] | None = None) -> None:
        super().__init__(tables or {}, own_hash=tables is None)

    def _read(self, node: Read) -> str:
        return f"TRY_CAST({self.name(node.origin[1])} AS {_NAMES[node.kind]})"

    def unit_kind(self, origin: Origin) -> str:
        return "unit" if self.own_hash else super().unit_kind(origin)

    def hash(self, node: Hash) -> str:
        if self.own_hash:
            return f"hash({', '.join(map(self.expression, node.items))})"
        return super().hash(node)

    def shift_right(self, node: ShiftRight) -> str:
        return f"CAST({self.expression(node.a)} >> {node.bits} AS BIGINT)"

    def text(self, value: str) -> str:
        return quoted_text(value)

    def constant(self, value: str, kind: str) -> str:
        return f"CAST('{value}' AS {_NAMES[kind]})"

    def whole(self, value: int) -> str:
        """All of 64 bits: a shorter one could overflow."""
        return f"{value}::BIGINT" if value < 1 << 63 else str(value)

    def cast(self, sql: str, kind: str, to: str) -> str:
        if kind == to:
            return sql
        return f"{'CAST' if (kind, to) in _SURE else 'TRY_CAST'}({sql} AS {_NAMES[to]})"

    def arithmetic(self, sign: str, a: str, b: str) -> str:
        return f"({a} {sign} {b})"

    def modulo(self, a: str, b: str) -> str:
        return f"({a} % {b})"

    def function(self, name: str, a: str, *, small: bool = False) -> str:
        if name == "trim":
            return f"trim({a}, ' ')"
        return f"CAST(length({a}) AS BIGINT)" if name == "length" else f"{name}({a})"

    def round_to(self, a: str, places: int) -> str:
        return f"round({a}, {places})"

    def shaped(self, a: str, pattern: str) -> str:
        return f"regexp_extract({a}, {self.text(pattern)})"

    def read_stored(self, sql: str, to: str) -> str:
        return self.cast(sql, "text", to)

    def substring(self, items: list[str]) -> str:
        return f"substring({', '.join(items)})"

    def part(self, part: str, a: str) -> str:
        return f"CAST(date_part('{part}', {a}) AS BIGINT)"

    def truncate(self, unit: str, a: str, kind: str) -> str:
        return f"CAST(date_trunc('{unit}', {a}) AS {_NAMES[kind]})"

    def day_number(self, a: str) -> str:
        return f"date_diff('day', DATE '0001-01-01', {a})"

    def add_interval(self, a: str, kind: str, months: int, days: int, minutes: int) -> str:
        whole = f"to_months({months}) + to_days({days}) + to_minutes({minutes})"
        return f"CAST({a} + ({whole}) AS {_NAMES[kind]})"

    def like(self, a: str, pattern: str, *, fold: bool) -> str:
        return f"({a} {'ILIKE' if fold else 'LIKE'} {self.text(pattern)})"

    def matches(self, a: str, branches: tuple[PatternBranch, ...]) -> str:
        return f"regexp_matches({a}, {self.text(written_pattern(branches))})"

    def whole_division(self, a: str, b: str, kind: str) -> str:
        return f"({a} // {b})"

    def digest(self, text: str) -> str:
        return f"CAST('0x' || substr(sha256({text}), 1, 15) AS BIGINT)"

    def joined(self, items: list[str]) -> str:
        return "(" + " || ".join(items) + ")"
