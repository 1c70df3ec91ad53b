"""Statements of counts and sums: exact integers per group, after contribution bounding."""

from __future__ import annotations

from math import isqrt

from sfumato.engines.aggregation import CountRows, Largest, RowNumber, Total
from sfumato.engines.contribution_bounding import CODE_BITS, FIT, SAFE, Bounded, Cut, Term
from sfumato.engines.expressions import (
    TRUE,
    Arithmetic,
    Cast,
    Coalesce,
    ColumnRef,
    Compare,
    Expression,
    Extreme,
    IsNull,
    Quotient,
    ShiftRight,
    Unit,
    all_of,
    any_of,
    constant,
    equal,
    when,
)
from sfumato.engines.functions import Function
from sfumato.engines.statements import Join, NamedView, Select, Source, Subquery, UnionAllQuery, With
from sfumato.engines.statements import Query as Statement
from sfumato.query.execute.fitting import fitting_limits, fitting_test, numbers_of_units
from sfumato.query.execute.grouped_rows import (
    GROUP_NUMBER,
    ZERO,
    Items,
    ValueTables,
    column_of,
    group_columns,
    grouped,
    grouped_rows,
    inline_values,
    keeps_all_groups,
    keyed_hash,
    whole_column,
)
from sfumato.query.plan.aggregates import BernsteinSum, Count, FittingUnits, Sum, clipped
from sfumato.query.plan.noise import NoisePlan, refinement
from sfumato.query.sql.parse import Query

__all__ = ["additive_sql", "bounding_pieces"]

_FEW = 6
"""Up to this number of groups per unit, groups are chosen by passes, two per pass; more by a window function."""

_FACTOR = 1.0, 2.0**-70
"""Bounds of the factor by which a vector is scaled down: the square of its norm has at most 127 bits."""


def _sum(node: Expression) -> Expression:
    return Coalesce((Total(node), ZERO))


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
                sums.append((name, CountRows(where=column_of(name, condition))))
            case BernsteinSum():
                columns += _common(aggregate)
                sums.append((name, _sum(aggregate.steps)))
            case _:
                columns.append((name, aggregate.steps))
                sums.append((name, _sum(column_of(name, aggregate.steps))))
    return tuple(columns), tuple(sums)


def additive_sql(plan: NoisePlan, secret: int, listed: ValueTables = inline_values) -> Statement:
    """The counts and sums: per group the keys, one number per count and sum, then the number of units."""
    query = plan.query
    keys, unit, chosen = group_columns(query), query.rows.unit(), _chosen(query)
    columns, sums = _additive_columns(query)
    source = grouped_rows(query, columns, listed)
    if plan.bounding == "row":
        return grouped((*sums, ("units", CountRows())), Subquery(source), keys)
    every = keeps_all_groups(plan)
    passes = not every and plan.bounding == "sample" and keys == (("g", GROUP_NUMBER),) and plan.groups <= _FEW
    views, rows = _passes(source, unit, plan.groups, secret) if passes else ((), source)
    counted: Items = ()
    if _tells_fitting(plan):
        counted = (("c", CountRows()), *((("n", Largest(whole_column("n"), False)),) if passes else ()))
    each = _each(plan, rows, (*unit, *keys), sums, counted)
    if plan.bounding == "clip":
        return _clipped(plan, each, keys, chosen)
    kept: Source = NamedView("each") if counted else Subquery(each)
    if counted:
        views = (*views, ("each", each))
    if not every and not passes:
        named = tuple(node for _, node in keys)
        order = (_place(unit, secret),) if keys == (("g", GROUP_NUMBER),) else (keyed_hash(named, unit, secret), *named)
        ranked = Select((("place", RowNumber((unit[0][1],), order)),), kept, star=True)
        within = Compare("<=", whole_column("place"), constant(plan.groups))
        kept = Subquery(Select((), Subquery(ranked), where=within, star=True))
    totals: Items = tuple((f"m{i}", _sum(whole_column(f"m{i}"))) for i, _ in chosen)
    last: Statement = grouped((*totals, ("units", CountRows())), kept, keys)
    if counted:
        items, fits = _kept_whole(plan) if passes else fitting_test(plan, _number_of_rows(plan))
        last = UnionAllQuery(_first_row(fits, Subquery(grouped(items, NamedView("each"), unit)), len(chosen)), last)
    return With(views, last) if views else last


