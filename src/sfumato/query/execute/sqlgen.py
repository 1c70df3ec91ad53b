"""The statements an engine runs: exact, bounded, whole numbers per group."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from math import isqrt
from typing import Any

from sfumato.engines.contribution_bounding import CODE_BITS, SAFE, Bounded, Cut, Term
from sfumato.query.plan.aggregates import Cells, Count, Distinct, Share, Sum
from sfumato.query.plan.noise import Strategy, refinement
from sfumato.query.plan.relational import narrowed
from sfumato.query.plan.scalar import text_sql
from sfumato.query.sql.parse import Key, Question
from sfumato.schema import Kind

__all__ = ["Listed", "additive", "bounded", "cells", "distinct", "group_columns", "value_sql", "written_out"]

_FEW = 6
"""Up to so many groups of a unit are chosen by passes, two in each; more by a window."""


Listed = Callable[[tuple[Any, ...]], str | None]
"""Where an engine keeps a list of public values; None: they are written out."""


def written_out(values: tuple[Any, ...]) -> None:
    """No list is kept."""


def value_sql(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return f"TIMESTAMP {text_sql(value.isoformat(sep=' '))}"
    if isinstance(value, date):
        return f"DATE {text_sql(value.isoformat())}"
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)"
    return str(value) if isinstance(value, int) else text_sql(str(value))


def group_columns(question: Question) -> list[str]:
    """What tells groups apart in a statement: a number where all groups are public, else the keys themselves."""
    if not question.keys:
        return []
    return ["g"] if question.public_keys else [f"k{i}" for i in range(len(question.keys))]


def _source(question: Question, columns: list[str], listed: Listed) -> str:
    """The rows with their group; rows of no known group are left out, so that they take nobody's place."""
    unit = [] if question.rows.by_row else ["u"]
    keyed = [key.scalar.sql for key in question.keys]
    rows = f"({narrowed(question.rows, ' '.join([*keyed, *columns])).sql()})"
    if question.keys and question.public_keys:
        number, joins = "", ""
        for i, key in enumerate(question.keys):
            values = key.values or ()
            table = listed(values)
            if table is None:
                table = f"(VALUES {', '.join(f'({value_sql(value)}, {place})' for place, value in enumerate(values))})"
            joins += f" JOIN {table} AS v{i}(name{i}, code{i}) ON {key.scalar.sql} = name{i}"
            number = f"({number} * {len(values)} + code{i})" if number else f"CAST(code{i} AS BIGINT)"
        return f"SELECT {', '.join([*unit, f'{number} AS g', *columns])} FROM {rows}{joins}"
    keys = [f"{_nameable(key)} AS k{i}" for i, key in enumerate(question.keys)]
    inner = f"SELECT {', '.join([*unit, *keys, *columns]) or '1'} FROM {rows}"
    tests = []
    for i, key in enumerate(question.keys):
        if key.values is None:
            tests.append(f"k{i} IS NOT NULL")
        else:
            tests.append(f"k{i} IN ({', '.join(value_sql(value) for value in key.values)})")
    return f"SELECT * FROM ({inner}) WHERE {' AND '.join(tests)}" if tests else inner


def _nameable(key: Key) -> str:
    """A key as it can be told: dates outside the calendar ("infinity", year 12000) have no name of their own, would be
    taken for other days, and are in no group."""
    if key.values is not None or key.scalar.kind not in (Kind.DATE, Kind.DATETIME):
        return key.scalar.sql
    x, word = key.scalar.sql, "DATE" if key.scalar.kind is Kind.DATE else "TIMESTAMP"
    first, last = f"{word} '0001-01-01'", f"{word} '9999-12-31'"
    if key.scalar.kind is Kind.DATETIME:
        last = f"{word} '9999-12-31 23:59:59'"
    return f"(CASE WHEN {x} >= {first} AND {x} <= {last} THEN {x} END)"


def _grouped(select: list[str], source: str, keys: list[str]) -> str:
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *select])} FROM {source}{by}"


