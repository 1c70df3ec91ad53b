"""The statements an engine runs: exact, bounded, whole numbers per group."""

from __future__ import annotations

from datetime import date, datetime
from math import isqrt
from typing import Any

from tacit.answer.measurement import Cells, Count, Distinct, Sum
from tacit.answer.question import Question
from tacit.answer.scalar import text_sql
from tacit.answer.strategy import Strategy, refinement

__all__ = ["additive", "cells", "distinct", "group_columns", "value_sql"]

_FEW = 4
"""Up to so many groups of a unit are chosen by passes; more by a window."""
_CODE_BITS = 20
_SAFE = 1 - 2.0**-40
"""Scaling down to a norm is done in floating point and cut to whole numbers towards zero; this factor keeps the norm
of the result below the bound whatever the rounding."""


def value_sql(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return f"TIMESTAMP {text_sql(value.isoformat(sep=' '))}"
    if isinstance(value, date):
        return f"DATE {text_sql(value.isoformat())}"
    return str(value) if isinstance(value, int) else text_sql(str(value))


def group_columns(question: Question) -> list[str]:
    """What tells groups apart in a statement: a number where all groups are public, else the keys themselves."""
    if not question.keys:
        return []
    return ["g"] if question.public_keys else [f"k{i}" for i in range(len(question.keys))]


def _source(question: Question, columns: list[str]) -> str:
    """The rows with their group; rows of no known group are left out, so that they take nobody's place."""
    unit = [] if question.rows.by_row else ["u"]
    rows = f"({question.rows.sql()})"
    if question.keys and question.public_keys:
        number, joins = "", ""
        for i, key in enumerate(question.keys):
            values = key.values or ()
            listed = ", ".join(f"({value_sql(value)}, {place})" for place, value in enumerate(values))
            joins += f" JOIN (VALUES {listed}) AS v{i}(name{i}, code{i}) ON {key.scalar.sql} = name{i}"
            number = f"({number} * {len(values)} + code{i})" if number else f"CAST(code{i} AS BIGINT)"
        return f"SELECT {', '.join([*unit, f'{number} AS g', *columns])} FROM {rows}{joins}"
    keys = [f"{key.scalar.sql} AS k{i}" for i, key in enumerate(question.keys)]
    inner = f"SELECT {', '.join([*unit, *keys, *columns]) or '1'} FROM {rows}"
    tests = []
    for i, key in enumerate(question.keys):
        if key.values is None:
            tests.append(f"k{i} IS NOT NULL")
        else:
            tests.append(f"k{i} IN ({', '.join(value_sql(value) for value in key.values)})")
    return f"SELECT * FROM ({inner}) WHERE {' AND '.join(tests)}" if tests else inner


def _grouped(select: list[str], source: str, keys: list[str]) -> str:
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *select])} FROM {source}{by}"


