"""Which kind a column of text really is: whole numbers, numbers, dates, times, true/false, or just text.

A column gets a kind only when *every* value of it fits, so one ZIP code with a leading zero in the last row keeps the
whole column text. The same patterns run in Polars (a table in memory) and in DuckDB (a file larger than memory).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import polars as pl

__all__ = ["COMMA", "RULES", "THOUSANDS", "Rule", "allowed", "infer", "plausible", "settle"]

_WHOLE = r"(?:0|[1-9][0-9]{0,17})"
_EXPONENT = r"(?:e[+-]?[0-9]{1,3}|E[+-][0-9]{1,3})?"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_SAMPLE = 1000
_TRUE = ["true", "True", "TRUE"]
_FALSE = ["false", "False", "FALSE"]

THOUSANDS = r"-?[1-9][0-9]{0,2}[.,][0-9]{3}"
"""``1.234`` or ``1,234``: a decimal fraction to some, a thousand and more to others."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One kind of column: what its values look like and how they are converted."""

    kind: str
    pattern: str
    convert: Callable[[pl.Expr], pl.Expr]
    sql: str
    """DuckDB expression; ``{}`` is the column."""
    sql_type: str
    sql_check: str = ""
    """DuckDB condition that a value fits; without one, the pattern is matched, which takes much longer."""
    quick: Callable[[pl.Expr, pl.Expr], pl.Expr] | None = None
    """From a column and its conversion (null where it failed): does it fit the pattern? Faster than matching it."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern for Python, to judge a few values."""
        return re.compile(self.pattern)

    def sql_fits(self, value: str) -> str:
        """The condition, in DuckDB's SQL, that a value is of this kind."""
        matches = self.sql_check.format(value) if self.sql_check else f"regexp_full_match({value}, '{self.pattern}')"
        return f"({matches} AND {self.sql.format(value)} IS NOT NULL)"

    def fits(self, column: pl.Expr) -> pl.Expr:
        return column.str.contains(f"^(?:{self.pattern})$")

    def fits_as(self, column: pl.Expr, values: pl.Expr) -> pl.Expr:
        """The same as :meth:`fits` for values that were converted without failure."""
        return self.fits(column) if self.quick is None else self.quick(column, values)


def _is_whole(column: pl.Expr, values: pl.Expr) -> pl.Expr:
    code = column.str.starts_with("0") & (values != 0) | column.str.starts_with("00") | column.str.starts_with("+")
    return ~(code | column.str.starts_with("-0")) & values.is_between(-(10**18), 10**18, closed="none")


def _is_day(column: pl.Expr, _: pl.Expr) -> pl.Expr:
    return (column.str.len_bytes() == 10) & ~column.str.starts_with("+") & ~column.str.starts_with("-")


def _moment(pattern: str, form: str, *, zone: bool = False) -> Rule:
    def convert(column: pl.Expr) -> pl.Expr:
        if not zone:
            return column.str.to_datetime(form, time_unit="us", strict=False)
        plain = column.str.replace(r"Z$", "+0000")
        return plain.str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False)

    kind = "TIMESTAMPTZ" if zone else "TIMESTAMP"
    return Rule(kind="datetime", pattern=pattern, convert=convert, sql=f"TRY_CAST({{}} AS {kind})", sql_type=kind)