def additive(strategy: Strategy, secret: int, listed: Listed = written_out) -> str:
    """Keys, then one number per count and sum, then the number of units, per group."""
    question = strategy.question
    keys = group_columns(question)
    chosen = _chosen(question)
    columns, sums = [], []
    for i, measurement in chosen:
        match measurement:
            case Count(condition="TRUE"):
                sums.append("COUNT(*)")
            case Count():
                columns.append(f"{measurement.condition} AS m{i}")
                sums.append(f"COUNT(*) FILTER (WHERE m{i})")
            case Share():
                columns += _common(measurement)
                sums.append(f"COALESCE(SUM({measurement.steps}), 0)")
            case _:
                columns.append(f"{measurement.steps} AS m{i}")
                sums.append(f"COALESCE(SUM(m{i}), 0)")
    source = _source(question, columns, listed)
    if strategy.bounding == "row":
        return _grouped([*sums, "COUNT(*)"], f"({source})", keys)
    every = _everywhere(strategy)
    passes = not every and strategy.bounding == "sample" and keys == ["g"] and strategy.groups <= _FEW
    views, kept = _passes(source, strategy.groups, secret) if passes else ("", source)
    each = _each(strategy, kept, ["u", *keys], sums)
    if strategy.bounding == "clip":
        return _clipped(strategy, each, keys, chosen)
    if not every and not passes:
        order = _place(secret) if keys == ["g"] else f"hash({', '.join(keys)}, u, {secret}), {', '.join(keys)}"
        ranked = f"SELECT *, row_number() OVER (PARTITION BY u ORDER BY {order}) AS place FROM ({each})"
        each = f"SELECT * FROM ({ranked}) WHERE place <= {strategy.groups}"
    totals = [*(f"COALESCE(SUM(m{i}), 0)" for i, _ in chosen), "COUNT(*)"]
    return (f"WITH {views} " if views else "") + _grouped(totals, f"({each})", keys)


def _everywhere(strategy: Strategy) -> bool:
    """Whether units count in all of their groups: nobody is in more groups than there are."""
    groups = strategy.question.groups
    return groups is not None and strategy.groups >= groups


def _common(share: Share) -> list[str]:
    """The column that a share and those behind it are worked out from."""
    return [] if share.column is None else [f"{share.column[1]} AS {share.column[0]}"]


def _each(strategy: Strategy, source: str, by: list[str], sums: list[str]) -> str:
    """What counts of each unit in each group: its own counts and sums, each cut to what one unit may have."""
    parts, cut = [], []
    for (i, measurement), total in zip(_chosen(strategy.question), sums, strict=True):
        if isinstance(measurement, Share):
            parts.append(f"{total} AS m{i}")
            cut.append(f"{_share(strategy, i, measurement)} AS m{i}")
            continue
        term = _term(measurement, strategy)
        times = f" * {term.times}" if strategy.bounding == "clip" else ""
        parts.append(f"CAST(greatest(least({total}, {term.high}), {term.low}) AS BIGINT){times} AS m{i}")
        cut.append(f"m{i}")
    each = _grouped(parts or ["1"], f"({source})", by)
    if not any(isinstance(m, Share) for _, m in _chosen(strategy.question)):
        return each
    return f"SELECT {', '.join([*by, *cut])} FROM ({each})"


