"""PostgreSQL's dialect: floats overflow without an error, text is compared by its bytes, failed casts give NULL."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.data.sql_quoting import quoted_text
from sfumato.engines.dialect import largest_for
from sfumato.engines.expressions import Origin
from sfumato.engines.generator import SqlGenerator
from sfumato.engines.regular_expressions import PatternBranch, written_pattern
from sfumato.engines.text_patterns import cases, folded

_NAMES = {
    "int": "bigint", "huge": "numeric", "float": "double precision", "text": "text", "date": "date",
    "time": "timestamp", "flag": "boolean",
}  # fmt: skip
_SHORT = 40
"""Operands of up to this many characters are repeated; longer ones are computed once, in a subquery."""


def _float(value: float) -> str:
    return f"'{value!r}'::float8"


def _bits(x: str) -> str:
    """The bits of a float without its sign, as a whole number."""
    return f"CAST(CAST('x' || encode(float8send(abs({x})), 'hex') AS bit(64)) AS bigint)"


_TINY, _HUGE = _float(1e-150), _float(1e150)
_INFINITE, _NAN = "'Infinity'::float8", "'NaN'::float8"


class PostgresGenerator(SqlGenerator):
    """PostgreSQL raises where IEEE arithmetic gives infinity or zero; each operation is guarded by exact tests."""

    title = "PostgreSQL"
    kept = "MATERIALIZED "

    def _stored_kind(self, origin: Origin) -> str:
        """Types that are not known here are text at once: what they take for equal (1 month and 30 days, `citext`)
        would be one id in some places of a statement and two in others."""
        kind = super()._stored_kind(origin)
        return "text" if kind in ("other", "stored text") else kind

    def stored(self, origin: Origin) -> str:
        """Stored text loses the collation it was declared with: here text is what its bytes are."""
        sql, kind = super().stored(origin), super()._stored_kind(origin)
        if kind in ("other", "stored text"):
            return f'(CAST({sql} AS text) COLLATE "C")'
        return f'({sql} COLLATE "C")' if kind == "text" else sql

    def text(self, value: str) -> str:
        return f"{quoted_text(value)}::text"

    def constant(self, value: str, kind: str) -> str:
        return f"'{value}'::{'float8' if kind == 'float' else _NAMES[kind]}"

    def cast(self, sql: str, kind: str, to: str) -> str:
        if kind == to and kind in _NAMES:
            return sql
        match kind, to:
            case (
                ("null", _) | ("int", "huge" | "float" | "text") | ("date", "time" | "text") | ("time", "date" | "text")
            ):
                return f"CAST({sql} AS {_NAMES[to]})"
            case "single", "float":
                return f"CAST({sql} AS float8)"
            case "single", "int":
                return self.cast(f"CAST({sql} AS float8)", "float", "int")
            case "huge" | "small huge", "int":
                return f"CAST({sql} AS bigint)"
            case "huge", "float":
                # As DuckDB does it: the upper and the lower 64 bits are rounded by themselves.
                return self._once(
                    lambda a: (
                        f"(CASE WHEN abs({a}) < {1 << 63} THEN CAST(CAST({a} AS bigint) AS float8) "
                        f"ELSE CAST(div({a}, {1 << 64}) AS float8) * {_float(2.0**64)} "
                        f"+ CAST({a} - div({a}, {1 << 64}) * {1 << 64} AS float8) END)"
                    ),
                    sql,
                )
            case "small float", "int":
                return f"CAST({sql} AS bigint)"
            case "float", "int":
                low, high = _float(-(2.0**63)), _float(2.0**63)
                return self._once(
                    lambda a: f"(CASE WHEN {a} >= {low} AND {a} < {high} THEN CAST({a} AS bigint) END)", sql
                )
            case "flag", "int" | "float":
                return f"CAST(CAST({sql} AS integer) AS {_NAMES[to]})"
            case "flag", "text":
                return f"CAST({sql} AS text)"
            case "int", "flag":
                return f"({sql} <> 0)"
            case "decimal", "int":
                ends = f"{-(1 << 63)}.5 < {sql} AND {sql} < {(1 << 63) - 1}.5"
                return f"(CASE WHEN {ends} THEN CAST({sql} AS bigint) END)"
            case "decimal", "float":
                return f"(CASE WHEN abs({sql}) < 1e-307 THEN 0 WHEN abs({sql}) < 1e308 THEN CAST({sql} AS float8) END)"
            case "int in text", "int":
                return self._once(lambda a: self.cast(a, "decimal", "int"), f"CAST({sql} AS numeric)")
            case ("float in text", "float") | ("date in text", "date") | ("time in text", "time"):
                return f"CAST({sql} AS {_NAMES[to]})"
            case "flag in text", "flag":
                return f"CAST({sql} AS boolean)"
            case "stored date" | "stored time", "date" | "time":
                inside = f"{sql} >= '0001-01-01' AND {sql} < '10000-01-01'"
                return f"(CASE WHEN {inside} THEN CAST({sql} AS {_NAMES[to]}) END)"
            case "stored text" | "stored date" | "stored time" | "decimal" | "other", "text":
                return f"CAST({sql} AS text)"
        raise self.no("this conversion of one kind of value into another")

    def _once(self, body: Callable[..., str], *operands: str) -> str:
        """An expression that needs its operands several times."""
        if all(len(operand) <= _SHORT for operand in operands):
            return body(*operands)
        named = ", ".join(f"{operand} AS {letter}" for operand, letter in zip(operands, "xy", strict=False))
        return f"(SELECT {body(*('o.x', 'o.y')[: len(operands)])} FROM (SELECT {named} OFFSET 0) AS o)"

    def arithmetic(self, sign: str, a: str, b: str) -> str:
        return self._once(lambda x, y: self._guarded(sign, x, y), a, b)

    def _guarded(self, sign: str, a: str, b: str) -> str:
        plain = f"{a} {sign} {b}"
        one, two = f"abs({a})", f"abs({b})"
        if sign in "+-":
            # Halves cannot overflow; where one operand is below 1 the sum cannot either.
            half = f"({a} * {_float(0.5)} {sign} {b} * {_float(0.5)})"
            return (
                f"(CASE WHEN {one} < {_float(8e307)} AND {two} < {_float(8e307)} THEN {plain} "
                f"WHEN {self._special(a, b)} OR {one} < {_float(1.0)} OR {two} < {_float(1.0)} THEN {plain} "
                f"WHEN abs({half}) < {_float(2.0**1023)} THEN {plain} ELSE sign({half}) * {_INFINITE} END)"
            )
        safe = f"{one} BETWEEN {_TINY} AND {_HUGE} AND {two} BETWEEN {_TINY} AND {_HUGE}"
        start = f"(CASE WHEN {safe} THEN {plain} WHEN {self._special(a, b)} THEN {plain} "
        infinite = f"sign({a}) * sign({b}) * {_INFINITE}"
        if sign == "*":
            # Scaled by powers of two, which is exact, the product shows whether it would leave the range.
            down = f"({one} * {_float(2.0**-530)}) * ({two} * {_float(2.0**-530)})"
            up = f"({one} * {_float(2.0**600)}) * ({two} * {_float(2.0**600)})"
            return start + (
                f"WHEN {one} >= {_float(1.0)} AND {two} >= {_float(1.0)} "
                f"THEN (CASE WHEN {down} < {_float(2.0**-36)} THEN {plain} ELSE {infinite} END) "
                f"WHEN {one} < {_float(1.0)} AND {two} < {_float(1.0)} "
                f"THEN (CASE WHEN {up} <= {_float(2.0**125)} THEN {_float(0.0)} ELSE {plain} END) ELSE {plain} END)"
            )
        return start + (
            f"WHEN {two} < {_float(1.0)} AND {one} >= {_float(2.0**-500)} THEN (CASE WHEN {one} * {_float(0.5)} >= "
            f"{two} * {_float(2.0**1023)} THEN {infinite} ELSE {plain} END) "
            f"WHEN {two} >= {_float(1.0)} AND {one} < {_float(2.0**-51)} THEN (CASE WHEN {one} * {_float(2.0**1023)} "
            f"* {_float(2.0**51)} <= {two} * {_float(0.5)} THEN {_float(0.0)} ELSE {plain} END) ELSE {plain} END)"
        )

    def _special(self, a: str, b: str) -> str:
        tests = [f"{x} = {value}" for x in (a, b) for value in ("0", _NAN, _INFINITE, f"-{_INFINITE}")]
        return "(" + " OR ".join(tests) + ")"

    def modulo(self, a: str, b: str) -> str:
        return self._once(self._remainder, a, b)

    def _remainder(self, a: str, b: str) -> str:
        """PostgreSQL has no fmod: integer remainder if both are whole, else that of the mantissas at the smaller
        exponent."""
        parts = f"{_bits(a)} AS a, {_bits(b)} AS b"
        ones = ", ".join(
            f"(p.{x} >> 52) AS {e}, p.{x} & {(1 << 52) - 1} AS {m}" for x, e, m in (("a", "e", "m"), ("b", "f", "n"))
        )
        least = "least(greatest(q.e, 1), greatest(q.f, 1))"
        wide = ", ".join(
            f"CAST(q.{m} + CASE WHEN q.{e} > 0 THEN {1 << 52} ELSE 0 END AS numeric) "
            f"* CAST(2 AS numeric) ^ (greatest(q.{e}, 1) - {least})"
            for e, m in (("e", "m"), ("f", "n"))
        )
        # Two steps, so that no power of two lies below the floats.
        half = f"(({least} - 1075) / 2)"
        exact = (
            f"(SELECT sign({a}) * CAST(mod({wide}) AS float8) * CAST(2 AS float8) ^ {half} "
            f"* CAST(2 AS float8) ^ ({least} - 1075 - {half}) "
            f"FROM (SELECT {ones} FROM (SELECT {parts} OFFSET 0) AS p OFFSET 0) AS q)"
        )
        return (
            f"(CASE WHEN {a} IS NULL OR {b} IS NULL THEN NULL "
            f"WHEN {a} = {_NAN} OR {b} = {_NAN} OR abs({a}) = {_INFINITE} OR {b} = 0 THEN {_NAN} "
            f"WHEN abs({a}) < abs({b}) THEN {a} "
            f"WHEN {a} = trunc({a}) AND {b} = trunc({b}) AND abs({a}) < {_float(2.0**63)} AND abs({b}) < "
            f"{_float(2.0**63)} "  # both: a written-out number is cast while the statement is planned
            f"THEN CAST(CAST({a} AS bigint) % CAST({b} AS bigint) AS float8) ELSE {exact} END)"
        )

    def round_to(self, a: str, places: int) -> str:
        ten = _float(10.0**places)
        return self._once(
            lambda x: (
                f"(CASE WHEN abs({x}) <= {_float(largest_for(places))} "
                f"THEN {self.function('round', f'({x} * {ten})')} / {ten} ELSE {x} END)"
            ),
            a,
        )

    def shaped(self, a: str, pattern: str) -> str:
        return f"substring({a} from {self.text(pattern)})"

    def function(self, name: str, a: str, *, small: bool = False) -> str:
        match name:
            case "lower" | "upper":
                # The server's own rules depend on its locale; in the collation C they are those of ASCII.
                old, new = cases(name)
                return self._once(
                    lambda x: (
                        f'(CASE WHEN octet_length({x}) = char_length({x}) THEN {name}({x} COLLATE "C") '
                        f'ELSE translate({name}({x} COLLATE "C"), {self.text(old)}, {self.text(new)}) END)'
                    ),
                    a,
                )
            case "round":
                return self._once(
                    lambda x: (
                        f"(CASE WHEN abs({x} - trunc({x})) >= 0.5 AND abs({x}) < {_HUGE} "
                        f"THEN trunc({x}) + sign({x}) ELSE trunc({x}) END)"
                    ),
                    a,
                )
            case "isnan":
                return f"({a} = {_NAN})"
            case "trim":
                return f"btrim({a}, ' ')"
            case "length":
                return f"CAST(char_length({a}) AS bigint)"
        return f"{name}({a})"

    def substring(self, items: list[str]) -> str:
        return f"substr({', '.join(items)})"

    def part(self, part: str, a: str) -> str:
        return f"CAST(date_part('{part}', {a}) AS bigint)"

    def truncate(self, unit: str, a: str, kind: str) -> str:
        return f"CAST(date_trunc('{unit}', CAST({a} AS timestamp)) AS {_NAMES[kind]})"

    def day_number(self, a: str) -> str:
        return f"CAST({a} - DATE '0001-01-01' AS bigint)"

    def add_interval(self, a: str, kind: str, months: int, days: int, minutes: int) -> str:
        whole = f"make_interval(months => {months}, days => {days}, mins => {minutes})"
        return f"CAST({a} + {whole} AS {_NAMES[kind]})"

    def like(self, a: str, pattern: str, *, fold: bool) -> str:
        if fold:
            return self.like(self.function("lower", a), folded(pattern), fold=False)
        return f"({a} LIKE {self.text(pattern)} ESCAPE '')"

    def matches(self, a: str, branches: tuple[PatternBranch, ...]) -> str:
        return f"({a} ~ {self.text(written_pattern(branches))})"

    def whole_division(self, a: str, b: str, kind: str) -> str:
        return f"({a} / {b})" if kind == "int" else f"div({a}, {b})"

    def digest(self, text: str) -> str:
        return f"CAST(CAST('x' || left(encode(sha256(convert_to({text}, 'UTF8')), 'hex'), 15) AS bit(60)) AS bigint)"

    def fast_hash(self, items: list[tuple[str, str]]) -> str:
        value = "0"
        for kind, sql in reversed(items):
            value = f"hash{'int8' if kind == 'int' else 'text'}extended({sql}, {value})"
        return f"({value} & {(1 << 60) - 1})"

    def product(self, a: str, b: str) -> str:
        return f"(CAST({a} AS numeric) * {b})"

    def sum(self, a: str, *, small: bool, over: str = "") -> str:
        """Sums of 32-bit numbers have 64 bits and are exact; those of 64-bit numbers are decimals, which take long."""
        return f"SUM(CAST({a} AS integer)){over}" if small else f"SUM({a}){over}"

    def joined(self, items: list[str]) -> str:
        return "(" + " || ".join(items) + ")"

    def ordered(self, sql: str, kind: str) -> str:
        return f'({sql} COLLATE "C")' if kind in ("text", "stored text") else sql