def _tells_fitting(plan: NoisePlan) -> bool:
    """Whether the statement has a further row, ``FIT``, with the numbers of units that the limits fit and cut."""
    query = plan.query
    return any(isinstance(m, FittingUnits) for m in query.aggregates) and bool(query.keys and query.public_keys)


def _number_of_rows(plan: NoisePlan) -> Expression:
    """A unit's number of rows in a group, or 1 where it counts once."""
    return whole_column("c") if fitting_limits(plan)[0] else constant(1)


def _kept_whole(plan: NoisePlan) -> tuple[Items, Expression]:
    """As ``fitting_test``, of a unit's kept groups: it has no others if its rows in these are all of its rows."""
    rows, _ = fitting_limits(plan)
    kept = "kept", Total(whole_column("c"))
    tests: tuple[Expression, ...] = (equal(column_of(*kept), whole_column("n")),)
    if rows:
        tests = (*tests, Compare("<=", whole_column("most"), constant(rows)))
    items = (kept, ("n", Largest(whole_column("n"), False)), ("most", Largest(whole_column("c"), False)))
    return items, all_of(*tests)


def _first_row(fits: Expression, own: Source, numbers: int) -> Statement:
    padding = tuple((f"p{i}", ZERO) for i in range(numbers - 1))
    return Select((("g", constant(FIT)), *numbers_of_units(fits), *padding), own)


def _common(share: BernsteinSum) -> Items:
    """The column from which a share and the following ones are computed."""
    return () if share.column is None else (share.column,)


def _each(plan: NoisePlan, source: Statement, by: Items, sums: Items, counted: Items) -> Statement:
    """Counts and sums of each unit in each group, each clipped to the limit of one unit, and what else is counted."""
    parts: list[tuple[str, Expression]] = []
    cut: list[tuple[str, Expression]] = []
    for (i, aggregate), (name, total) in zip(_chosen(plan.query), sums, strict=True):
        if isinstance(aggregate, BernsteinSum):
            parts.append((name, total))
            cut.append((name, _share(_term(aggregate, plan), i, aggregate.place)))
            continue
        term = _term(aggregate, plan)
        kept: Expression = Cast(clipped(total, constant(term.low), constant(term.high)), "int")
        if term.times > 1:
            kept = Arithmetic("*", kept, constant(term.times))
        parts.append((name, kept))
        cut.append((name, column_of(name, kept)))
    each = grouped((*parts, *counted) or (("one", constant(1)),), Subquery(source), by)
    if not any(isinstance(m, BernsteinSum) for _, m in _chosen(plan.query)):
        return each
    return Select((*by, *cut, *((name, whole_column(name)) for name, _ in counted)), Subquery(each))


