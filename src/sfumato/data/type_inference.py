"""Which kind a column of text really is: whole numbers, numbers, dates, times, true/false, or just text.

A column gets a kind only when *every* value of it fits, so one ZIP code with a leading zero in the last row keeps the
whole column text. The same patterns run in Polars (a table in memory) and in DuckDB (a file larger than memory).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import polars as pl

from sfumato.data.plain_format_checks import are_days, are_numbers, are_whole

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
class TypeRule:
    """One kind of column: what its values look like and how they are converted."""

    kind: str
    pattern: str
    convert: Callable[[pl.Expr], pl.Expr]
    sql: str
    """DuckDB expression; ``{}`` is the column."""
    sql_check: str = ""
    """DuckDB condition that a value fits; without one, the pattern is matched, which takes much longer."""
    arrow: str = ""
    """The Arrow type whose own reader is several times faster than ``convert``, but refuses a column as a whole."""
    quick: Callable[[pl.Series, pl.Series], bool] | None = None
    """From a column and its conversion, which did not fail: is it plain that every value fits the pattern?"""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern for Python, to judge a few values."""
        return re.compile(self.pattern)

    def sql_fits(self, value: str) -> str:
        """The condition, in DuckDB's SQL, that a value is of this kind."""
        matches = self.sql_check.format(value) if self.sql_check else f"regexp_full_match({value}, '{self.pattern}')"
        return f"({matches} AND {self.sql.format(value)} IS NOT NULL)"

    def at_once(self, column: pl.Series) -> pl.Series | None:
        """The whole column read by Arrow, or None if that is not possible."""
        if not self.arrow:
            return None
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return cast(pl.Series, pl.from_arrow(pc.cast(column.to_arrow(), pa.type_for_alias(self.arrow))))
        except pa.ArrowInvalid:
            return None

    def fits(self, column: pl.Series, values: pl.Series) -> bool:
        """Whether all values of a column, which were converted without failure, fit the pattern."""
        if self.quick is not None and self.quick(column, values):
            return True
        return bool(column.str.contains(f"^(?:{self.pattern})$").all())


def _moment(pattern: str, form: str, *, zone: bool = False) -> TypeRule:
    def convert(column: pl.Expr) -> pl.Expr:
        if not zone:
            return column.str.to_datetime(form, time_unit="us", strict=False)
        plain = column.str.replace(r"Z$", "+0000")
        return plain.str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False)

    kind = "TIMESTAMPTZ" if zone else "TIMESTAMP"
    sql = f"TRY_CAST({{}} AS {kind})"
    arrow = "" if zone else "timestamp[us]"
    return TypeRule(kind="datetime", pattern=pattern, convert=convert, arrow=arrow, sql=sql)


