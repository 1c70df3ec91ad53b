"""Spark's dialect: halves are rounded as in DuckDB, sums have 38 digits, backslashes are literal."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping

from sfumato.engines.dialect import largest_for
from sfumato.engines.expressions import Origin
from sfumato.engines.generator import Columns, SqlGenerator
from sfumato.engines.regular_expressions import PatternBranch, written_pattern
from sfumato.engines.text_patterns import cases, folded

_NAMES = {
    "int": "BIGINT", "huge": "DECIMAL(38, 0)", "float": "DOUBLE", "text": "STRING", "date": "DATE",
    "time": "TIMESTAMP_NTZ", "flag": "BOOLEAN",
}  # fmt: skip
_CASES = {
    "lower": (string.ascii_uppercase, string.ascii_lowercase), "upper": (string.ascii_lowercase, string.ascii_uppercase)
}  # fmt: skip
_SHORT = 40
_TRIES = 4
"""Maximum number of `%` in a pattern: matching in Java takes time that is exponential in it."""
_WHOLE = f"{2.0**52!r}D"
"""From here on every float is a whole number."""


class SparkGenerator(SqlGenerator):
    """For sessions without ANSI mode, in which no expression raises."""

    title = "Spark"

    def __init__(self, tables: Mapping[str, Columns], *, own_hash: bool = False) -> None:
        super().__init__(tables, own_hash=own_hash)
        self._letters = 0

    def unit_kind(self, origin: Origin) -> str:
        """Identifiers of other types, such as text with a collation, are compared as text."""
        kind = super().unit_kind(origin)
        return "text" if kind == "other" else kind

    def stored_unit(self, origin: Origin) -> str:
        sql = super().stored_unit(origin)
        return f"CAST({sql} AS STRING)" if self._stored_kind(origin) == "other" else sql

    def name(self, value: str) -> str:
        return "`" + value.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def constant(self, value: str, kind: str) -> str:
        if kind == "float":
            return f"CAST('{value}' AS DOUBLE)"
        return f"{_NAMES[kind]} '{value}'"

    def whole(self, value: int) -> str:
        if value >= 10**38:
            raise self.no("numbers of more than 38 digits")
        return str(value)

    def cast(self, sql: str, kind: str, to: str) -> str:
        if kind == to and kind in _NAMES:
            return sql
        match kind, to:
            case ("null", _) | ("int", "huge" | "float" | "text") | ("date" | "time", "date" | "time" | "text"):
                return f"CAST({sql} AS {_NAMES[to]})"
            case ("huge" | "small huge", "int") | ("flag", "int" | "float" | "text") | ("single", "float"):
                return f"CAST({sql} AS {_NAMES[to]})"
            case "huge", "float":
                # As DuckDB does it: the upper and the lower 64 bits are rounded by themselves.
                upper, lower = f"CAST({sql} div {1 << 64} AS DOUBLE)", f"CAST({sql} % {1 << 64} AS DOUBLE)"
                return f"({upper} * {2.0**64!r}D + {lower})"
            case "small float", "int":
                return f"CAST(rint({sql}) AS BIGINT)"
            case "float" | "single", "int":
                # A cast cuts fractions off; rint rounds halves to even.
                ends = f">= {-(2.0**63)!r}D", f"< {2.0**63!r}D"
                return self._once(
                    lambda a: f"(CASE WHEN {a} {ends[0]} AND {a} {ends[1]} THEN CAST(rint({a}) AS BIGINT) END)", sql
                )
            case "int", "flag":
                return f"({sql} <> 0)"
            case "decimal" | "fine decimal" | "wide decimal", "int":
                return f"TRY_CAST(round({sql}) AS BIGINT)"
            case "decimal" | "fine decimal", "float":
                return f"CAST({sql} AS DOUBLE)"
            case "int in text", "int":
                return f"TRY_CAST(round(CAST({sql} AS DECIMAL(38, 18))) AS BIGINT)"
            case ("float in text", "float") | ("date in text", "date") | ("time in text", "time"):
                return f"CAST({sql} AS {_NAMES[to]})"
            case "flag in text", "flag":
                return f"CAST({sql} AS BOOLEAN)"
            case "stored time", "time" | "date":
                return f"CAST({sql} AS {_NAMES[to]})"
            case "decimal" | "wide decimal" | "stored time", "text":
                return f"CAST({sql} AS STRING)"
        raise self.no("this conversion of one kind of value into another")

    def _once(self, body: Callable[[str], str], operand: str) -> str:
        """An expression that uses its operand several times. A long operand is bound to a lambda variable."""
        if len(operand) <= _SHORT:
            return body(operand)
        self._letters += 1
        letter = f"o{self._letters}"
        return f"transform(array({operand}), {letter} -> {body(letter)})[0]"

    def arithmetic(self, sign: str, a: str, b: str) -> str:
        return f"({a} {sign} {b})"

    def modulo(self, a: str, b: str) -> str:
        return f"({a} % {b})"

    def round_to(self, a: str, places: int) -> str:
        ten = f"{10.0**places!r}D"
        return self._once(
            lambda x: (
                f"(CASE WHEN abs({x}) <= {largest_for(places)!r}D "
                f"THEN {self.function('round', f'({x} * {ten})')} / {ten} ELSE {x} END)"
            ),
            a,
        )

    def shaped(self, a: str, pattern: str) -> str:
        # in Java, $ also matches before a line break at the end
        return f"regexp_extract({a}, {self.text(pattern.removesuffix('$') + chr(92) + 'z')}, 0)"

    def function(self, name: str, a: str, *, small: bool = False) -> str:
        match name:
            case "lower" | "upper":
                # Java turns one letter into several and looks at neighbours; here each letter stands for itself.
                old, new = (self.text(plain + more) for plain, more in zip(_CASES[name], cases(name), strict=True))
                return self._once(
                    lambda x: (
                        f"(CASE WHEN octet_length({x}) = length({x}) THEN {name}({x}) "
                        f"ELSE translate({x}, {old}, {new}) END)"
                    ),
                    a,
                )
            case "floor" | "ceil" if small:
                return f"CAST({name}({a}) AS DOUBLE)"
            case "trunc" if small:
                return _cut(a)
            case "floor" | "ceil":
                return self._once(
                    lambda x: f"(CASE WHEN abs({x}) < {_WHOLE} THEN CAST({name}({x}) AS DOUBLE) ELSE {x} END)", a
                )
            case "trunc":
                return self._once(lambda x: f"(CASE WHEN abs({x}) < {_WHOLE} THEN {_cut(x)} ELSE {x} END)", a)
            case "round":
                return self._once(
                    lambda x: (
                        f"(CASE WHEN abs({x}) < {_WHOLE} THEN CASE WHEN abs({x} - {_cut(x)}) >= 0.5D "
                        f"THEN {_cut(x)} + signum({x}) ELSE {_cut(x)} END ELSE {x} END)"
                    ),
                    a,
                )
            case "length":
                return f"CAST(length({a}) AS BIGINT)"
        return f"{name}({a})"

    def substring(self, items: list[str]) -> str:
        return f"substring({', '.join(items)})"

    def part(self, part: str, a: str) -> str:
        value = f"dayofweek({a}) - 1" if part == "dow" else f"date_part('{part}', {a})"
        return f"CAST({value} AS BIGINT)"

    def truncate(self, unit: str, a: str, kind: str) -> str:
        if kind == "date":
            return a if unit == "day" else f"trunc({a}, '{unit}')"
        return f"CAST(date_trunc('{unit}', {a}) AS TIMESTAMP_NTZ)"

    def day_number(self, a: str) -> str:
        return f"CAST(datediff({a}, DATE '0001-01-01') AS BIGINT)"

    def add_interval(self, a: str, kind: str, months: int, days: int, minutes: int) -> str:
        if kind == "date":
            return f"date_add(add_months({a}, {months}), {days})" if months else f"date_add({a}, {days})"
        parts = {"MONTH": months, "DAY": days, "MINUTE": minutes}
        return f"({a}{''.join(f' + INTERVAL {size} {unit}' for unit, size in parts.items() if size)})"

    def like(self, a: str, pattern: str, *, fold: bool) -> str:
        if fold:
            return self.like(self.function("lower", a), folded(pattern), fold=False)
        if pattern.count("%") > _TRIES:
            raise self.no(f"LIKE with more than {_TRIES} `%` in its pattern")
        return f"({a} LIKE {self.text(pattern.replace(chr(92), chr(92) * 2))})"

    def matches(self, a: str, branches: tuple[PatternBranch, ...]) -> str:
        # in Java, $ also matches before a line break at the end
        return f"({a} RLIKE {self.text(written_pattern(branches, end=chr(92) + 'z'))})"

    def whole_division(self, a: str, b: str, kind: str) -> str:
        return f"({a} div {b})"

    def digest(self, text: str) -> str:
        return f"CAST(conv(substring(sha2({text}, 256), 1, 15), 16, 10) AS BIGINT)"

    def fast_hash(self, items: list[tuple[str, str]]) -> str:
        values = (f"CAST({sql} AS BIGINT)" if kind == "int" else sql for kind, sql in items)
        return f"(xxhash64({', '.join(values)}) & {(1 << 60) - 1}L)"

    def joined(self, items: list[str]) -> str:
        return f"concat({', '.join(items)})"

    def sum(self, a: str, *, small: bool, over: str = "") -> str:
        return f"CAST(SUM({a}){over} AS DECIMAL(38, 0))" if small else f"SUM(CAST({a} AS DECIMAL(38, 0))){over}"

    def window_order(self, by: list[str]) -> str:
        return f" ORDER BY {', '.join(by) or '1'}"


def _cut(x: str) -> str:
    return f"CAST(CAST({x} AS BIGINT) AS DOUBLE)"
