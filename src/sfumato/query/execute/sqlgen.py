"""Statements of a plan: exact integers per group, after contribution bounding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from math import isqrt
from typing import Any

from sfumato.engines.contribution_bounding import CODE_BITS, SAFE, Bounded, Cut, Term
from sfumato.engines.expressions import (
    TRUE,
    Arithmetic,
    Cast,
    Coalesce,
    ColumnRef,
    Compare,
    CountRows,
    DenseRank,
    Expression,
    Extreme,
    Function,
    Hash,
    In,
    IsNull,
    Largest,
    Not,
    Quotient,
    RowNumber,
    ShiftRight,
    Total,
    Unit,
    all_of,
    any_of,
    constant,
    equal,
    when,
)
from sfumato.engines.interval_analysis import size
from sfumato.engines.statements import Join, Listed, NamedView, Select, Source, Subquery, Values, With
from sfumato.engines.statements import Query as Statement
from sfumato.query.plan.aggregates import BernsteinSum, BinCounts, Count, DistinctCount, Sum, ValueCounts, clipped
from sfumato.query.plan.noise import NoisePlan, refinement
from sfumato.query.plan.relational import columns_of
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
]

_FEW = 6
"""Up to this number of groups per unit, groups are chosen by passes, two per pass; more by a window function."""
_DAYS = date(1, 1, 1), date(9999, 12, 31)
_TIMES = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)

ValueTables = Callable[[tuple[Any, ...]], str | None]
"""Returns the engine's table of a list of public values, or None to write the values into the statement."""
Items = tuple[tuple[str, Expression], ...]


def inline_values(values: tuple[Any, ...]) -> None:
    """Write all values into the statement."""


def _named(name: str, expression: Expression, table: str = "") -> ColumnRef:
    """A column of a subquery that has this expression."""
    return ColumnRef(name, expression.type, table, size=size(expression))


def _whole(name: str, table: str = "") -> ColumnRef:
    return ColumnRef(name, "int", table)


_G = _whole("g")
_ZERO = constant(0)


def group_columns(query: Query) -> Items:
    """Columns that identify a group: its number where all groups are public, otherwise its keys."""
    if query.keys and query.public_keys:
        return (("g", _G),)
    return tuple((f"k{i}", _named(f"k{i}", key.scalar.node)) for i, key in enumerate(query.keys))


def _source(query: Query, columns: Items, listed: ValueTables) -> Statement:
    """The rows with their group. Rows outside the public groups are removed before contribution bounding."""
    used = columns_of([*(key.scalar.node for key in query.keys), *(node for _, node in columns)])
    kept = query.rows.keep(used)
    rows: Source = Subquery(kept.query())
    unit = query.rows.unit()
    if query.keys and query.public_keys:
        number: Expression | None = None
        for i, key in enumerate(query.keys):
            values, code = key.values or (), _whole(f"code{i}")
            name, table = ColumnRef(f"name{i}", key.scalar.node.type), listed(values)
            pairs: Source = Listed(table, f"v{i}", (name.name, code.name)) if table else Values(
                tuple((constant(value), constant(place)) for place, value in enumerate(values)),
                f"v{i}", (name.name, code.name),
            )  # fmt: skip
            rows = Join(rows, pairs, equal(key.scalar.node, name))
            number = (
                Cast(code, "int")
                if number is None
                else Arithmetic("+", Arithmetic("*", number, constant(len(values))), code)
            )
        assert number is not None
        return Select((*unit, ("g", number), *columns), rows)
    keys = tuple((f"k{i}", _nameable(key)) for i, key in enumerate(query.keys))
    inner = Select((*unit, *keys, *columns) or (("one", constant(1)),), rows)
    if not keys:
        return inner
    tests: list[Expression] = []
    for (title, node), key in zip(keys, query.keys, strict=True):
        column = _named(title, node)
        tests.append(Not(IsNull(column)) if key.values is None else In(column, tuple(map(constant, key.values))))
    return Select((), Subquery(inner), where=all_of(*tests), star=True)