INTEGER = Rule(
    kind="integer",
    # At most 18 digits fit 64 bits; longer ones are card numbers and the like. A leading zero or plus is a code.
    pattern="0|-?[1-9][0-9]{0,17}",
    convert=lambda column: column.cast(pl.Int64, strict=False),
    sql="TRY_CAST({} AS BIGINT)",
    sql_type="BIGINT",
    sql_check="(CAST(TRY_CAST({0} AS BIGINT) AS VARCHAR) = {0} AND abs(TRY_CAST({0} AS BIGINT)) < 1000000000000000000)",
    quick=_is_whole,
)
NUMBER = Rule(
    kind="number",
    # `2E10` may be a code: a capital E counts only with a sign after it.
    pattern=rf"-?(?:(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+){_EXPONENT}|[Ii]nf)",
    convert=lambda column: column.cast(pl.Float64, strict=False),
    sql="TRY_CAST({} AS DOUBLE)",
    sql_type="DOUBLE",
)
COMMA = Rule(
    kind="number",
    pattern=rf"-?(?:{_WHOLE}?,[0-9]+{_EXPONENT}|{_WHOLE})",
    convert=lambda column: column.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False),
    sql="TRY_CAST(replace({}, ',', '.') AS DOUBLE)",
    sql_type="DOUBLE",
)
RULES: tuple[Rule, ...] = (
    INTEGER,
    NUMBER,
    Rule(
        kind="boolean",
        pattern="true|false|True|False|TRUE|FALSE",
        convert=lambda column: pl.when(column.is_in(_TRUE)).then(True).when(column.is_in(_FALSE)).then(False),
        sql="(lower({}) = 'true')",
        sql_type="BOOLEAN",
        sql_check="({} IN ('true', 'false', 'True', 'False', 'TRUE', 'FALSE'))",
        quick=lambda column, _: column.is_not_null() | column.is_null(),
    ),
    Rule(
        kind="date",
        pattern=_DAY,
        convert=lambda column: column.str.to_date("%Y-%m-%d", strict=False),
        sql="TRY_CAST({} AS DATE)",
        sql_type="DATE",
        sql_check="(length({0}) = 10 AND CAST(TRY_CAST({0} AS DATE) AS VARCHAR) = {0})",
        quick=_is_day,
    ),
    _moment(f"{_DAY}T{_CLOCK}", "%Y-%m-%dT%H:%M:%S%.f"),
    _moment(f"{_DAY} {_CLOCK}", "%Y-%m-%d %H:%M:%S%.f"),
    _moment(rf"{_DAY}T[0-9]{{2}}:[0-9]{{2}}", "%Y-%m-%dT%H:%M"),
    _moment(rf"{_DAY} [0-9]{{2}}:[0-9]{{2}}", "%Y-%m-%d %H:%M"),
    _moment(f"{_DAY}T{_CLOCK}{_ZONE}", "%Y-%m-%dT%H:%M:%S%.f%z", zone=True),
    _moment(f"{_DAY} {_CLOCK}{_ZONE}", "%Y-%m-%d %H:%M:%S%.f%z", zone=True),
    Rule(
        kind="time",
        pattern=_CLOCK,
        convert=lambda column: column.str.to_time("%H:%M:%S%.f", strict=False),
        sql="TRY_CAST({} AS TIME)",
        sql_type="TIME",
    ),
)
"""Tried in this order; the first that every value fits wins."""


def infer(
    frame: pl.DataFrame,
    *,
    decimal: str | None = None,
    comma: bool = False,
    text: Collection[str] = (),
    only: Collection[str] | None = None,
) -> pl.DataFrame:
    """Give each column of a frame of text its kind.

    ``decimal`` forces the decimal sign; otherwise a point is one, and a comma too where ``comma`` allows it and some
    column cannot be read as thousands. Columns named in ``text`` stay as they are; ``only`` limits the kinds. Nulls
    stay nulls; in a column that is not text an empty string is missing too.
    """
    # Columns go by number in here: Polars takes a name like ^a$ for a pattern.
    plain = frame.rename({name: f"t{number}" for number, name in enumerate(frame.columns)})
    rules = allowed(decimal, comma, only)
    waiting = {
        column.name: plausible(column, rules)
        for column, original in zip(plain.iter_columns(), frame.columns, strict=True)
        if original not in text and column.dtype == pl.String
    }
    done: dict[str, tuple[Rule, pl.Series]] = {}
    while waiting := {name: rules for name, rules in waiting.items() if rules}:
        tried = {name: rules.pop(0) for name, rules in waiting.items()}
        for name, values in _attempt(plain, tried).items():
            done[name] = (tried[name][0], values)
            waiting.pop(name)
    keep = _settle(plain, done, decimal)
    ready = plain.with_columns(values.alias(name) for name, (_, values) in done.items() if name in keep)
    return ready.rename(dict(zip(plain.columns, frame.columns, strict=True)))


