"""The SQL of a large release, in DuckDB's words; Spark gets the same statements transpiled.

Inside, source column number i is called ``c{i}``, so no name of a file can clash with a name of ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.data.sql_quoting import quoted_name
from sfumato.schema import Kind
from sfumato.schema.casting import BOOLEANS

__all__ = [
    "ReleasePlan",
    "base",
    "blanked",
    "counted",
    "distinct",
    "estimated",
    "failed_casts",
    "text",
    "transformed",
]

_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMP",
    Kind.CATEGORY: "VARCHAR",
}


def text(value: str) -> str:
    """A text, quoted."""
    return "'" + value.replace("'", "''") + "'"


def blanked(source: str, kinds: Mapping[str, Kind], codes: Mapping[str, Sequence[Any]]) -> str:
    """The source with missing codes read as empty cells, by the rules of :func:`sfumato.data.missing.is_missing`."""

    def hits(name: str) -> Iterator[str]:
        number = kinds[name] in (Kind.INTEGER, Kind.NUMBER)
        day = f"CAST({quoted_name(name)} AS DATE)" if kinds[name] is Kind.DATETIME else quoted_name(name)
        stored = f"TRIM(CAST({day} AS VARCHAR))"
        for code in codes.get(name, ()):
            low, high = code if isinstance(code, tuple) else (code, code)
            if number and isinstance(low, str):
                continue
            if not number and (isinstance(low, str) or low == high):
                yield f"{stored} = {text(str(low).strip(' '))}"
            else:
                cell = quoted_name(name) if number else f"TRY_CAST({stored} AS DOUBLE)"
                ends = [f"{cell} {sign} {end}" for sign, end in ((">=", low), ("<=", high)) if math.isfinite(end)]
                yield f"({' AND '.join(ends) or f'{cell} IS NOT NULL'})"

    def value(name: str) -> str:
        found = " OR ".join(hits(name))
        return (
            f"CASE WHEN {found} THEN NULL ELSE {quoted_name(name)} END AS {quoted_name(name)}"
            if found
            else quoted_name(name)
        )

    return f"(SELECT {', '.join(map(value, kinds))} FROM {source} AS m)" if codes else source


def _cast(cell: str, kind: Kind) -> str:
    """The cell in that kind, NULL where it does not fit. As in memory, nothing is rounded or cut."""
    plain = f"TRY_CAST({cell} AS {_TYPES[kind]})"
    match kind:
        case Kind.BOOLEAN:
            words = f"LOWER(CAST({cell} AS VARCHAR))"
            meant = {
                answer: [text(word) for word, said in BOOLEANS.items() if said is answer] for answer in (True, False)
            }
            return " ".join(["CASE", *(f"WHEN {words} IN ({', '.join(meant[a])}) THEN {a!s}" for a in meant), "END"])
        case Kind.INTEGER:
            return f"CASE WHEN TRY_CAST({cell} AS DOUBLE) = {plain} THEN {plain} END"
        case Kind.DATE:
            return f"CASE WHEN TRY_CAST({cell} AS TIMESTAMP) = CAST({plain} AS TIMESTAMP) THEN {plain} END"
        case _:
            return plain


def base(source: str, columns: Sequence[str], casts: Mapping[str, Kind], floats: Collection[str] = ()) -> str:
    """All columns of the source under our names, in their declared kinds.

    Zero has no sign in the columns that are ``floats``: -0.0 and 0.0 are one value to every count, and must not differ
    in what is written.
    """

    def value(name: str) -> str:
        cell = _cast(quoted_name(name), casts[name]) if name in casts else quoted_name(name)
        return f"CASE WHEN {cell} = 0 THEN 0 ELSE {cell} END" if name in floats else cell

    chosen = [f"{value(name)} AS c{i}" for i, name in enumerate(columns)]
    return f"SELECT {', '.join(chosen)} FROM {source}"


def failed_casts(source: str, casts: Mapping[str, Kind]) -> str:
    """Per column to be cast: how many values do not fit its declared kind."""
    asked = [
        f"COUNT(CASE WHEN {cell} IS NOT NULL AND ({_cast(cell, kind)}) IS NULL THEN 1 END) AS f{i}"
        for i, (cell, kind) in enumerate((quoted_name(name), kind) for name, kind in casts.items())
    ]
    return f"SELECT {', '.join(asked)} FROM {source}"


def distinct(source: str, column: int) -> str:
    """The distinct values of a column."""
    return f"SELECT DISTINCT c{column} AS value FROM ({source}) AS b"


def counted(source: str, runs: Sequence[Sequence[tuple[int, int, int]]]) -> str:
    """Distinct combinations and how many rows hold each: the one GROUP BY that everything rests on.

    A run of columns (number, width, number of "no value") is packed into one key, by way of the tables ``code_{i}``
    (value, code). The last column of a run counts in ones.
    """
    names = ", ".join(f"k{position}" for position in range(len(runs)))
    return f"SELECT {names}, COUNT(*) AS n FROM ({_keyed(source, runs)}) AS g GROUP BY {names}"


def estimated(source: str, runs: Sequence[Sequence[tuple[int, int, int]]]) -> str:
    """About how many distinct combinations there are, without holding them."""
    names = [f"k{position}" for position in range(len(runs))]
    key = names[0] if len(runs) == 1 else f"CONCAT_WS('-', {', '.join(names)})"
    return f"SELECT APPROX_COUNT_DISTINCT({key}) AS n FROM ({_keyed(source, runs)}) AS g"


def _keyed(source: str, runs: Sequence[Sequence[tuple[int, int, int]]]) -> str:
    joins, keys = [], []
    for position, run in enumerate(runs):
        key = "CAST(0 AS BIGINT)"
        for i, width, empty in run:
            key = f"({key} * {max(width, 1)} + COALESCE(n{i}.code, {empty}))"
            joins.append(f"LEFT JOIN code_{i} AS n{i} ON b.c{i} = n{i}.value")
        keys.append(f"{key} AS k{position}")
    return f"SELECT {', '.join(keys)} FROM ({source}) AS b {' '.join(joins)}"


@dataclass(frozen=True, kw_only=True)
class ReleasePlan:
    """What becomes of each column of the source, by its number."""

    columns: Sequence[str]
    """Names of the source's columns."""
    kept: Sequence[int]
    """Columns of the release."""
    constants: Mapping[int, str] = field(default_factory=dict)
    """Columns that show one label everywhere."""
    maps: Mapping[int, bool] = field(default_factory=dict)
    """Columns shown through the table ``map_{i}`` (value, label); True: it says something of empty cells."""
    quasi: Sequence[int] = ()
    """Columns that the table ``fate`` (``k{i}``, ..., fate) names classes by."""
    fate: bool = False
    """Whether some classes are suppressed: fate 1 whole, fate 2 only in ``partly``."""
    starred: Sequence[int] = ()
    """Columns that show ``*`` in rows that are suppressed whole and kept."""
    partly: Sequence[int] = ()
    """Columns that show ``*`` in rows that are suppressed partly."""
    drop: bool = True
    """Leave rows out that are suppressed whole."""
    pseudonyms: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """Columns replaced by the keyed hash of (scope, value), of so many digits."""
    shuffled: bool = True