def additive(strategy: Strategy, secret: int) -> str:
    """Keys, then one number per count and sum, then the number of units, per group."""
    question = strategy.question
    keys = group_columns(question)
    columns, per_row, chosen = [], [], []
    for i, measurement in enumerate(question.measurements):
        if isinstance(measurement, Count):
            columns.append(f"{measurement.condition} AS m{i}")
            per_row.append(f"COUNT(*) FILTER (WHERE m{i})")
        elif isinstance(measurement, Sum):
            columns.append(f"{measurement.steps} AS m{i}")
            per_row.append(f"COALESCE(SUM(m{i}), 0)")
        else:
            continue
        chosen.append((i, measurement))
    source = _source(question, columns)
    if strategy.bounding == "row":
        return _grouped([*per_row, "COUNT(*)"], f"({source})", keys)
    r, g = strategy.rows, strategy.groups
    parts = []
    for (i, measurement), total in zip(chosen, per_row, strict=True):
        low, high = _part(measurement, r)
        if strategy.bounding == "clip":
            far, times = _norm(measurement, strategy), refinement(measurement)
            once = isinstance(measurement, Count) and measurement.once
            low, high = (-(far // times) - 1 if low < 0 else 0), 1 if once else far // times + 1
            parts.append(f"CAST(greatest(least({total}, {high}), {low}) AS BIGINT) * {times} AS m{i}")
            continue
        parts.append(f"CAST(greatest(least({total}, {high}), {low}) AS BIGINT) AS m{i}")
    names = [f"m{i}" for i, _ in chosen]
    totals = [*(f"COALESCE(SUM({name}), 0)" for name in names), "COUNT(*)"]
    if strategy.bounding == "sample" and keys == ["g"] and g <= _FEW:
        views, kept = _passes(source, g, secret)
        each = _grouped(parts or ["1"], f"({kept})", ["u", *keys])
        return f"WITH {views} {_grouped(totals, f'({each})', keys)}"
    each = _grouped(parts or ["1"], f"({source})", ["u", *keys])
    if strategy.bounding == "clip":
        return _clipped(strategy, each, keys, chosen)
    if keys:
        order = f"ORDER BY hash({', '.join(keys)}, u, {secret}), {', '.join(keys)}"
        ranked = f"SELECT *, row_number() OVER (PARTITION BY u {order}) AS place FROM ({each})"
        each = f"SELECT * FROM ({ranked}) WHERE place <= {g}"
    return _grouped(totals, f"({each})", keys)


def _passes(source: str, groups: int, secret: int) -> tuple[str, str]:
    """Keep the rows of each unit's ``groups`` first groups in a keyed random order, by one pass per group.

    A third of the work of a window over all pairs of unit and group. The group's number fills the low bits of its place
    in the order, so two groups of a unit never share a place and never more than ``groups`` of them are kept.
    """
    place = f"CAST(hash(g, u, {secret}) >> {_CODE_BITS + 1} AS BIGINT) * {1 << _CODE_BITS} + g"
    views = [f"r AS (SELECT *, {place} AS h FROM ({source}))", "f1 AS (SELECT u, min(h) AS h1 FROM r GROUP BY u)"]
    for i in range(2, groups + 1):
        later = f"min(r.h) FILTER (WHERE r.h > f{i - 1}.h{i - 1}) AS h{i}"
        views.append(f"f{i} AS (SELECT r.u, {later} FROM r JOIN f{i - 1} ON r.u = f{i - 1}.u GROUP BY r.u)")
    last = f"f{groups}"
    kept = f"SELECT r.* FROM r JOIN {last} ON r.u = {last}.u WHERE {last}.h{groups} IS NULL OR r.h <= {last}.h{groups}"
    return ", ".join(views), kept


def _part(measurement: Count | Sum, rows: int) -> tuple[int, int]:
    if isinstance(measurement, Count):
        return 0, 1 if measurement.once else rows
    return min(0, measurement.low) * rows, max(0, measurement.high) * rows


def _norm(measurement: Count | Sum, strategy: Strategy) -> int:
    """The largest whole number of fine steps not above sqrt(groups)·reach."""
    return isqrt(_bound(measurement, strategy))


def _bound(measurement: Count | Sum, strategy: Strategy) -> int:
    """The square of the norm a unit's vector is scaled down to, in fine steps."""
    return strategy.groups * (measurement.reach(strategy.rows) * refinement(measurement)) ** 2


def _clipped(strategy: Strategy, each: str, keys: list[str], chosen: list[tuple[int, Count | Sum]]) -> str:
    """Scale every unit's vector over the groups down to its bound in L2 norm; squares are added up exactly."""
    squares = [f"SUM(CAST(m{i} AS HUGEINT) * m{i}) AS s{i}" for i, _ in chosen]
    norms = f"SELECT u, {', '.join(squares)} FROM each GROUP BY u"
    parts = []
    for i, measurement in chosen:
        bound = _bound(measurement, strategy)
        factor = f"sqrt(CAST({float(bound)!r} AS DOUBLE) / CAST(s{i} AS DOUBLE)) * CAST({_SAFE!r} AS DOUBLE)"
        scaled = f"CAST(trunc(m{i} * ({factor})) AS BIGINT)"
        parts.append(f"COALESCE(SUM(CASE WHEN s{i} <= {bound} THEN m{i} ELSE {scaled} END), 0)")
    last = _grouped([*parts, "COUNT(*)"], "each JOIN norms USING (u)", keys)
    return f"WITH each AS ({each}), norms AS ({norms}) {last}"


def _bounded_rows(strategy: Strategy, value: str, column: str, secret: int, *, same: bool) -> str:
    """Values with at most ``rows`` of each unit in a group and at most ``groups`` groups of each unit.

    With ``same``, equal values within a unit and group count as one.
    """
    question = strategy.question
    keys = group_columns(question)
    source = f"SELECT * FROM ({_source(question, [f'{value} AS {column}'])}) WHERE {column} IS NOT NULL"
    if strategy.bounding == "row":
        return source
    by = ", ".join(["u", *keys])
    if same:
        source = f"SELECT DISTINCT {by}, {column} FROM ({source})"
        order = f"hash({column}, u, {secret}), {column}"
    else:
        # Rows of equal value are numbered, so that each row of a unit has the same chance of being kept.
        source = f"SELECT *, row_number() OVER (PARTITION BY {by}, {column}) AS twin FROM ({source})"
        order = f"hash({column}, twin, u, {secret}), {column}, twin"
    few = f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY {order}) AS turn FROM ({source})"
    kept = f"SELECT * FROM ({few}) WHERE turn <= {strategy.rows}"
    if keys:
        rank = f"dense_rank() OVER (PARTITION BY u ORDER BY hash({', '.join(keys)}, u, {secret}), {', '.join(keys)})"
        kept = f"SELECT * FROM (SELECT *, {rank} AS place FROM ({kept})) WHERE place <= {strategy.groups}"
    return kept


def cells(strategy: Strategy, measurement: Cells, secret: int) -> str:
    """Keys, cell and number of rows."""
    value = f"CASE WHEN {measurement.condition} THEN {measurement.cell} END"
    rows = _bounded_rows(strategy, value, "cell", secret, same=False)
    return _grouped(["COUNT(*)"], f"({rows})", [*group_columns(strategy.question), "cell"])


def distinct(strategy: Strategy, measurement: Distinct, secret: int) -> str:
    """Keys and number of different values."""
    value = f"CASE WHEN {measurement.condition} THEN {measurement.value} END"
    rows = _bounded_rows(strategy, value, "seen", secret, same=True)
    return _grouped(["COUNT(DISTINCT seen)"], f"({rows})", group_columns(strategy.question))