def bounding_pieces(plan: NoisePlan, secret: int, listed: ValueTables = inline_values) -> Bounded | None:
    """The description of what ``additive_sql`` computes; None if each row is a unit, so that nothing is bounded."""
    query, g = plan.query, plan.groups
    if plan.bounding == "row":
        return None
    columns: list[tuple[str, Expression]] = []
    numbers: list[tuple[str, Expression]] = []
    for i, aggregate in _chosen(query):
        name = f"m{i}"
        match aggregate:
            case Count(condition=condition) if condition == TRUE:
                pass
            case Count(condition=condition):
                columns.append((name, when(condition, constant(1), ZERO)))
                numbers.append((name, whole_column(name)))
            case BernsteinSum():
                columns += _common(aggregate)
                numbers.append((name, Coalesce((aggregate.steps, ZERO))))
            case _:
                columns.append((name, Coalesce((aggregate.steps, ZERO))))
                numbers.append((name, whole_column(name)))
    clip, unit, keys = plan.bounding == "clip", query.rows.unit(), group_columns(query)
    numbered, named = keys == (("g", GROUP_NUMBER),), tuple(node for _, node in keys)
    place: Items = (("place", ZERO),)
    if numbered:
        place = (("place", GROUP_NUMBER if clip else _place(unit, secret)),)
    elif keys:
        place = (("place", keyed_hash(named, unit, secret)), *keys)
    ends = None if clip else ((g + 1) // 2, g // 2) if numbered and g <= _FEW else (g, 0)
    source = Select((*unit, *place, *numbers), Subquery(grouped_rows(query, tuple(columns), listed)))
    terms = tuple(_term(m, plan) for _, m in _chosen(query) if not (isinstance(m, BernsteinSum) and m.place))
    groups, private = (0, len(keys)) if keys and not numbered else (query.combinations or 1, 0)
    limits = fitting_limits(plan) if any(isinstance(m, FittingUnits) for m in query.aggregates) else None
    return Bounded(source=source, groups=groups, ends=ends, terms=terms, keys=private, limits=limits)


def _chosen(query: Query) -> list[tuple[int, Count | Sum]]:
    return [(i, m) for i, m in enumerate(query.aggregates) if isinstance(m, Count | Sum)]


def _term(aggregate: Count | Sum, plan: NoisePlan) -> Term:
    """How a unit's number within one group is clipped before it is summed over units."""
    clip, reach = plan.bounding == "clip", aggregate.sensitivity(1)
    times = refinement(aggregate) if clip else 1
    bound = plan.groups * (aggregate.sensitivity(plan.rows) * times) ** 2 if clip else 0
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


def _place(unit: Items, secret: int) -> Expression:
    """Rank of group ``g`` in the random order of unit ``u``: a keyed hash of both, the group's number in the low bits.

    Two groups of a unit never have the same rank, and a rank depends only on unit, group and the query's secret. Which
    groups of a unit are kept therefore depends on that unit's own rows only, for any hash. The secret prevents anyone
    from choosing which groups are kept.
    """
    high = ShiftRight(keyed_hash((GROUP_NUMBER,), unit, secret), CODE_BITS + 1)
    return Arithmetic("+", Arithmetic("*", high, constant(1 << CODE_BITS)), GROUP_NUMBER)


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

    h = whole_column("h", "r")
    views: list[tuple[str, Statement]] = [("r", Select((("h", _place(unit, secret)),), Subquery(source), star=True))]
    ends: Items = (
        ("a1", Largest(whole_column("h"), True)),
        *([("b1", Largest(whole_column("h"), False))] if last else []),
        ("n", CountRows()),
    )
    views.append(("f1", grouped(ends, NamedView("r"), unit)))
    for i in range(2, first + 1):
        f = f"f{i - 1}"
        later = Largest(h, True, Compare(">", h, whole_column(f"a{i - 1}", f)))
        earlier = Largest(h, False, Compare("<", h, whole_column(f"b{i - 1}", f))) if i <= last else Largest(
            whole_column(f"b{last}", f), True
        )  # fmt: skip
        ends = ((f"a{i}", later), (f"b{min(i, last)}", earlier), ("n", CountRows()))
        views.append((f"f{i}", grouped(ends, joined(f), of("r"))))
    f = f"f{first}"
    a, b = whole_column(f"a{first}", f), whole_column(f"b{last}", f)
    # Each unit has a first group; it may lack a second.
    ends_of: list[Expression] = [
        *([IsNull(a)] if first > 1 else []),
        Compare("<=", h, a),
        *([Compare(">=", h, b)] if last else []),
    ]
    kept = Select((("n", whole_column("n", f)),), joined(f), where=any_of(*ends_of), star="r")
    return tuple(views), kept


def _part(aggregate: Count | Sum, rows: int) -> tuple[int, int]:
    if isinstance(aggregate, Count):
        return 0, 1 if aggregate.once else rows
    return min(0, aggregate.low) * rows, max(0, aggregate.high) * rows


def _share(term: Term, index: int, place: int) -> Expression:
    """A unit's contribution to one share within a group, as :class:`Cut` says; the share's place among all of them.

    The rows of a unit have a total weight of n rows. If n exceeds the limit, every share is reduced in the same
    proportion, so that the unit's mean does not change. Where a sum matters more than a mean, the sum is kept as far
    as ``rows`` rows allow, and the shares are computed from it.
    """
    shares = [ColumnRef(f"m{index - place + other}", "huge") for other in range(term.shares)]
    own, r, low = shares[place], term.rows, term.low
    total: Expression = shares[0]
    for other in shares[1:]:
        total = Arithmetic("+", total, other)
    most, rows = constant(r * term.reach), Quotient(total, constant(term.reach))
    if term.cut is Cut.MEAN:
        part = Arithmetic("*", own, constant(r)) if r > 1 else own
        scaled = Quotient(part, Extreme((rows, constant(1)), False))
        kept = Cast(when(Compare("<=", total, most), own, scaled), "int")
        return Arithmetic("*", kept, constant(term.times)) if term.times > 1 else kept
    count, weight = Extreme((rows, constant(r)), True), Extreme((total, most), True)
    above: Expression = shares[1]
    if low:
        above = Arithmetic("+", above, Arithmetic("*", constant(low), rows))
    inside: Expression = Extreme((above, constant(r * term.high)), True)
    if low:
        inside = Extreme((inside, constant(r * low)), False)
        inside = Arithmetic("-", inside, Arithmetic("*", constant(low), count))
    return Cast(inside if place else Arithmetic("-", weight, inside), "int")


def _clipped(plan: NoisePlan, each: Statement, keys: Items, chosen: list[tuple[int, Count | Sum]]) -> Statement:
    """Scale every unit's vector over the groups down to its L2 bound; the squares are summed exactly.

    The shares of a number are one vector and are scaled alike, so that a unit's mean does not change.
    """
    written = dict(each.items) if isinstance(each, Select) else {}
    own = {i: column_of(f"m{i}", written[f"m{i}"]) for i, _ in chosen}
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
    factors: list[tuple[str, Expression]] = []
    parts: list[tuple[str, Expression]] = []
    for i, aggregate in chosen:
        first = i - aggregate.place if isinstance(aggregate, BernsteinSum) else i
        bound, factor = _term(aggregate, plan).bound, ColumnRef(f"f{first}", "float", "norms", size=_FACTOR)
        if first == i:
            # 1 where nothing is scaled, else below 1. It is computed once for a unit, not for each of its groups.
            norm = ColumnRef(f"s{i}", "huge")
            root = Function(Arithmetic("/", constant(float(bound)), Cast(norm, "float")), "sqrt")
            scale = Arithmetic("*", root, constant(SAFE))
            factors.append((f"f{i}", when(Compare("<=", norm, constant(bound)), constant(1.0), scale)))
        scaled = Cast(Function(Arithmetic("*", Cast(own[i], "float"), factor), "trunc"), "int")
        parts.append((f"m{i}", _sum(when(equal(factor, constant(1.0)), own[i], scaled))))
    told = _tells_fitting(plan)
    items, fits = fitting_test(plan, _number_of_rows(plan)) if told else ((), TRUE)
    sums = Subquery(grouped((*squares, *items), NamedView("each"), unit))
    fit: Items = (("fits", when(fits, constant(1), ZERO)),) if told else ()
    norms = Select((*unit, *factors, *fit), sums)
    origin = unit[0][1].origin if isinstance(unit[0][1], Unit) else None
    both = Join(NamedView("each"), NamedView("norms"), equal(Unit(origin, "each"), Unit(origin, "norms")))
    last: Statement = grouped((*parts, ("units", CountRows())), both, keys)
    if told:
        last = UnionAllQuery(
            _first_row(equal(whole_column("fits"), constant(1)), NamedView("norms"), len(chosen)), last
        )
    return With((("each", each), ("norms", norms)), last)