def _nameable(key: GroupKey) -> Expression:
    """A private key. Dates outside the calendar ("infinity", year 12000) cannot be represented and are in no group."""
    x = key.scalar.node
    if key.values is not None or key.scalar.kind not in (Kind.DATE, Kind.DATETIME):
        return x
    first, last = map(constant, _DAYS if key.scalar.kind is Kind.DATE else _TIMES)
    return when(all_of(Compare(">=", x, first), Compare("<=", x, last)), x)


def _grouped(items: Items, source: Source, keys: Items) -> Select:
    return Select((*keys, *items), source, group_by=len(keys))


def _sum(node: Expression) -> Expression:
    return Coalesce((Total(node), _ZERO))


def _additive_columns(query: Query) -> tuple[Items, Items]:
    """Columns of the rows that the counts and sums need, and each count and sum over some of these rows."""
    columns: list[tuple[str, Expression]] = []
    sums: list[tuple[str, Expression]] = []
    for i, aggregate in _chosen(query):
        name = f"m{i}"
        match aggregate:
            case Count(condition=condition) if condition == TRUE:
                sums.append((name, CountRows()))
            case Count(condition=condition):
                columns.append((name, condition))
                sums.append((name, CountRows(where=_named(name, condition))))
            case BernsteinSum():
                columns += _common(aggregate)
                sums.append((name, _sum(aggregate.steps)))
            case _:
                columns.append((name, aggregate.steps))
                sums.append((name, _sum(_named(name, aggregate.steps))))
    return tuple(columns), tuple(sums)


def additive_sql(plan: NoisePlan, secret: int, listed: ValueTables = inline_values) -> Statement:
    """The counts and sums: per group the keys, one number per count and sum, then the number of units."""
    query = plan.query
    keys, unit, chosen = group_columns(query), query.rows.unit(), _chosen(query)
    columns, sums = _additive_columns(query)
    source = _source(query, columns, listed)
    if plan.bounding == "row":
        return _grouped((*sums, ("units", CountRows())), Subquery(source), keys)
    every = _everywhere(plan)
    passes = not every and plan.bounding == "sample" and keys == (("g", _G),) and plan.groups <= _FEW
    views, rows = _passes(source, unit, plan.groups, secret) if passes else ((), source)
    each = _each(plan, rows, (*unit, *keys), sums)
    if plan.bounding == "clip":
        return _clipped(plan, each, keys, chosen)
    if not every and not passes:
        named = tuple(node for _, node in keys)
        order = (_place(unit, secret),) if keys == (("g", _G),) else (_hash(named, unit, secret), *named)
        ranked = Select((("place", RowNumber((unit[0][1],), order)),), Subquery(each), star=True)
        within = Compare("<=", _whole("place"), constant(plan.groups))
        each = Select((), Subquery(ranked), where=within, star=True)
    totals: Items = tuple((f"m{i}", _sum(_whole(f"m{i}"))) for i, _ in chosen)
    last = _grouped((*totals, ("units", CountRows())), Subquery(each), keys)
    return With(views, last) if views else last


def _everywhere(plan: NoisePlan) -> bool:
    """Whether all groups of a unit are kept, because there are no more groups than the limit."""
    groups = plan.query.groups
    return groups is not None and plan.groups >= groups


def _common(share: BernsteinSum) -> Items:
    """The column from which a share and the following ones are computed."""
    return () if share.column is None else (share.column,)


def _each(plan: NoisePlan, source: Statement, by: Items, sums: Items) -> Statement:
    """Counts and sums of each unit in each group, each clipped to the limit of one unit."""
    parts: list[tuple[str, Expression]] = []
    cut: list[tuple[str, Expression]] = []
    for (i, aggregate), (name, total) in zip(_chosen(plan.query), sums, strict=True):
        if isinstance(aggregate, BernsteinSum):
            parts.append((name, total))
            cut.append((name, _share(plan, i, aggregate)))
            continue
        term = _term(aggregate, plan)
        kept: Expression = Cast(clipped(total, constant(term.low), constant(term.high)), "int")
        if plan.bounding == "clip":
            kept = Arithmetic("*", kept, constant(term.times))
        parts.append((name, kept))
        cut.append((name, _named(name, kept)))
    each = _grouped(tuple(parts) or (("one", constant(1)),), Subquery(source), by)
    if not any(isinstance(m, BernsteinSum) for _, m in _chosen(plan.query)):
        return each
    return Select((*by, *cut), Subquery(each))


