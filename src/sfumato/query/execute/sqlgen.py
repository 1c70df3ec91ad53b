"""Statements of counts and sums: exact integers per group, after contribution bounding."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any

from sfumato.engines.aggregation import CountRows, Largest, RowNumber, Total, WholePartition
from sfumato.engines.contribution_bounding import FIT, SAFE, Bounded, Cut, Term
from sfumato.engines.expressions import (
    TRUE,
    Arithmetic,
    Cast,
    Coalesce,
    ColumnRef,
    Compare,
    Expression,
    Extreme,
    Quotient,
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
from sfumato.query.execute.fitting import fitting_limits, fitting_numbers, fitting_test
from sfumato.query.execute.group_passes import group_passes
from sfumato.query.execute.grouped_rows import (
    GROUP_NUMBER,
    ZERO,
    ValueTables,
    group_columns,
    group_place,
    grouped,
    grouped_rows,
    inline_values,
    keeps_all_groups,
    keyed_hash,
)
from sfumato.query.plan.aggregates import Added, BernsteinSum, Items, clipped, column_of, whole_column
from sfumato.query.plan.noise import NoisePlan, refinement
from sfumato.query.plan.query import Query

_FEW = 6
"""Up to this number of groups per unit, they are kept from both ends of the unit's order; more from its beginning."""

_NORM_BITS, _FINE_NORM = 60, 20
"""Binary digits of a squared norm that a machine integer holds, and of a number in it at least."""
_FACTOR = 1.0, 2.0**-70
"""Bounds of the factor by which a vector is scaled down: the square of its norm has at most 127 bits."""


def _sum(node: Expression) -> Expression:
    return Coalesce((Total(node), ZERO))


def _additive_columns(query: Query) -> tuple[Items, Items]:
    """Columns of the rows that the counts and sums need, and each count and sum over some of these rows."""
    chosen = [(f"m{i}", aggregate) for i, aggregate in _chosen(query)]
    columns = tuple(column for name, aggregate in chosen for column in aggregate.columns(name))
    return columns, tuple((name, aggregate.total(name)) for name, aggregate in chosen)


def additive_sql(
    plan: NoisePlan, secret: int, listed: ValueTables = inline_values, *, passes: bool = False
) -> Statement:
    """The counts and sums: per group the keys, one number per count and sum, then the number of units.

    A unit's rows are summed by group; window functions over each unit then choose its groups, or scale them down, and
    the groups are summed over units. Rows are read once, and nothing is joined. With ``passes`` joins take the place of
    window functions where a few groups are chosen or vectors are scaled. Where the plan counts them
    (``tells_fitting``), two numbers follow: how many of the units whose first group this is the limits fit, and cut. Or
    a first row has both: see ``with_fitting_row``.
    """
    query = plan.query
    keys, unit, chosen = group_columns(query), query.rows.unit(), _chosen(query)
    columns, sums = _additive_columns(query)
    source = grouped_rows(query, columns, listed)
    if plan.bounding == "row":
        return grouped((*sums, ("units", CountRows())), Subquery(source), keys)
    clip, told, whole = plan.bounding == "clip", tells_fitting(plan), (unit[0][1],)
    counted: Items = (("c", CountRows()),) if told else ()
    tested, fits = fitting_test(plan, _number_of_rows(plan)) if told else ((), TRUE)
    views: tuple[tuple[str, Statement], ...] = ()
    ranked = not clip and not keeps_all_groups(plan)
    if ranked and passes and keys == (("g", GROUP_NUMBER),) and plan.groups <= _FEW:
        views, source = group_passes(source, unit, plan.groups, secret)
        ranked = False
        if told:
            counted = (*counted, ("n", Largest(whole_column("n"), False)))
            tested, fits = _kept_whole(plan)
    totals: Items = tuple((f"m{i}", _sum(whole_column(f"m{i}"))) for i, _ in chosen)
    first: Expression = equal(whole_column("first"), GROUP_NUMBER)
    if ranked:
        own = tuple((name, WholePartition(node, whole)) for name, node in tested)
        rows = _ranked(plan, source, sums, counted, own, secret)
        first = equal(whole_column("place"), constant(1))
    else:
        each = _each(plan, source, (*unit, *keys), sums, counted)
        if passes and told and not clip:
            return _united(plan, views, each, totals, (tested, fits))
        of_unit: Items = (*tested, ("first", Largest(GROUP_NUMBER, True))) if told else ()
        rows = Subquery(each)
        if clip:
            views, rows, totals = _scaled(plan, each, of_unit, passes=passes)
        elif told:
            _, rows = _beside(each, unit, of_unit, passes=False)
    numbers: Items = ()
    if told:
        numbers = tuple((name, CountRows(where=all_of(first, test))) for name, test in fitting_numbers(fits))
    last = grouped((*totals, ("units", CountRows()), *numbers), rows, keys)
    return With(views, last) if views else last