def _prepared(column: pl.Expr, trim: bool) -> pl.Expr:
    plain = column.str.strip_chars(" ") if trim else column
    return pl.when(plain != "").then(plain)


def _attempt(frame: pl.DataFrame, tried: dict[str, tuple[Rule, bool]]) -> dict[str, pl.Series]:
    """The columns that fit the rule they are tried with, converted. Two passes, so that nothing is computed twice."""
    names = list(tried)
    blank = frame.select((pl.col(names) == "").any()).row(0, named=True)
    texts = frame.select(
        _prepared(pl.col(name), trim) if trim or blank[name] else pl.col(name) for name, (_, trim) in tried.items()
    )
    values = texts.select(rule.convert(pl.col(name)).alias(f"v{name}") for name, (rule, _) in tried.items())
    both = pl.concat([texts, values], how="horizontal")
    gaps = both.null_count().row(0, named=True)
    checks = [
        tried[name][0].fits_as(pl.col(name), pl.col(f"v{name}")).all().alias(name)
        for name in names
        if gaps[name] == gaps[f"v{name}"]
    ]
    holds = both.select(checks).row(0, named=True) if checks else {}
    return {name: values.get_column(f"v{name}") for name, fine in holds.items() if fine}


def plausible(column: pl.Series, rules: list[Rule]) -> list[tuple[Rule, bool]]:
    """The rules that a sample of the column fits (as it is, or once trimmed), in order.

    Most columns of text are recognized by that, without reading them whole.
    """
    if column.null_count() == column.len():
        return []
    found = column.drop_nulls()
    sample = found.gather_every(max(1, found.len() // _SAMPLE)).unique().to_list()
    trimmed = [text for value in sample if (text := value.strip(" "))]
    if not trimmed:
        return []
    fitting = [rule for rule in rules if all(map(rule.regex.fullmatch, trimmed))]
    spaced = len(trimmed) < len(sample) or any(value[0] == " " or value[-1] == " " for value in sample)
    return [*((rule, False) for rule in fitting if not spaced), *((rule, True) for rule in fitting)]


def _settle(frame: pl.DataFrame, done: dict[str, tuple[Rule, pl.Series]], decimal: str | None) -> set[str]:
    def clear(name: str) -> bool:
        column = frame.get_column(name)
        marked = column.filter(column.str.contains("[.,]"))
        return not marked.str.contains(f"^ *{THOUSANDS} *$").all()

    return settle({name: rule for name, (rule, _) in done.items()}, decimal, clear)


def settle(rules: dict[str, Rule], decimal: str | None, clear: Callable[[str], bool]) -> set[str]:
    """Columns to convert, once the whole file has said which decimal sign it uses: thousands are never guessed.

    ``clear`` tells whether a column has a value with a decimal sign that cannot be read as thousands.
    """
    commas = {name for name, rule in rules.items() if rule is COMMA}
    if decimal is not None or not commas:
        return set(rules)
    if any(map(clear, commas)):
        return {name for name, rule in rules.items() if rule is not NUMBER or clear(name)}
    return set(rules) - commas


def allowed(decimal: str | None, comma: bool, only: Collection[str] | None = None) -> list[Rule]:
    """The rules to try, in order: which depends on what is known of the decimal sign."""
    return [
        rule
        for rule in (*RULES, COMMA)
        if (only is None or rule.kind in only)
        and (rule is not NUMBER or decimal != ",")
        and (rule is not COMMA or (comma and not decimal) or decimal == ",")
    ]
