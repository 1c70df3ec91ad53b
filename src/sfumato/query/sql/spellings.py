"""Other spellings of what is answered: each is written out as the form that the binder knows, with the same result.

``written_out`` needs the syntax alone and rewrites a whole statement before it is bound. The other functions rewrite
one SELECT at the place where its rows are known to be private.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sqlglot import exp

from sfumato.query.sql.unit_sets import split_conditions

_HIDDEN = "window "
"""Start of column names that ``*`` leaves out."""
_TIMES = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S"}
_TIME = re.compile("|".join(_TIMES))
_BETWEEN = re.compile(r"[-/ :._]*")


def written_out(tree: exp.Expr) -> exp.Expr:
    """The statement with its other spellings written out.

    >>> from sqlglot import parse_one
    >>> written_out(parse_one("SELECT COUNT(*) FROM v RIGHT JOIN p USING (u) WHERE (a, b) IN ((1, 2), (3, 4))")).sql()
    'SELECT COUNT(*) FROM p LEFT JOIN v USING (u) WHERE ((a = 1 AND b = 2) OR (a = 3 AND b = 4))'
    """
    for node in list(tree.walk()):
        rule = _RULES.get(type(node))
        made = None if rule is None else rule(node)
        if made is not None and made is not node:
            if node is tree:
                tree = made
            else:
                node.replace(made)
    for select in list(tree.find_all(exp.Select)):
        _swap_right_join(select)
        _move_conditions(select)
        _common_conditions(select)
        _join_lookups(select)
        _order_by_all(select)
        _distinct_on(select)
    return tree


def _pairs(node: exp.Expr) -> exp.Expr | None:
    """``(a, b) IN ((1, 2), ...)`` as a condition; databases differ about NOT IN of rows with missing values."""
    place = node.parent
    while isinstance(place, exp.And | exp.Or | exp.Paren):
        place = place.parent
    if not isinstance(place, exp.Where | exp.Having | exp.Join | exp.If | exp.CountIf):
        return None
    if not isinstance(node.this, exp.Tuple) or not node.expressions or node.args.get("query"):
        return None
    names = node.this.expressions
    if not all(isinstance(row, exp.Tuple) and len(row.expressions) == len(names) for row in node.expressions):
        return None
    rows = []
    for row in node.expressions:
        pairs = zip(names, row.expressions, strict=True)
        rows.append(exp.paren(exp.and_(*(exp.EQ(this=name.copy(), expression=value) for name, value in pairs))))
    return exp.paren(exp.or_(*rows, copy=False))


def _any_of(node: exp.Expr) -> exp.Expr | None:
    """``x = ANY (SELECT ...)`` and ``x <> ALL (SELECT ...)``."""
    quantified = node.expression
    if not isinstance(quantified, exp.Any if isinstance(node, exp.EQ) else exp.All):
        return None
    query = quantified.this.this if isinstance(quantified.this, exp.Subquery) else quantified.this
    if not isinstance(query, exp.Select):
        return None
    found = exp.In(this=node.this, query=exp.Subquery(this=query))
    return found if isinstance(node, exp.EQ) else exp.Not(this=found)


def _distinct_from(node: exp.Expr) -> exp.Expr | None:
    """``a IS [NOT] DISTINCT FROM b``: never unknown, two missing values are the same."""
    a, b = node.this, node.expression
    either, both = (joined(exp.Is(this=x.copy(), expression=exp.Null()) for x in (a, b)) for joined in (_or, _and))
    same = exp.Case(ifs=[exp.If(this=either, true=both)], default=exp.EQ(this=a.copy(), expression=b.copy()))
    return same if isinstance(node, exp.NullSafeEQ) else exp.Not(this=same)


def _or(items: Iterable[exp.Expr]) -> exp.Expr:
    return exp.or_(*items, copy=False)


def _and(items: Iterable[exp.Expr]) -> exp.Expr:
    return exp.and_(*items, copy=False)


def _time_text(node: exp.Expr) -> exp.Expr | None:
    """``TO_CHAR(day, 'YYYY-MM')``; formats with other fields are refused."""
    form = node.args.get("format")
    if (
        not isinstance(form, exp.Literal)
        or not form.is_string
        or not all(map(_BETWEEN.fullmatch, _TIME.split(form.this)))
    ):
        return None
    codes = _TIME.sub(lambda found: _TIMES[found[0]], form.this)
    return exp.TimeToStr(this=node.this, format=exp.Literal.string(codes))


def _day(node: exp.Expr) -> exp.Expr | None:
    """``DATE(x)``."""
    alone = node.this is not None and not any(value for name, value in node.args.items() if name != "this")
    return exp.cast(node.this, "date", copy=False) if alone else None


def _choice(node: exp.Expr) -> exp.Expr | None:
    """``IFF(condition, yes, no)``."""
    if str(node.this).upper() != "IFF" or len(node.expressions) != 3:
        return None
    condition, yes, no = node.expressions
    return exp.If(this=condition, true=yes, false=no)


def _first_rows(node: exp.Expr) -> exp.Expr | None:
    """``FETCH FIRST 3 ROWS ONLY``."""
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        return None
    return exp.Limit(expression=node.args.get("count") or exp.Literal.number(1))


_RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr | None]] = {
    exp.In: _pairs,
    exp.EQ: _any_of,
    exp.NEQ: _any_of,
    exp.NullSafeEQ: _distinct_from,
    exp.NullSafeNEQ: _distinct_from,
    exp.ToChar: _time_text,
    exp.Date: _day,
    exp.Anonymous: _choice,
    exp.Fetch: _first_rows,
}


def _swap_right_join(select: exp.Select) -> None:
    """``a RIGHT JOIN b`` is ``b LEFT JOIN a``."""
    joins, from_ = select.args.get("joins") or [], select.args.get("from_")
    if from_ is None or len(joins) != 1 or joins[0].side.upper() != "RIGHT" or joins[0].method:
        return
    first, second = from_.this, joins[0].this
    from_.set("this", second)
    joins[0].set("this", first)
    joins[0].set("side", "LEFT")


def _move_conditions(select: exp.Select) -> None:
    """Conditions of ON that are no equality of two tables, into WHERE."""
    for join in select.args.get("joins") or []:
        on, kind = join.args.get("on"), join.kind.upper()
        if on is None or join.method or join.side or kind not in ("", "INNER"):
            continue
        parts = split_conditions(on)
        rest = [part for part in parts if not _joins(part)]
        kept = [part for part in parts if not any(part is one for one in rest)]
        if not rest or not kept:
            continue
        select.where(*rest, copy=False)
        join.set("on", exp.and_(*kept, copy=False))


def _joins(condition: exp.Expr) -> bool:
    """Whether a condition of ON may join its tables: an equality of two expressions of columns."""
    if not isinstance(condition, exp.EQ):
        return False
    one, other = _tables(condition.this), _tables(condition.expression)
    return bool(one and other) and not (one == other and len(one) == 1 and "" not in one)


def _tables(node: exp.Expr) -> set[str]:
    """The tables that qualify the columns of an expression; "" for columns without one."""
    return {column.table.lower() for column in node.find_all(exp.Column)}


def _common_conditions(select: exp.Select) -> None:
    """``WHERE (a AND b) OR (a AND c)`` as ``a AND (b OR c)``, so that ``a`` may join two tables."""
    where = select.args.get("where")
    if where is None or not isinstance(node := where.this.unnest(), exp.Or):
        return
    branches = [split_conditions(branch) for branch in node.flatten()]
    shared = [part for part in branches[0] if all(part in others for others in branches[1:])]
    if not shared:
        return
    rest = [[part for part in branch if part not in shared] for branch in branches]
    either = [exp.paren(exp.or_(*(exp.and_(*parts) for parts in rest)))] if all(rest) else []
    where.set("this", exp.and_(*shared, *either))


def _join_lookups(select: exp.Select) -> None:
    """``(SELECT COUNT(*) FROM v WHERE v.u = p.u)`` as a LEFT JOIN of the aggregates by ``u``."""
    from_ = select.args.get("from_")
    if from_ is None:
        return
    outer = {
        from_.this.alias_or_name.lower(),
        *(join.this.alias_or_name.lower() for join in select.args.get("joins") or []),
    }
    for place, node in enumerate(_scalar_subqueries(select)):
        found = _correlated(node.this, outer)
        if found is None:
            continue
        inner, outside, rest = found
        query, name = node.this.copy(), exp.to_identifier(f"lookup {place}", quoted=True)
        value, key = (exp.to_identifier(f"{_HIDDEN}{word}", quoted=True) for word in ("value", "key"))
        result = query.expressions[0].unalias()
        query.set("expressions", [exp.alias_(inner.copy(), key), exp.alias_(result.copy(), value)])
        query.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
        query.set("group", exp.Group(expressions=[inner.copy()]))
        on = exp.EQ(this=exp.column(key.copy(), table=name.copy()), expression=outside.copy())
        select.join(query.subquery(name, copy=False), on=on, join_type="left", copy=False)
        read: exp.Expr = exp.column(value.copy(), table=name.copy())
        counted = isinstance(result, exp.Count | exp.CountIf)
        node.replace(exp.Coalesce(this=read, expressions=[exp.Literal.number(0)]) if counted else read)


def _scalar_subqueries(select: exp.Select) -> Iterable[exp.Subquery]:
    return [
        node for node in select.find_all(exp.Subquery)
        if isinstance(node.this, exp.Select) and node.find_ancestor(exp.Select) is select
        and not isinstance(node.parent, exp.From | exp.Join | exp.In | exp.Exists | exp.Any | exp.All)
    ]  # fmt: skip


def _correlated(query: exp.Select, outer: set[str]) -> tuple[exp.Expr, exp.Expr, list[exp.Expr]] | None:
    """The two sides of the one equality with the outer query and the other conditions; None for other subqueries."""
    where, from_ = query.args.get("where"), query.args.get("from_")
    known = {"expressions", "from_", "where"}
    if (
        where is None
        or from_ is None
        or any(value for name, value in query.args.items() if value and name not in known)
    ):
        return None
    own = from_.this.alias_or_name.lower()
    if not isinstance(from_.this, exp.Table) or own in outer or len(query.expressions) != 1:
        return None
    if not isinstance(query.expressions[0].unalias(), exp.AggFunc) or query.expressions[0].find(exp.Select):
        return None
    parts = split_conditions(where.this)
    across = [part for part in parts if _tables(part) & outer]
    if len(across) != 1 or not isinstance(across[0], exp.EQ) or _tables(query.expressions[0]) & outer:
        return None
    inner, outside = across[0].this, across[0].expression
    if _tables(inner) & outer:
        inner, outside = outside, inner
    if not isinstance(inner, exp.Column) or not isinstance(outside, exp.Column) or _tables(inner) & outer:
        return None
    return inner, outside, [part for part in parts if part is not across[0]]


def _distinct_on(select: exp.Select) -> None:
    """``SELECT DISTINCT ON (u) ... ORDER BY u, day`` as QUALIFY on the first row of each ``u``."""
    distinct, order = select.args.get("distinct"), select.args.get("order")
    on = distinct.args.get("on") if distinct is not None else None
    if on is None or order is None or select.args.get("qualify") or select.args.get("group"):
        return
    ordered, keys = order.expressions, on.expressions
    if {item.this.sql() for item in ordered[: len(keys)]} != {key.sql() for key in keys} or len(ordered) == len(keys):
        return
    first = exp.Window(
        this=exp.RowNumber(), partition_by=[key.copy() for key in keys],
        order=exp.Order(expressions=[item.copy() for item in ordered[len(keys) :]]),
    )  # fmt: skip
    select.set("qualify", exp.Qualify(this=exp.EQ(this=first, expression=exp.Literal.number(1))))
    select.set("distinct", None)
    if select.parent is not None:
        select.set("order", None)


def _order_by_all(select: exp.Select) -> None:
    """``ORDER BY ALL``."""
    order = select.args.get("order")
    if order is None or len(order.expressions) != 1 or not isinstance(order.expressions[0].this, exp.Var):
        return
    [item] = order.expressions
    if item.this.name.upper() != "ALL":
        return
    places = range(1, len(select.expressions) + 1)
    ordered = [
        exp.Ordered(this=exp.Literal.number(place), desc=item.args.get("desc"), nulls_first=False) for place in places
    ]
    order.set("expressions", ordered)


def qualified_rows(select: exp.Select) -> exp.Select | None:
    """A SELECT with QUALIFY as WHERE over a subquery with the window functions as columns; None for others."""
    if select.args.get("qualify") is None:
        return None
    inner = select.copy()
    condition = exp.paren(inner.args.pop("qualify").this)
    for place, node in enumerate(list(condition.find_all(exp.Window))):
        name = exp.to_identifier(f"{_HIDDEN}qualify {place}", quoted=True)
        inner.append("expressions", exp.alias_(node.copy(), name))
        node.replace(exp.column(name.copy()))
    return (
        exp.Select(expressions=[exp.Star()]).from_(inner.subquery("qualified"), copy=False).where(condition, copy=False)
    )


def comma_join(join: exp.Join, conditions: list[exp.Expr], sides: Callable[[exp.Expr], set[str]]) -> exp.Join | None:
    """``FROM a, b WHERE a.k = b.k`` as a JOIN; None where no condition joins the table.

    ``sides`` tells where the columns of an expression are: "left", "right" or "" for neither. The conditions that join
    are taken out of ``conditions``.
    """
    if any(value for name, value in join.args.items() if value and name != "this"):
        return None
    on = [
        part for part in conditions
        if isinstance(part, exp.EQ)
        and sorted([*sides(part.this), *sides(part.expression)]) == ["left", "right"]
        and len(sides(part.this)) == 1
    ]  # fmt: skip
    if not on:
        return None
    conditions[:] = [part for part in conditions if not any(part is one for one in on)]
    return exp.Join(this=join.this, on=exp.and_(*on))