def transformed(source: str, plan: ReleasePlan, *, order: str | None) -> str:
    """The release. The one-row table ``secret`` holds the keys, so that none stands in the text of a statement."""
    joins = []
    shown: dict[int, str] = {}
    for i in range(len(plan.columns)):
        if i in plan.constants:
            shown[i] = text(plan.constants[i])
        elif i in plan.maps:
            same = "IS NOT DISTINCT FROM" if plan.maps[i] else "="
            joins.append(f"LEFT JOIN map_{i} AS m{i} ON b.c{i} {same} m{i}.value")
            shown[i] = f"m{i}.label"
        elif i in plan.pseudonyms:
            scope, digits = plan.pseudonyms[i]
            message = f"ENCODE({text(scope)} || CHR(0) || CAST(b.c{i} AS VARCHAR))"
            inner = f"UNHEX(SHA256(s.ipad || {message}))"
            shown[i] = f"CASE WHEN b.c{i} IS NOT NULL THEN SUBSTR(SHA256(s.opad || {inner}), 1, {digits}) END"
        else:
            shown[i] = f"b.c{i}"
    picked = [f"{shown[i]} AS r{i}" for i in dict.fromkeys((*plan.kept, *plan.quasi))]
    if plan.shuffled and order is not None:
        row = ", ".join(f"CAST(b.c{i} AS VARCHAR)" for i in range(len(plan.columns)))
        picked.append(f"{order.format(f'CONCAT_WS(CHR(31), s.shuffle, {row})')} AS place")
    rows = f"SELECT {', '.join(picked)} FROM ({source}) AS b CROSS JOIN secret AS s {' '.join(joins)}"
    final = []
    for i in plan.kept:
        value = f"r.r{i}"
        if plan.fate and (i in plan.starred or i in plan.partly):
            fates = [*([1] if i in plan.starred else []), *([2] if i in plan.partly else [])]
            value = f"CASE WHEN f.fate IN ({', '.join(map(str, fates))}) THEN '*' ELSE r.r{i} END"
        final.append(f"{value} AS {quoted_name(plan.columns[i])}")
    statement = f"SELECT {', '.join(final)} FROM ({rows}) AS r"
    if plan.fate:
        on = " AND ".join(f"r.r{i} IS NOT DISTINCT FROM f.k{i}" for i in plan.quasi)
        statement += f" LEFT JOIN fate AS f ON {on}"
        if plan.drop:
            statement += " WHERE f.fate IS NULL OR f.fate <> 1"
    if plan.shuffled and order is not None:
        statement += " ORDER BY r.place"
    return statement
