"""Generate the SQL of a plan: exact integers per group, after contribution bounding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from math import isqrt
from typing import Any

from sfumato.data.sql_quoting import quoted_text
from sfumato.engines.contribution_bounding import CODE_BITS, SAFE, Bounded, Cut, Term
from sfumato.query.plan.aggregates import BernsteinSum, BinCounts, Count, DistinctCount, Sum, ValueCounts
from sfumato.query.plan.noise import NoisePlan, refinement
from sfumato.query.plan.relational import prune_columns
from sfumato.query.sql.parse import GroupKey, Query
from sfumato.schema import Kind

__all__ = [
    "ValueTables",
    "additive_sql",
    "bin_counts_sql",
    "bounding_pieces",
    "distinct_count_sql",
    "group_columns",
    "inline_values",
    "value_sql",
]

_FEW = 6
"""Up to this number of groups per unit, groups are chosen by passes, two per pass; more by a window function."""


ValueTables = Callable[[tuple[Any, ...]], str | None]
"""Returns the engine's table of a list of public values, or None to write the values into the SQL."""


def inline_values(values: tuple[Any, ...]) -> None:
    """Write all values into the SQL."""


def value_sql(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return f"TIMESTAMP {quoted_text(value.isoformat(sep=' '))}"
    if isinstance(value, date):
        return f"DATE {quoted_text(value.isoformat())}"
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)"
    return str(value) if isinstance(value, int) else quoted_text(str(value))


def group_columns(query: Query) -> list[str]:
    """Columns that identify a group: its number where all groups are public, otherwise its keys."""
    if not query.keys:
        return []
    return ["g"] if query.public_keys else [f"k{i}" for i in range(len(query.keys))]


def _source(query: Query, columns: list[str], listed: ValueTables) -> str:
    """The rows with their group. Rows outside the public groups are removed before contribution bounding."""
    unit = [] if query.rows.by_row else ["u"]
    keyed = [key.scalar.sql for key in query.keys]
    rows = f"({prune_columns(query.rows, ' '.join([*keyed, *columns])).sql()})"
    if query.keys and query.public_keys:
        number, joins = "", ""
        for i, key in enumerate(query.keys):
            values = key.values or ()
            table = listed(values)
            if table is None:
                table = f"(VALUES {', '.join(f'({value_sql(value)}, {place})' for place, value in enumerate(values))})"
            joins += f" JOIN {table} AS v{i}(name{i}, code{i}) ON {key.scalar.sql} = name{i}"
            number = f"({number} * {len(values)} + code{i})" if number else f"CAST(code{i} AS BIGINT)"
        return f"SELECT {', '.join([*unit, f'{number} AS g', *columns])} FROM {rows}{joins}"
    keys = [f"{_nameable(key)} AS k{i}" for i, key in enumerate(query.keys)]
    inner = f"SELECT {', '.join([*unit, *keys, *columns]) or '1'} FROM {rows}"
    tests = []
    for i, key in enumerate(query.keys):
        if key.values is None:
            tests.append(f"k{i} IS NOT NULL")
        else:
            tests.append(f"k{i} IN ({', '.join(value_sql(value) for value in key.values)})")
    return f"SELECT * FROM ({inner}) WHERE {' AND '.join(tests)}" if tests else inner


def _nameable(key: GroupKey) -> str:
    """A key as SQL. Dates outside the calendar ("infinity", year 12000) cannot be represented and are in no group."""
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