def bounding_pieces(plan: NoisePlan, secret: int, listed: ValueTables = inline_values) -> Bounded | None:
    """The parts of ``additive_sql`` for engines with a fold; None for private keys, or if each row is a unit."""
    query, g = plan.query, plan.groups
    if plan.bounding == "row" or group_columns(query) != (("g", _G),):
        return None
    columns: list[tuple[str, Expression]] = []
    numbers: list[tuple[str, Expression]] = []
    for i, aggregate in _chosen(query):
        name = f"m{i}"
        match aggregate:
            case Count(condition=condition) if condition == TRUE:
                pass
            case Count(condition=condition):
                columns.append((name, when(condition, constant(1), _ZERO)))
                numbers.append((name, _whole(name)))
            case BernsteinSum():
                columns += _common(aggregate)
                numbers.append((name, Coalesce((aggregate.steps, _ZERO))))
            case _:
                columns.append((name, Coalesce((aggregate.steps, _ZERO))))
                numbers.append((name, _whole(name)))
    clip, unit = plan.bounding == "clip", query.rows.unit()
    ends = None if clip else ((g + 1) // 2, g // 2) if g <= _FEW else (g, 0)
    place: Expression = _G if clip else _place(unit, secret)
    source = Select((*unit, ("place", place), *numbers), Subquery(_source(query, tuple(columns), listed)))
    terms = tuple(_term(m, plan) for _, m in _chosen(query) if not (isinstance(m, BernsteinSum) and m.place))
    return Bounded(source=source, groups=query.combinations or 1, ends=ends, terms=terms)


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
    every = isinstance(aggregate, Count) and aggregate.condition == TRUE
    return Term(reach=reach, low=low, high=high, times=times, bound=bound, every=every)


def _hash(values: tuple[Expression, ...], unit: Items, secret: int) -> Expression:
    return Hash((*values, unit[0][1], constant(secret)))


def _place(unit: Items, secret: int) -> Expression:
    """Rank of group ``g`` in the random order of unit ``u``: a keyed hash of both, the group's number in the low bits.

    Two groups of a unit never have the same rank, and a rank depends only on unit, group and the query's secret. Which
    groups of a unit are kept therefore depends on that unit's own rows only, for any hash. The secret prevents anyone
    from choosing which groups are kept.
    """
    high = ShiftRight(_hash((_G,), unit, secret), CODE_BITS + 1)
    return Arithmetic("+", Arithmetic("*", high, constant(1 << CODE_BITS)), _G)


def _passes(
    source: Statement, unit: Items, groups: int, secret: int
) -> tuple[tuple[tuple[str, Statement], ...], Statement]:
    """Contribution bounding: keep ``groups`` groups of each unit, from both ends of its keyed random order.

    Each pass over the rows finds the next group from the beginning and the next from the end, which takes a third of
    the time of a window function. Ranks are distinct, so at most ``groups`` groups are kept, and all groups of a unit
    that has no more.
    """
    first, last = (groups + 1) // 2, groups // 2
    origin = unit[0][1].origin if isinstance(unit[0][1], Unit) else None

    def of(table: str) -> Items:
        return (("u", Unit(origin, table)),)

    def joined(table: str) -> Source:
        return Join(NamedView("r"), NamedView(table), equal(Unit(origin, "r"), Unit(origin, table)))

    h = _whole("h", "r")
    views: list[tuple[str, Statement]] = [("r", Select((("h", _place(unit, secret)),), Subquery(source), star=True))]
    ends: Items = (("a1", Largest(_whole("h"), True)), *([("b1", Largest(_whole("h"), False))] if last else []))
    views.append(("f1", _grouped(ends, NamedView("r"), unit)))
    for i in range(2, first + 1):
        f = f"f{i - 1}"
        later = Largest(h, True, Compare(">", h, _whole(f"a{i - 1}", f)))
        earlier = Largest(h, False, Compare("<", h, _whole(f"b{i - 1}", f))) if i <= last else Largest(
            _whole(f"b{last}", f), True
        )  # fmt: skip
        ends = ((f"a{i}", later), (f"b{min(i, last)}", earlier))
        views.append((f"f{i}", _grouped(ends, joined(f), of("r"))))
    f = f"f{first}"
    a, b = _whole(f"a{first}", f), _whole(f"b{last}", f)
    # Each unit has a first group; it may lack a second.
    ends_of: list[Expression] = [
        *([IsNull(a)] if first > 1 else []),
        Compare("<=", h, a),
        *([Compare(">=", h, b)] if last else []),
    ]
    kept = Select((), joined(f), where=any_of(*ends_of), star="r")
    return tuple(views), kept


def _part(aggregate: Count | Sum, rows: int) -> tuple[int, int]:
    if isinstance(aggregate, Count):
        return 0, 1 if aggregate.once else rows
    return min(0, aggregate.low) * rows, max(0, aggregate.high) * rows


def _share(plan: NoisePlan, index: int, share: BernsteinSum) -> Expression:
    """A unit's contribution to one share within a group.

    The rows of a unit have a total weight of n rows. If n exceeds the limit, every share is reduced in the same
    proportion, so that the unit's mean does not change. Where a sum matters more than a mean, the sum is kept as far
    as ``rows`` rows allow, and the shares are computed from it.
    """
    first, r, whole = index - share.place, plan.rows, constant(share.high)
    shares = [ColumnRef(f"m{first + place}", "huge") for place in range(share.parts)]
    own = shares[share.place]
    total: Expression = shares[0]
    for other in shares[1:]:
        total = Arithmetic("+", total, other)
    times = 1
    if plan.bounding == "clip":
        # Enough rows for any vector within the norm; all shares are then scaled alike.
        r, times = isqrt(plan.groups * r * r) + 1, refinement(share)
    most, rows = constant(r * share.high), Quotient(total, whole)
    if share.ends is None or plan.bounding == "clip":
        part = Arithmetic("*", own, constant(r)) if r > 1 else own
        scaled = Quotient(part, Extreme((rows, constant(1)), False))
        kept = Cast(when(Compare("<=", total, most), own, scaled), "int")
        return Arithmetic("*", kept, constant(times)) if times > 1 else kept
    low, high = share.ends
    count, weight = Extreme((rows, constant(r)), True), Extreme((total, most), True)
    above: Expression = shares[1]
    if low:
        above = Arithmetic("+", above, Arithmetic("*", constant(low), rows))
    inside: Expression = Extreme((above, constant(r * high)), True)
    if low:
        inside = Extreme((inside, constant(r * low)), False)
        inside = Arithmetic("-", inside, Arithmetic("*", constant(low), count))
    return Cast(inside if share.place else Arithmetic("-", weight, inside), "int")


def _bound(aggregate: Count | Sum, plan: NoisePlan) -> int:
    """Square of the L2 norm to which a unit's vector is scaled down, in fine steps."""
    return plan.groups * (aggregate.sensitivity(plan.rows) * refinement(aggregate)) ** 2


def _clipped(plan: NoisePlan, each: Statement, keys: Items, chosen: list[tuple[int, Count | Sum]]) -> Statement:
    """Scale every unit's vector over the groups down to its L2 bound; the squares are summed exactly.

    The shares of a number are one vector and are scaled alike, so that a unit's mean does not change.
    """
    written = dict(each.items) if isinstance(each, Select) else {}
    own = {i: _named(f"m{i}", written[f"m{i}"]) for i, _ in chosen}
    squares: list[tuple[str, Expression]] = []
    for i, aggregate in chosen:
        shares = range(i, i + aggregate.parts) if isinstance(aggregate, BernsteinSum) else range(i, i + 1)
        if not isinstance(aggregate, BernsteinSum) or not aggregate.place:
            square: Expression | None = None
            for k in shares:
                one = Total(Arithmetic("*", Cast(own[k], "huge"), own[k]))
                square = one if square is None else Arithmetic("+", square, one)
            assert square is not None
            squares.append((f"s{i}", square))
    unit = plan.query.rows.unit()
    norms = _grouped(tuple(squares), NamedView("each"), unit)
    parts: list[tuple[str, Expression]] = []
    for i, aggregate in chosen:
        bound = _bound(aggregate, plan)
        norm = ColumnRef(f"s{i - aggregate.place}" if isinstance(aggregate, BernsteinSum) else f"s{i}", "huge", "norms")
        root = Function(Arithmetic("/", constant(float(bound)), Cast(norm, "float")), "sqrt")
        factor = Arithmetic("*", root, constant(SAFE))
        scaled = Cast(Function(Arithmetic("*", Cast(own[i], "float"), factor), "trunc"), "int")
        parts.append((f"m{i}", _sum(when(Compare("<=", norm, constant(bound)), own[i], scaled))))
    origin = unit[0][1].origin if isinstance(unit[0][1], Unit) else None
    both = Join(NamedView("each"), NamedView("norms"), equal(Unit(origin, "each"), Unit(origin, "norms")))
    return With((("each", each), ("norms", norms)), _grouped((*parts, ("units", CountRows())), both, keys))


def _bounded_rows(
    plan: NoisePlan, value: tuple[str, Expression], secret: int, listed: ValueTables, *, same: bool
) -> Statement:
    """Values with at most ``rows`` of each unit in a group and at most ``groups`` groups of each unit.

    With ``same``, equal values within a unit and group count as one.
    """
    query = plan.query
    keys, unit, column = group_columns(query), query.rows.unit(), _named(*value)
    source = Select((), Subquery(_source(query, (value,), listed)), where=Not(IsNull(column)), star=True)
    if plan.bounding == "row":
        return source
    by, named = tuple(node for _, node in (*unit, *keys)), tuple(node for _, node in keys)
    if same:
        source = Select((*unit, *keys, (column.name, column)), Subquery(source), distinct=True)
        order: tuple[Expression, ...] = (_hash((column,), unit, secret), column)
    else:
        # Rows with equal values are numbered, so that each row of a unit is kept with the same probability.
        twin = _whole("twin")
        source = Select(((twin.name, RowNumber((*by, column), ())),), Subquery(source), star=True)
        order = (_hash((column, twin), unit, secret), column, twin)
    few = Select((("turn", RowNumber(by, order)),), Subquery(source), star=True)
    kept = Select((), Subquery(few), where=Compare("<=", _whole("turn"), constant(plan.rows)), star=True)
    if keys and not _everywhere(plan):
        rank = DenseRank((unit[0][1],), (_hash(named, unit, secret), *named))
        ranked = Select((("place", rank),), Subquery(kept), star=True)
        within = Compare("<=", _whole("place"), constant(plan.groups))
        kept = Select((), Subquery(ranked), where=within, star=True)
    return kept


def bin_counts_sql(
    plan: NoisePlan, aggregate: BinCounts | ValueCounts, secret: int, listed: ValueTables = inline_values
) -> Statement:
    """A histogram: keys, cell and number of rows."""
    cell = "cell", when(aggregate.condition, aggregate.cell)
    rows = _bounded_rows(plan, cell, secret, listed, same=False)
    return _grouped((("n", CountRows()),), Subquery(rows), (*group_columns(plan.query), ("cell", _named(*cell))))


def distinct_count_sql(
    plan: NoisePlan, aggregate: DistinctCount, secret: int, listed: ValueTables = inline_values
) -> Statement:
    """COUNT(DISTINCT): keys and number of distinct values."""
    seen = "seen", when(aggregate.condition, aggregate.value)
    rows = _bounded_rows(plan, seen, secret, listed, same=True)
    distinct = CountRows(_named(*seen), distinct=True)
    return _grouped((("n", distinct),), Subquery(rows), group_columns(plan.query))