INTEGER = TypeRule(
    kind="integer",
    # A leading zero or plus is a code.
    pattern="0|-?[1-9][0-9]{0,17}",
    convert=lambda column: column.cast(pl.Int64, strict=False),
    sql="TRY_CAST({} AS BIGINT)",
    sql_check="(CAST(TRY_CAST({0} AS BIGINT) AS VARCHAR) = {0} AND abs(TRY_CAST({0} AS BIGINT)) < 1000000000000000000)",
    quick=are_whole,
)
NUMBER = TypeRule(
    kind="number",
    # `2E10` may be a code: a capital E counts only with a sign after it.
    pattern=rf"-?(?:(?:{_WHOLE}(?:\.[0-9]*)?|\.[0-9]+){_EXPONENT}|[Ii]nf)",
    convert=lambda column: column.cast(pl.Float64, strict=False),
    sql="TRY_CAST({} AS DOUBLE)",
    quick=are_numbers,
)
COMMA = TypeRule(
    kind="number",
    pattern=rf"-?(?:{_WHOLE}?,[0-9]+{_EXPONENT}|{_WHOLE})",
    convert=lambda column: column.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False),
    sql="TRY_CAST(replace({}, ',', '.') AS DOUBLE)",
)
RULES: tuple[TypeRule, ...] = (
    INTEGER,
    NUMBER,
    TypeRule(
        kind="boolean",
        pattern="true|false|True|False|TRUE|FALSE",
        convert=lambda column: pl.when(column.is_in([*_TRUE, *_FALSE])).then(column.str.len_bytes() == len("true")),
        sql="(lower({}) = 'true')",
        sql_check="({} IN ('true', 'false', 'True', 'False', 'TRUE', 'FALSE'))",
        quick=lambda column, values: True,
    ),
    TypeRule(
        kind="date",
        pattern=_DAY,
        # without its cache it takes the same time for few and for many different days, and half as long for many
        convert=lambda column: column.str.to_date("%Y-%m-%d", strict=False, cache=False),
        arrow="date32",
        sql="TRY_CAST({} AS DATE)",
        sql_check="(length({0}) = 10 AND CAST(TRY_CAST({0} AS DATE) AS VARCHAR) = {0})",
        quick=are_days,
    ),
    _moment(f"{_DAY}T{_CLOCK}", "%Y-%m-%dT%H:%M:%S%.f"),
    _moment(f"{_DAY} {_CLOCK}", "%Y-%m-%d %H:%M:%S%.f"),
    _moment(rf"{_DAY}T[0-9]{{2}}:[0-9]{{2}}", "%Y-%m-%dT%H:%M"),
    _moment(rf"{_DAY} [0-9]{{2}}:[0-9]{{2}}", "%Y-%m-%d %H:%M"),
    _moment(f"{_DAY}T{_CLOCK}{_ZONE}", "%Y-%m-%dT%H:%M:%S%.f%z", zone=True),
    _moment(f"{_DAY} {_CLOCK}{_ZONE}", "%Y-%m-%d %H:%M:%S%.f%z", zone=True),
    TypeRule(
        kind="time",
        pattern=_CLOCK,
        convert=lambda column: column.str.to_time("%H:%M:%S%.f", strict=False),
        sql="TRY_CAST({} AS TIME)",
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
    missing: Collection[str] = (),
    quoted: bool = False,
) -> pl.DataFrame:
    """Give each column of a frame of text its kind.

    ``decimal`` forces the decimal sign; otherwise a point is one, and a comma too where ``comma`` allows it and some
    column cannot be read as thousands. Columns named in ``text`` stay as they are; ``only`` limits the kinds. Nulls
    stay nulls, and words of ``missing`` become nulls (in a file where some fields are ``quoted`` the first of them is
    refused as :class:`SpelledMissing`); in a column that is not text an empty string is missing too.
    """
    # Columns go by number in here: Polars takes a name like ^a$ for a pattern.
    plain = {f"t{number}": column.alias(f"t{number}") for number, column in enumerate(frame.iter_columns())}
    rules = allowed(decimal, comma, only)

    def blank(name: str, words: Collection[str]) -> bool:
        """Blank these words in a column; False if there are none."""
        hit = plain[name].is_in(list(words))
        if not hit.any():
            return False
        if quoted:
            raise SpelledMissing
        plain[name] = plain[name].set(hit, None)
        return True

    # Words that are values too (-9) go first. The others make a conversion fail, and are looked for only then.
    values = [word for word in missing if any(rule.regex.fullmatch(word) for rule in rules)]
    waiting = {}
    for (name, column), original in zip(plain.items(), frame.columns, strict=True):
        if column.dtype != pl.String:
            continue
        if values:
            blank(name, values)
        if original not in text:
            if not set(_sample(plain[name])).isdisjoint(missing):
                blank(name, missing)
            waiting[name] = plausible(plain[name], rules)
    done: dict[str, tuple[TypeRule, pl.Series]] = {}
    while waiting := {name: rest for name, rest in waiting.items() if rest}:
        for name, found in _attempt(plain, {name: rest[0] for name, rest in waiting.items()}).items():
            if found is not None:
                done[name] = (waiting.pop(name)[0][0], found)
            elif not (missing and blank(name, missing)):  # else once more by the same rule
                waiting[name].pop(0)
    for name, column in plain.items():
        if missing and name not in done and column.dtype == pl.String:
            blank(name, missing)
    keep = _settle(plain, done, decimal)
    ready = [done[name][1] if name in keep else column for name, column in plain.items()]
    return pl.DataFrame([column.alias(name) for column, name in zip(ready, frame.columns, strict=True)])


class SpelledMissing(Exception):
    """A word for "missing" stands in a file with quotes: it matters whether it is quoted."""


def _prepared(column: pl.Series) -> pl.Series:
    plain = column.str.strip_chars(" ")
    return plain.set(plain == "", None)


def _attempt(columns: dict[str, pl.Series], tried: dict[str, tuple[TypeRule, bool]]) -> dict[str, pl.Series | None]:
    """The columns converted by the rule they are tried with, None where one does not fit."""
    texts = {name: _prepared(columns[name]) if trim else columns[name] for name, (_, trim) in tried.items()}
    values = {name: read for name, (rule, _) in tried.items() if (read := rule.at_once(texts[name])) is not None}
    # all other columns at once, so that every core has work
    rest = {name: rule for name, (rule, _) in tried.items() if name not in values}
    frame = pl.DataFrame([texts[name] for name in rest])
    values |= frame.select(rule.convert(pl.col(name)).alias(name) for name, rule in rest.items()).to_dict()
    found: dict[str, pl.Series | None] = {}
    for name, (rule, _) in tried.items():
        column, converted = texts[name], values[name]
        if converted.null_count() > column.null_count():
            column = _prepared(column)  # "" is no number, but no hindrance either
        whole = converted.null_count() == column.null_count()
        found[name] = converted if whole and rule.fits(column, converted) else None
    return found


def _sample(column: pl.Series) -> list[str]:
    """Some values from all over the column, each once."""
    found = column.drop_nulls() if column.null_count() else column
    return found.gather_every(max(1, found.len() // _SAMPLE)).unique().to_list()


def plausible(column: pl.Series, rules: list[TypeRule]) -> list[tuple[TypeRule, bool]]:
    """The rules that a sample of the column fits (as it is, or once trimmed), in order.

    Most columns of text are recognized by that, without reading them whole.
    """
    sample = _sample(column)
    trimmed = [text for value in sample if (text := value.strip(" "))]
    if not trimmed:
        return []
    fitting = [rule for rule in rules if all(map(rule.regex.fullmatch, trimmed))]
    spaced = len(trimmed) < len(sample) or any(value[0] == " " or value[-1] == " " for value in sample)
    return [*((rule, False) for rule in fitting if not spaced), *((rule, True) for rule in fitting)]


def _settle(
    columns: dict[str, pl.Series], done: dict[str, tuple[TypeRule, pl.Series]], decimal: str | None
) -> set[str]:
    def clear(name: str) -> bool:
        column = columns[name]
        marked = column.filter(column.str.contains("[.,]"))
        return not marked.str.contains(f"^ *{THOUSANDS} *$").all()

    return settle({name: rule for name, (rule, _) in done.items()}, decimal, clear)


def settle(rules: dict[str, TypeRule], decimal: str | None, clear: Callable[[str], bool]) -> set[str]:
    """Columns to convert, once the whole file has said which decimal sign it uses: thousands are never guessed.

    ``clear`` tells whether a column has a value with a decimal sign that cannot be read as thousands.
    """
    commas = {name for name, rule in rules.items() if rule is COMMA}
    if decimal is not None or not commas:
        return set(rules)
    if any(map(clear, commas)):
        return {name for name, rule in rules.items() if rule is not NUMBER or clear(name)}
    return set(rules) - commas


def allowed(decimal: str | None, comma: bool, only: Collection[str] | None = None) -> list[TypeRule]:
    """The rules to try, in order: which depends on what is known of the decimal sign."""
    return [
        rule
        for rule in (*RULES, COMMA)
        if (only is None or rule.kind in only)
        and (rule is not NUMBER or decimal != ",")
        and (rule is not COMMA or (comma and not decimal) or decimal == ",")
    ]