def additive_sql(plan: NoisePlan, secret: int, listed: ValueTables = inline_values) -> str:
    """SQL of the counts and sums: per group the keys, one number per count and sum, then the number of units."""
    query = plan.query
    keys = group_columns(query)
    chosen = _chosen(query)
    columns, sums = [], []
    for i, aggregate in chosen:
        match aggregate:
            case Count(condition="TRUE"):
                sums.append("COUNT(*)")
            case Count():
                columns.append(f"{aggregate.condition} AS m{i}")
                sums.append(f"COUNT(*) FILTER (WHERE m{i})")
            case BernsteinSum():
                columns += _common(aggregate)
                sums.append(f"COALESCE(SUM({aggregate.steps}), 0)")
            case _:
                columns.append(f"{aggregate.steps} AS m{i}")
                sums.append(f"COALESCE(SUM(m{i}), 0)")
    source = _source(query, columns, listed)
    if plan.bounding == "row":
        return _grouped([*sums, "COUNT(*)"], f"({source})", keys)
    every = _everywhere(plan)
    passes = not every and plan.bounding == "sample" and keys == ["g"] and plan.groups <= _FEW
    views, kept = _passes(source, plan.groups, secret) if passes else ("", source)
    each = _each(plan, kept, ["u", *keys], sums)
    if plan.bounding == "clip":
        return _clipped(plan, each, keys, chosen)
    if not every and not passes:
        order = _place(secret) if keys == ["g"] else f"hash({', '.join(keys)}, u, {secret}), {', '.join(keys)}"
        ranked = f"SELECT *, row_number() OVER (PARTITION BY u ORDER BY {order}) AS place FROM ({each})"
        each = f"SELECT * FROM ({ranked}) WHERE place <= {plan.groups}"
    totals = [*(f"COALESCE(SUM(m{i}), 0)" for i, _ in chosen), "COUNT(*)"]
    return (f"WITH {views} " if views else "") + _grouped(totals, f"({each})", keys)


def _everywhere(plan: NoisePlan) -> bool:
    """Whether all groups of a unit are kept, because there are no more groups than the limit."""
    groups = plan.query.groups
    return groups is not None and plan.groups >= groups


def _common(share: BernsteinSum) -> list[str]:
    """The column from which a share and the following ones are computed."""
    return [] if share.column is None else [f"{share.column[1]} AS {share.column[0]}"]


def _each(plan: NoisePlan, source: str, by: list[str], sums: list[str]) -> str:
    """Counts and sums of each unit in each group, each clipped to the limit of one unit."""
    parts, cut = [], []
    for (i, aggregate), total in zip(_chosen(plan.query), sums, strict=True):
        if isinstance(aggregate, BernsteinSum):
            parts.append(f"{total} AS m{i}")
            cut.append(f"{_share(plan, i, aggregate)} AS m{i}")
            continue
        term = _term(aggregate, plan)
        times = f" * {term.times}" if plan.bounding == "clip" else ""
        parts.append(f"CAST(greatest(least({total}, {term.high}), {term.low}) AS BIGINT){times} AS m{i}")
        cut.append(f"m{i}")
    each = _grouped(parts or ["1"], f"({source})", by)
    if not any(isinstance(m, BernsteinSum) for _, m in _chosen(plan.query)):
        return each
    return f"SELECT {', '.join([*by, *cut])} FROM ({each})"