def _united(
    plan: NoisePlan,
    views: tuple[tuple[str, Statement], ...],
    each: Statement,
    totals: Items,
    fitting: tuple[Items, Expression],
) -> Statement:
    """The totals behind the row ``FIT``, whose numbers are counted apart, without window functions."""
    tested, fits = fitting
    own = Subquery(grouped(tested, NamedView("each"), plan.query.rows.unit()))
    counts = tuple((name, CountRows(where=test)) for name, test in fitting_numbers(fits))
    padding = tuple((f"p{i}", ZERO) for i in range(len(totals) - 1))
    fit = Select((("g", constant(FIT)), *counts, *padding), own)
    last = grouped((*totals, ("units", CountRows())), NamedView("each"), group_columns(plan.query))
    return With((*views, ("each", each)), UnionAllQuery(fit, last))


def with_fitting_row(rows: list[tuple[Any, ...]]) -> list[tuple[object, ...]]:
    """Totals with the row ``FIT`` in front, in place of two numbers at the end of each row; unless they have it."""
    if any(row[0] == FIT for row in rows):
        return rows
    fit, cut = (sum(int(row[place]) for row in rows) for place in (-2, -1))
    return [(FIT, fit, cut), *(row[:-2] for row in rows)]


def tells_fitting(plan: NoisePlan) -> bool:
    """Whether the statement also counts the units that the limits fit and cut, which it tells by numbers of rows."""
    query = plan.query
    numbered = query.keys and query.public_keys and not query.assumed
    return plan.bounding != "row" and query.fitting is not None and bool(numbered)


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