def bounded(strategy: Strategy, secret: int, listed: Listed = written_out) -> Bounded | None:
    """What ``additive`` adds up, in pieces; None where groups have no numbers or units no rows to bring together."""
    question, g = strategy.question, strategy.groups
    if strategy.bounding == "row" or group_columns(question) != ["g"]:
        return None
    chosen = _chosen(question)
    columns, numbers = [], []
    for i, measurement in chosen:
        match measurement:
            case Count(condition="TRUE"):
                pass
            case Count():
                columns.append(f"CASE WHEN {measurement.condition} THEN 1 ELSE 0 END AS m{i}")
                numbers.append(f"m{i}")
            case Share():
                columns += _common(measurement)
                numbers.append(f"COALESCE({measurement.steps}, 0)")
            case _:
                columns.append(f"COALESCE({measurement.steps}, 0) AS m{i}")
                numbers.append(f"m{i}")
    clip = strategy.bounding == "clip"
    ends = None if clip else ((g + 1) // 2, g // 2) if g <= _FEW else (g, 0)
    items = ["u", f"{'g' if clip else _place(secret)} AS place", *numbers]
    source = f"SELECT {', '.join(items)} FROM ({_source(question, columns, listed)})"
    terms = tuple(_term(m, strategy) for _, m in chosen if not (isinstance(m, Share) and m.place))
    return Bounded(source=source, groups=question.groups or 1, ends=ends, terms=terms)


def _chosen(question: Question) -> list[tuple[int, Count | Sum]]:
    return [(i, m) for i, m in enumerate(question.measurements) if isinstance(m, Count | Sum)]


def _term(measurement: Count | Sum, strategy: Strategy) -> Term:
    """How a unit's own number within one group is cut before anything is added up over units."""
    clip, reach = strategy.bounding == "clip", measurement.reach(1)
    times, bound = (refinement(measurement), _bound(measurement, strategy)) if clip else (1, 0)
    if isinstance(measurement, Share):
        low, high = measurement.ends or (0, 0)
        cut = Cut.MEAN if clip or measurement.ends is None else Cut.SUM
        rows = isqrt(strategy.groups * strategy.rows**2) + 1 if clip else strategy.rows
        return Term(reach=reach, low=low, high=high, times=times, bound=bound, shares=measurement.parts, cut=cut,
                    rows=rows)  # fmt: skip
    low, high = _part(measurement, strategy.rows)
    if clip:
        far = isqrt(bound) // times + 1
        low, high = -far if low < 0 else 0, 1 if isinstance(measurement, Count) and measurement.once else far
    every = isinstance(measurement, Count) and measurement.condition == "TRUE"
    return Term(reach=reach, low=low, high=high, times=times, bound=bound, every=every)


def _place(secret: int) -> str:
    """The place of group ``g`` in the order of unit ``u``: a keyed hash of the two, the group's number in the low bits.

    Two groups of a unit never share a place, and a place depends on nothing but unit, group and the question's secret:
    which groups of a unit are kept can depend on that unit's own rows only. That bound holds for any hash; the secret
    makes sure that nobody can arrange to be kept.
    """
    return f"CAST(hash(g, u, {secret}) >> {CODE_BITS + 1} AS BIGINT) * {1 << CODE_BITS} + g"


def _passes(source: str, groups: int, secret: int) -> tuple[str, str]:
    """Keep the rows of ``groups`` groups of each unit: those at both ends of its keyed random order of groups.

    A pass finds the next from the beginning and the next from the end, so two groups take one pass over the rows: a
    third of the work of a window over all pairs of unit and group. With places all different, no more than ``groups``
    are ever kept, and all of a unit that has no more.
    """
    first, last = (groups + 1) // 2, groups // 2
    views = [f"r AS (SELECT *, {_place(secret)} AS h FROM ({source}))"]
    views.append(f"f1 AS (SELECT u, min(h) AS a1{', max(h) AS b1' if last else ''} FROM r GROUP BY u)")
    for i in range(2, first + 1):
        f = f"f{i - 1}"
        later = f"min(r.h) FILTER (WHERE r.h > {f}.a{i - 1}) AS a{i}"
        earlier = f"max(r.h) FILTER (WHERE r.h < {f}.b{i - 1}) AS b{i}" if i <= last else f"min({f}.b{last}) AS b{last}"
        views.append(f"f{i} AS (SELECT r.u, {later}, {earlier} FROM r JOIN {f} ON r.u = {f}.u GROUP BY r.u)")
    f = f"f{first}"
    none = [f"{f}.a{first} IS NULL"] if first > 1 else []  # each unit has a first group; it may lack a second
    tests = [*none, f"r.h <= {f}.a{first}", *([f"r.h >= {f}.b{last}"] if last else [])]
    return ", ".join(views), f"SELECT r.* FROM r JOIN {f} ON r.u = {f}.u WHERE {' OR '.join(tests)}"


def _part(measurement: Count | Sum, rows: int) -> tuple[int, int]:
    if isinstance(measurement, Count):
        return 0, 1 if measurement.once else rows
    return min(0, measurement.low) * rows, max(0, measurement.high) * rows


def _share(strategy: Strategy, index: int, share: Share) -> str:
    """A unit's part of one share within a group.

    All rows of a unit together weigh a whole number n of wholes. Where that is too many, every share is cut in the same
    proportion, so that the unit's mean stays what it is. Where a sum matters more than a mean, the sum is kept as far
    as ``rows`` rows allow, and the shares are made to fit it.
    """
    first, r, whole = index - share.place, strategy.rows, share.high
    names = [f"m{first + place}" for place in range(share.parts)]
    own, total = names[share.place], f"({' + '.join(names)})"
    times = 1
    if strategy.bounding == "clip":
        # Enough rows for any vector within the norm; the scaling that follows is the same for all shares.
        r, times = isqrt(strategy.groups * r * r) + 1, refinement(share)
    if share.ends is None or strategy.bounding == "clip":
        times_r = f"({own} * {r})" if r > 1 else own
        kept = f"CASE WHEN {total} <= {r * whole} THEN {own} ELSE {times_r} // greatest({total} // {whole}, 1) END"
        return f"CAST({kept} AS BIGINT)" + (f" * {times}" if times > 1 else "")
    low, high = share.ends
    count, weight = f"least({total} // {whole}, {r})", f"least({total}, {r * whole})"
    above = names[1] if not low else f"({names[1]} + ({low}) * ({total} // {whole}))"
    kept = f"least({above}, {r * high})" if not low else f"greatest(least({above}, {r * high}), {r * low})"
    upper = kept if not low else f"({kept} - ({low}) * {count})"
    return f"CAST({upper if share.place else f'({weight} - {upper})'} AS BIGINT)"


def _bound(measurement: Count | Sum, strategy: Strategy) -> int:
    """The square of the norm a unit's vector is scaled down to, in fine steps."""
    return strategy.groups * (measurement.reach(strategy.rows) * refinement(measurement)) ** 2


def _clipped(strategy: Strategy, each: str, keys: list[str], chosen: list[tuple[int, Count | Sum]]) -> str:
    """Scale every unit's vector over the groups down to its bound in L2 norm; squares are added up exactly.

    The shares of a number are one vector and are scaled alike, so that a unit's mean stays what it is.
    """
    squares = []
    for i, measurement in chosen:
        shares = range(i, i + measurement.parts) if isinstance(measurement, Share) else range(i, i + 1)
        if not isinstance(measurement, Share) or not measurement.place:
            squares.append(f"{' + '.join(f'SUM(CAST(m{k} AS HUGEINT) * m{k})' for k in shares)} AS s{i}")
    norms = f"SELECT u, {', '.join(squares)} FROM each GROUP BY u"
    parts = []
    for i, measurement in chosen:
        bound = _bound(measurement, strategy)
        norm = f"s{i - measurement.place}" if isinstance(measurement, Share) else f"s{i}"
        factor = f"sqrt(CAST({float(bound)!r} AS DOUBLE) / CAST({norm} AS DOUBLE)) * CAST({SAFE!r} AS DOUBLE)"
        scaled = f"CAST(trunc(m{i} * ({factor})) AS BIGINT)"
        parts.append(f"COALESCE(SUM(CASE WHEN {norm} <= {bound} THEN m{i} ELSE {scaled} END), 0)")
    last = _grouped([*parts, "COUNT(*)"], "each JOIN norms USING (u)", keys)
    return f"WITH each AS ({each}), norms AS ({norms}) {last}"


def _bounded_rows(strategy: Strategy, value: str, column: str, secret: int, listed: Listed, *, same: bool) -> str:
    """Values with at most ``rows`` of each unit in a group and at most ``groups`` groups of each unit.

    With ``same``, equal values within a unit and group count as one.
    """
    question = strategy.question
    keys = group_columns(question)
    source = f"SELECT * FROM ({_source(question, [f'{value} AS {column}'], listed)}) WHERE {column} IS NOT NULL"
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
    if keys and not _everywhere(strategy):
        rank = f"dense_rank() OVER (PARTITION BY u ORDER BY hash({', '.join(keys)}, u, {secret}), {', '.join(keys)})"
        kept = f"SELECT * FROM (SELECT *, {rank} AS place FROM ({kept})) WHERE place <= {strategy.groups}"
    return kept


def cells(strategy: Strategy, measurement: Cells, secret: int, listed: Listed = written_out) -> str:
    """Keys, cell and number of rows."""
    value = f"CASE WHEN {measurement.condition} THEN {measurement.cell} END"
    rows = _bounded_rows(strategy, value, "cell", secret, listed, same=False)
    return _grouped(["COUNT(*)"], f"({rows})", [*group_columns(strategy.question), "cell"])


def distinct(strategy: Strategy, measurement: Distinct, secret: int, listed: Listed = written_out) -> str:
    """Keys and number of different values."""
    value = f"CASE WHEN {measurement.condition} THEN {measurement.value} END"
    rows = _bounded_rows(strategy, value, "seen", secret, listed, same=True)
    return _grouped(["COUNT(DISTINCT seen)"], f"({rows})", group_columns(strategy.question))