def bounding_pieces(plan: NoisePlan, secret: int, listed: ValueTables = inline_values) -> Bounded | None:
    """The parts of ``additive_sql`` for engines with a fold; None for private keys, or if each row is a unit."""
    query, g = plan.query, plan.groups
    if plan.bounding == "row" or group_columns(query) != ["g"]:
        return None
    chosen = _chosen(query)
    columns, numbers = [], []
    for i, aggregate in chosen:
        match aggregate:
            case Count(condition="TRUE"):
                pass
            case Count():
                columns.append(f"CASE WHEN {aggregate.condition} THEN 1 ELSE 0 END AS m{i}")
                numbers.append(f"m{i}")
            case BernsteinSum():
                columns += _common(aggregate)
                numbers.append(f"COALESCE({aggregate.steps}, 0)")
            case _:
                columns.append(f"COALESCE({aggregate.steps}, 0) AS m{i}")
                numbers.append(f"m{i}")
    clip = plan.bounding == "clip"
    ends = None if clip else ((g + 1) // 2, g // 2) if g <= _FEW else (g, 0)
    items = ["u", f"{'g' if clip else _place(secret)} AS place", *numbers]
    source = f"SELECT {', '.join(items)} FROM ({_source(query, columns, listed)})"
    terms = tuple(_term(m, plan) for _, m in chosen if not (isinstance(m, BernsteinSum) and m.place))
    return Bounded(source=source, groups=query.groups or 1, ends=ends, terms=terms)


def _chosen(query: Query) -> list[tuple[int, Count | Sum]]:
    return [(i, m) for i, m in enumerate(query.aggregates) if isinstance(m, Count | Sum)]


def _term(aggregate: Count | Sum, plan: NoisePlan) -> Term:
    """How a unit's number within one group is clipped before it is summed over units."""
    clip, reach = plan.bounding == "clip", aggregate.sensitivity(1)
    times, bound = (refinement(aggregate), _bound(aggregate, plan)) if clip else (1, 0)
    if isinstance(aggregate, BernsteinSum):
        low, high = aggregate.ends or (0, 0)
        cut = Cut.MEAN if clip or aggregate.ends is None else Cut.SUM
        rows = isqrt(plan.groups * plan.rows**2) + 1 if clip else plan.rows
        return Term(reach=reach, low=low, high=high, times=times, bound=bound, shares=aggregate.parts, cut=cut,
                    rows=rows)  # fmt: skip
    low, high = _part(aggregate, plan.rows)
    if clip:
        far = isqrt(bound) // times + 1
        low, high = -far if low < 0 else 0, 1 if isinstance(aggregate, Count) and aggregate.once else far
    every = isinstance(aggregate, Count) and aggregate.condition == "TRUE"
    return Term(reach=reach, low=low, high=high, times=times, bound=bound, every=every)


def _place(secret: int) -> str:
    """Rank of group ``g`` in the random order of unit ``u``: a keyed hash of both, the group's number in the low bits.

    Two groups of a unit never have the same rank, and a rank depends only on unit, group and the query's secret. Which
    groups of a unit are kept therefore depends on that unit's own rows only, for any hash. The secret prevents anyone
    from choosing which groups are kept.
    """
    return f"CAST(hash(g, u, {secret}) >> {CODE_BITS + 1} AS BIGINT) * {1 << CODE_BITS} + g"


def _passes(source: str, groups: int, secret: int) -> tuple[str, str]:
    """Contribution bounding: keep ``groups`` groups of each unit, from both ends of its keyed random order.

    Each pass over the rows finds the next group from the beginning and the next from the end, which takes a third of
    the time of a window function. Ranks are distinct, so at most ``groups`` groups are kept, and all groups of a unit
    that has no more.
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


def _part(aggregate: Count | Sum, rows: int) -> tuple[int, int]:
    if isinstance(aggregate, Count):
        return 0, 1 if aggregate.once else rows
    return min(0, aggregate.low) * rows, max(0, aggregate.high) * rows


def _share(plan: NoisePlan, index: int, share: BernsteinSum) -> str:
    """A unit's contribution to one share within a group.

    The rows of a unit have a total weight of n rows. If n exceeds the limit, every share is reduced in the same
    proportion, so that the unit's mean does not change. Where a sum matters more than a mean, the sum is kept as far
    as ``rows`` rows allow, and the shares are computed from it.
    """
    first, r, whole = index - share.place, plan.rows, share.high
    names = [f"m{first + place}" for place in range(share.parts)]
    own, total = names[share.place], f"({' + '.join(names)})"
    times = 1
    if plan.bounding == "clip":
        # Enough rows for any vector within the norm; all shares are then scaled alike.
        r, times = isqrt(plan.groups * r * r) + 1, refinement(share)
    if share.ends is None or plan.bounding == "clip":
        times_r = f"({own} * {r})" if r > 1 else own
        kept = f"CASE WHEN {total} <= {r * whole} THEN {own} ELSE {times_r} // greatest({total} // {whole}, 1) END"
        return f"CAST({kept} AS BIGINT)" + (f" * {times}" if times > 1 else "")
    low, high = share.ends
    count, weight = f"least({total} // {whole}, {r})", f"least({total}, {r * whole})"
    above = names[1] if not low else f"({names[1]} + ({low}) * ({total} // {whole}))"
    kept = f"least({above}, {r * high})" if not low else f"greatest(least({above}, {r * high}), {r * low})"
    upper = kept if not low else f"({kept} - ({low}) * {count})"
    return f"CAST({upper if share.place else f'({weight} - {upper})'} AS BIGINT)"


def _bound(aggregate: Count | Sum, plan: NoisePlan) -> int:
    """Square of the L2 norm to which a unit's vector is scaled down, in fine steps."""
    return plan.groups * (aggregate.sensitivity(plan.rows) * refinement(aggregate)) ** 2


def _clipped(plan: NoisePlan, each: str, keys: list[str], chosen: list[tuple[int, Count | Sum]]) -> str:
    """Scale every unit's vector over the groups down to its L2 bound; the squares are summed exactly.

    The shares of a number are one vector and are scaled alike, so that a unit's mean does not change.
    """
    squares = []
    for i, aggregate in chosen:
        shares = range(i, i + aggregate.parts) if isinstance(aggregate, BernsteinSum) else range(i, i + 1)
        if not isinstance(aggregate, BernsteinSum) or not aggregate.place:
            squares.append(f"{' + '.join(f'SUM(CAST(m{k} AS HUGEINT) * m{k})' for k in shares)} AS s{i}")
    norms = f"SELECT u, {', '.join(squares)} FROM each GROUP BY u"
    parts = []
    for i, aggregate in chosen:
        bound = _bound(aggregate, plan)
        norm = f"s{i - aggregate.place}" if isinstance(aggregate, BernsteinSum) else f"s{i}"
        factor = f"sqrt(CAST({float(bound)!r} AS DOUBLE) / CAST({norm} AS DOUBLE)) * CAST({SAFE!r} AS DOUBLE)"
        scaled = f"CAST(trunc(m{i} * ({factor})) AS BIGINT)"
        parts.append(f"COALESCE(SUM(CASE WHEN {norm} <= {bound} THEN m{i} ELSE {scaled} END), 0)")
    last = _grouped([*parts, "COUNT(*)"], "each JOIN norms USING (u)", keys)
    return f"WITH each AS ({each}), norms AS ({norms}) {last}"


def _bounded_rows(plan: NoisePlan, value: str, column: str, secret: int, listed: ValueTables, *, same: bool) -> str:
    """Values with at most ``rows`` of each unit in a group and at most ``groups`` groups of each unit.

    With ``same``, equal values within a unit and group count as one.
    """
    query = plan.query
    keys = group_columns(query)
    source = f"SELECT * FROM ({_source(query, [f'{value} AS {column}'], listed)}) WHERE {column} IS NOT NULL"
    if plan.bounding == "row":
        return source
    by = ", ".join(["u", *keys])
    if same:
        source = f"SELECT DISTINCT {by}, {column} FROM ({source})"
        order = f"hash({column}, u, {secret}), {column}"
    else:
        # Rows with equal values are numbered, so that each row of a unit is kept with the same probability.
        source = f"SELECT *, row_number() OVER (PARTITION BY {by}, {column}) AS twin FROM ({source})"
        order = f"hash({column}, twin, u, {secret}), {column}, twin"
    few = f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY {order}) AS turn FROM ({source})"
    kept = f"SELECT * FROM ({few}) WHERE turn <= {plan.rows}"
    if keys and not _everywhere(plan):
        rank = f"dense_rank() OVER (PARTITION BY u ORDER BY hash({', '.join(keys)}, u, {secret}), {', '.join(keys)})"
        kept = f"SELECT * FROM (SELECT *, {rank} AS place FROM ({kept})) WHERE place <= {plan.groups}"
    return kept


def bin_counts_sql(
    plan: NoisePlan, aggregate: BinCounts | ValueCounts, secret: int, listed: ValueTables = inline_values
) -> str:
    """SQL of a histogram: keys, cell and number of rows."""
    value = f"CASE WHEN {aggregate.condition} THEN {aggregate.cell} END"
    rows = _bounded_rows(plan, value, "cell", secret, listed, same=False)
    return _grouped(["COUNT(*)"], f"({rows})", [*group_columns(plan.query), "cell"])


def distinct_count_sql(
    plan: NoisePlan, aggregate: DistinctCount, secret: int, listed: ValueTables = inline_values
) -> str:
    """SQL of COUNT(DISTINCT): keys and number of distinct values."""
    value = f"CASE WHEN {aggregate.condition} THEN {aggregate.value} END"
    rows = _bounded_rows(plan, value, "seen", secret, listed, same=True)
    return _grouped(["COUNT(DISTINCT seen)"], f"({rows})", group_columns(plan.query))