def _ends(plan: NoisePlan) -> tuple[int, int]:
    """Number of groups of a unit that are kept from the beginning and from the end of its order."""
    g = plan.groups
    return ((g + 1) // 2, g // 2) if group_columns(plan.query) == (("g", GROUP_NUMBER),) and g <= _FEW else (g, 0)


def _ranked(plan: NoisePlan, source: Statement, sums: Items, counted: Items, own: Items, secret: int) -> Source:
    """Contribution bounding: keep groups of each unit, from both ends of its keyed random order.

    Places are distinct, so at most ``groups`` groups are kept, and all groups of a unit that has no more.
    """
    keys, unit = group_columns(plan.query), plan.query.rows.unit()
    named = tuple(node for _, node in keys)
    order: tuple[Expression, ...]
    if keys == (("g", GROUP_NUMBER),):
        # Rows are grouped in the order of the window function, so that an engine that sorts them does so once.
        by, order = (*unit, ("h", group_place(unit, secret)), *keys), (whole_column("h"),)
    else:
        by, order = (*unit, *keys), (keyed_hash(named, unit, secret), *named)
    first, last = _ends(plan)
    place, number = whole_column("place"), whole_column("n")
    windows: Items = (("place", RowNumber((unit[0][1],), order)), *own)
    if last and "n" not in dict(own):
        windows = (*windows, ("n", WholePartition(CountRows(), (unit[0][1],))))
    kept: Expression = Compare("<=", place, constant(first))
    if last:
        kept = any_of(kept, Compare(">", place, Arithmetic("-", number, constant(last))))
    ranked = Select(windows, Subquery(_each(plan, source, by, sums, counted)), star=True)
    return Subquery(Select((), Subquery(ranked), where=kept, star=True))


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
    kept_names = ((name, node if isinstance(node, Unit) else column_of(name, node)) for name, node in by)
    return Select((*kept_names, *cut, *((name, whole_column(name)) for name, _ in counted)), Subquery(each))


def bounding_pieces(plan: NoisePlan, secret: int, listed: ValueTables = inline_values) -> Bounded | None:
    """The description of what ``additive_sql`` computes; None if each row is a unit, so that nothing is bounded."""
    query = plan.query
    if plan.bounding == "row":
        return None
    columns: list[tuple[str, Expression]] = []
    numbers: list[tuple[str, Expression]] = []
    for i, aggregate in _chosen(query):
        of_rows, of_row = aggregate.numbers(f"m{i}")
        columns += of_rows
        numbers += of_row
    clip, unit, keys = plan.bounding == "clip", query.rows.unit(), group_columns(query)
    numbered, named = keys == (("g", GROUP_NUMBER),), tuple(node for _, node in keys)
    place: Items = (("place", ZERO),)
    if numbered:
        place = (("place", GROUP_NUMBER if clip else group_place(unit, secret)),)
    elif keys:
        place = (("place", keyed_hash(named, unit, secret)), *keys)
    ends = None if clip else _ends(plan)
    source = Select((*unit, *place, *numbers), Subquery(grouped_rows(query, tuple(columns), listed)))
    terms = tuple(_term(m, plan) for _, m in _chosen(query) if not m.place)
    groups, private = (0, len(keys)) if keys and not numbered else (query.combinations or 1, 0)
    limits = fitting_limits(plan) if query.fitting is not None and not query.assumed else None
    return Bounded(source=source, groups=groups, ends=ends, terms=terms, keys=private, limits=limits)


def _chosen(query: Query) -> list[tuple[int, Added]]:
    return [(i, m) for i, m in enumerate(query.aggregates) if isinstance(m, Added)]


def _term(aggregate: Added, plan: NoisePlan) -> Term:
    """How a unit's number within one group is clipped before it is summed over units."""
    clip, reach = plan.bounding == "clip", aggregate.sensitivity(1)
    times = refinement(aggregate) if clip else 1
    bound = plan.groups * (aggregate.sensitivity(plan.rows) * times) ** 2 if clip else 0
    if isinstance(aggregate, BernsteinSum):
        rows = isqrt(plan.groups * plan.rows**2) + 1 if clip else plan.rows
        term = Term(reach=reach, low=0, high=0, times=times, shares=aggregate.parts, cut=Cut.MEAN, rows=rows)
        room = (_NORM_BITS - (plan.groups * (plan.query.combinations or 1) * term.shares).bit_length()) // 2
        shift = max(0, term.farthest.bit_length() - max(room, _FINE_NORM)) if clip else 0
        return replace(term, bound=bound >> 2 * shift, shift=shift)
    low, high = aggregate.ends(plan.rows)
    if clip:
        far = isqrt(bound) // times + 1
        low, high = -far if low < 0 else 0, 1 if aggregate.once else far
    return Term(reach=reach, low=low, high=high, times=times, bound=bound, every=aggregate.every)


def _share(term: Term, index: int, place: int) -> Expression:
    """A unit's contribution to one share within a group; the share's place among all of them.

    The rows of a unit have a total weight of n rows. If n exceeds the limit, every share is reduced in the same
    proportion, so that the unit's mean does not change.
    """
    shares = [ColumnRef(f"m{index - place + other}", "huge") for other in range(term.shares)]
    own, r = shares[place], term.rows
    total: Expression = shares[0]
    for other in shares[1:]:
        total = Arithmetic("+", total, other)
    most, rows = constant(r * term.reach), Quotient(total, constant(term.reach))
    part = Arithmetic("*", own, constant(r)) if r > 1 else own
    scaled = Quotient(part, Extreme((rows, constant(1)), False))
    kept = Cast(when(Compare("<=", total, most), own, scaled), "int")
    return Arithmetic("*", kept, constant(term.times)) if term.times > 1 else kept


def _beside(
    each: Statement, unit: Items, items: Items, *, passes: bool
) -> tuple[tuple[tuple[str, Statement], ...], Source]:
    """Rows of units and groups with numbers of their whole unit, by window functions or by a join; views to define."""
    if not passes:
        windows = tuple((name, WholePartition(node, (unit[0][1],))) for name, node in items)
        return (), Subquery(Select(windows, Subquery(each), star=True))
    origin = unit[0][1].origin if isinstance(unit[0][1], Unit) else None
    views = (("each", each), ("whole", grouped(items, NamedView("each"), unit)))
    both = Join(NamedView("each"), NamedView("whole"), equal(Unit(origin, "each"), Unit(origin, "whole")))
    return views, Subquery(Select(tuple((n, column_of(n, node, "whole")) for n, node in items), both, star="each"))


def _scaled(
    plan: NoisePlan, each: Statement, of_unit: Items, *, passes: bool
) -> tuple[tuple[tuple[str, Statement], ...], Source, Items]:
    """Rows of units and groups with the factors of their unit's vectors, and the totals of the scaled numbers.

    Every unit's vector over the groups is scaled down to its L2 bound; the squares are summed exactly. The shares of a
    number are one vector and are scaled alike, so that a unit's mean does not change.
    """
    chosen = _chosen(plan.query)
    assert isinstance(each, Select)
    written = dict(each.items)
    numbers = {i: column_of(f"m{i}", written[f"m{i}"]) for i, _ in chosen}
    squares: list[tuple[str, Expression]] = []
    factors: list[tuple[str, Expression]] = []
    parts: list[tuple[str, Expression]] = []
    for i, aggregate in chosen:
        place, count = aggregate.place, aggregate.parts
        start = i - place
        factor = ColumnRef(f"f{start}", "float", size=_FACTOR)
        far, shift = numbers[i], _term(aggregate, plan).shift
        whole: Expression = far
        if shift:  # none is negative: they are shares
            whole = Quotient(Arithmetic("+", far, constant((1 << shift) - 1)), constant(1 << shift))
        squares.append((f"s{i}", Total(Arithmetic("*", Cast(whole, "huge"), whole))))
        if start == i:
            norm: Expression = ColumnRef(f"s{i}", "huge")
            for k in range(i + 1, i + count):
                norm = Arithmetic("+", norm, ColumnRef(f"s{k}", "huge"))
            bound = _term(aggregate, plan).bound
            # 1 where nothing is scaled, else below 1.
            root = Function(Arithmetic("/", constant(float(bound)), Cast(norm, "float")), "sqrt")
            scale = Arithmetic("*", root, constant(SAFE))
            factors.append((f"f{i}", when(Compare("<=", norm, constant(bound)), constant(1.0), scale)))
        scaled = Cast(Function(Arithmetic("*", Cast(numbers[i], "float"), factor), "trunc"), "int")
        parts.append((f"m{i}", _sum(when(equal(factor, constant(1.0)), numbers[i], scaled))))
    views, squared = _beside(each, plan.query.rows.unit(), (*squares, *of_unit), passes=passes)
    return views, Subquery(Select(tuple(factors), squared, star=True)), tuple(parts)
