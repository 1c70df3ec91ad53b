"""SQL over tables in an engine, in DuckDB's dialect; Spark gets the same statements transpiled.

Column number i of the source is called ``c{i}`` in statements, so that names in a file cannot clash with ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from sfumato.data.declared import BOOLEANS
from sfumato.data.sql_quoting import quoted_name, quoted_text
from sfumato.dataset import Kind

_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMP",
    Kind.CATEGORY: "VARCHAR",
}


def blanked(
    source: str, kinds: Mapping[str, Kind], codes: Mapping[str, Sequence[object]], *, row_number: str | None = None
) -> str:
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
                yield f"{stored} = {quoted_text(str(low).strip(' '))}"
            else:
                cell = quoted_name(name) if number else f"TRY_CAST({stored} AS DOUBLE)"
                ends = [f"{cell} {sign} {end}" for sign, end in ((">=", low), ("<=", high)) if math.isfinite(end)]
                yield f"({' AND '.join(ends) or f'{cell} IS NOT NULL'})"

    def value(name: str) -> str:
        is_missing = " OR ".join(hits(name))
        return (
            f"CASE WHEN {is_missing} THEN NULL ELSE {quoted_name(name)} END AS {quoted_name(name)}"
            if is_missing
            else quoted_name(name)
        )

    columns = [*map(value, kinds), *([] if row_number is None else [quoted_name(row_number)])]
    return f"(SELECT {', '.join(columns)} FROM {source} AS m)" if codes else source


def _cast(cell: str, kind: Kind) -> str:
    """The cell in that kind, NULL where it does not fit. As in memory, nothing is rounded or cut."""
    plain = f"TRY_CAST({cell} AS {_TYPES[kind]})"
    match kind:
        case Kind.BOOLEAN:
            words = f"LOWER(CAST({cell} AS VARCHAR))"
            meant = {
                answer: [quoted_text(word) for word, said in BOOLEANS.items() if said is answer]
                for answer in (True, False)
            }
            return " ".join(["CASE", *(f"WHEN {words} IN ({', '.join(meant[a])}) THEN {a!s}" for a in meant), "END"])
        case Kind.INTEGER:
            return f"CASE WHEN TRY_CAST({cell} AS DOUBLE) = {plain} THEN {plain} END"
        case Kind.DATE:
            return f"CASE WHEN TRY_CAST({cell} AS TIMESTAMP) = CAST({plain} AS TIMESTAMP) THEN {plain} END"
        case Kind.NUMBER | Kind.DATETIME | Kind.CATEGORY:
            return plain
        case _:
            assert_never(kind)


def base(
    source: str,
    columns: Sequence[str],
    casts: Mapping[str, Kind],
    floats: Collection[str] = (),
    *,
    row_number: str | None = None,
) -> str:
    """All columns of the source under our names, in their declared kinds, with the row number as ``rn``.

    In the columns that are ``floats``, zero has no sign and NaN is missing, as in memory
    (:func:`sfumato.data.missing.plain_numbers`).
    """

    def value(name: str) -> str:
        cell = _cast(quoted_name(name), casts[name]) if name in casts else quoted_name(name)
        return f"CASE WHEN {cell} = 0 THEN 0 WHEN NOT ISNAN({cell}) THEN {cell} END" if name in floats else cell

    number = "0" if row_number is None else quoted_name(row_number)
    chosen = [*(f"{value(name)} AS c{i}" for i, name in enumerate(columns)), f"{number} AS rn"]
    return f"SELECT {', '.join(chosen)} FROM {source}"


def failed_casts(source: str, casts: Mapping[str, Kind]) -> str:
    """Per column to be cast: how many values do not fit its declared kind."""
    counts = [
        f"COUNT(CASE WHEN {cell} IS NOT NULL AND ({_cast(cell, kind)}) IS NULL THEN 1 END) AS f{i}"
        for i, (cell, kind) in enumerate((quoted_name(name), kind) for name, kind in casts.items())
    ]
    return f"SELECT {', '.join(counts)} FROM {source}"


@dataclass(frozen=True, kw_only=True)
class KeyColumn:
    """A column in a packed integer key."""

    cell: str
    codes: str
    """Name of the table (value, code) that the engine joins."""
    width: int
    """Codes are below this number."""
    empty: int
    """Code of a missing value."""


def counted(table: str, keys: Sequence[Sequence[KeyColumn]]) -> str:
    """Distinct combinations of columns and the number of rows of each.

    Each sequence of columns is packed into one integer key ``k0``, ``k1``, ...; its last column counts in ones.
    """
    names = ", ".join(f"k{position}" for position in range(len(keys)))
    return f"SELECT {names}, COUNT(*) AS n FROM ({_keyed(table, keys)}) AS g GROUP BY {names}"


def estimated(table: str, keys: Sequence[Sequence[KeyColumn]]) -> str:
    """About how many distinct combinations there are, in constant memory."""
    names = [f"k{position}" for position in range(len(keys))]
    key = names[0] if len(keys) == 1 else f"CONCAT_WS('-', {', '.join(names)})"
    return f"SELECT APPROX_COUNT_DISTINCT({key}) AS n FROM ({_keyed(table, keys)}) AS g"


def _keyed(table: str, keys: Sequence[Sequence[KeyColumn]]) -> str:
    packed = [f"{key} AS k{position}" for position, key in enumerate(key_expressions(keys))]
    return f"SELECT {', '.join(packed)} FROM ({table}) AS t {code_joins(keys)}"


def key_expressions(keys: Sequence[Sequence[KeyColumn]]) -> list[str]:
    """The integer keys of a row of ``t``, in a statement with :func:`code_joins`."""
    expressions = []
    for run in keys:
        key = "CAST(0 AS BIGINT)"
        for column in run:
            key = f"({key} * {max(column.width, 1)} + COALESCE(n_{column.cell}.code, {column.empty}))"
        expressions.append(key)
    return expressions


def code_joins(keys: Sequence[Sequence[KeyColumn]]) -> str:
    """The joins that give each value of ``t`` its code."""
    columns = [column for run in keys for column in run]
    return " ".join(f"LEFT JOIN {c.codes} AS n_{c.cell} ON t.{c.cell} = n_{c.cell}.value" for c in columns)


def released(table: str, cells: Mapping[str, str], *, order: str, key: str | None) -> str:
    """The release: columns under their own names, shuffled by a keyed hash of the row number, or in original order.

    ``key`` is a table of one row with the column ``shuffle``, so that the key does not stand in the statement.
    """
    columns = ", ".join(f"t.{cell} AS {quoted_name(name)}" for name, cell in cells.items())
    return f"SELECT {columns} {_ordered(table, order, key)}"


def row_map(table: str, *, order: str, key: str | None) -> str:
    """For each row of the release, the number of the row of the original."""
    return f"SELECT t.rn AS original_row {_ordered(table, order, key)}"


def _ordered(table: str, order: str, key: str | None) -> str:
    if key is None:
        return f"FROM ({table}) AS t ORDER BY t.rn"
    place = order.format("CONCAT_WS(CHR(31), s.shuffle, CAST(t.rn AS VARCHAR))")
    return f"FROM ({table}) AS t CROSS JOIN {key} AS s ORDER BY {place}, t.rn"
