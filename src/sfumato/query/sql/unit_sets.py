"""Sets of people in SQL: IN (SELECT ...), EXISTS, INTERSECT and EXCEPT on the unit; IN (SELECT ...) of a public table.

A condition on other people's values is refused: whether a row stays would then depend on several units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from sqlglot import exp

from sfumato.engines.expressions import ColumnRef, Read
from sfumato.engines.statements import Select, Stored, Subquery
from sfumato.query.plan.catalog import PublicTable
from sfumato.query.plan.scalar import TYPES, Scalar
from sfumato.query.plan.unit_nodes import SemiJoin
from sfumato.query.sql.expressions import ColumnScope, ExpressionCompiler
from sfumato.query.sql.public_rows import public_rows
from sfumato.query.sql.refusal import refuse
from sfumato.query.sql.relation import BoundRelation, Views

Bind = Callable[[exp.Expr, Views], BoundRelation]
HINT = "Use `unit IN (SELECT unit FROM ...)` or EXISTS with `inner.unit = outer.unit`, joined by AND."


def split_conditions(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins.

    >>> from sqlglot import parse_one
    >>> [part.sql() for part in split_conditions(parse_one("a = 1 AND (b = 2 AND (c = 3 OR d = 4))"))]
    ['a = 1', 'b = 2', '(c = 3 OR d = 4)']
    """
    if isinstance(node, exp.Paren):
        return split_conditions(node.this) if isinstance(node.this, exp.And | exp.Paren) else [node]
    if isinstance(node, exp.And):
        return [part for side in (node.this, node.expression) for part in split_conditions(side)]
    return [node]


def _bare(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """A condition without parentheses and NOT, and whether it was negated."""
    negated = False
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    return node, negated


def is_set_condition(node: exp.Expr, reader: ExpressionCompiler) -> bool:
    """Whether a condition asks if the unit is in a subquery."""
    bare, _ = _bare(node)
    if isinstance(bare, exp.Exists):
        return True
    if not isinstance(bare, exp.In) or not bare.args.get("query"):
        return False
    return isinstance(bare.this, exp.Column) and reader.read(bare.this).unit


SetJoin: TypeAlias = tuple[exp.Join, exp.Column | None]
"""A join with the different rows of a subquery, and for NOT EXISTS the column that is missing then."""


def unit_test(
    node: exp.Expr, outer: BoundRelation, bind: Bind, views: Views, text: str, *, alias: str
) -> SemiJoin | SetJoin:
    """The rows of ``outer`` for whose unit a condition on a subquery holds, or the join that finds them.

    EXISTS that compares more columns than the unit is a join under ``alias`` with the different rows of these columns.
    """
    bare, negated = _bare(node)
    if isinstance(bare, exp.Exists):
        made, links = _links(bare.this, outer, text, bind, views)
        if len(links) > 1:
            return _rows_join(made, links, outer, alias, anti=negated)
        made.set("expressions", [exp.alias_(links[0][1].copy(), "unit")])
        inner = bind(made, views)
    else:
        query = bare.args["query"]
        inner = bind(query.this if isinstance(query, exp.Subquery) else query, views)
        if len(inner.columns.items) != 1 or not inner.columns.items[0][2].unit:
            raise refuse(bare, text, "IN (SELECT ...) on the privacy unit selects the unit's column alone.", HINT)
    return semi_join(bare, outer, inner, text, anti=negated)


def semi_join(node: exp.Expr, outer: BoundRelation, inner: BoundRelation, text: str, *, anti: bool) -> SemiJoin:
    if outer.rows.by_row or inner.rows.by_row:
        raise refuse(
            node, text, "Rows that are all different people cannot be compared.", "Both tables need a unit column."
        )
    return SemiJoin(left=outer.rows, right=inner.rows, anti=anti)


def _rows_join(
    made: exp.Select, links: list[tuple[exp.Column, exp.Expr]], outer: BoundRelation, alias: str, *, anti: bool
) -> SetJoin:
    names = [exp.to_identifier(f"{alias} {place}", quoted=True) for place in range(len(links))]
    made.set("expressions", [exp.alias_(inner.copy(), name) for (_, inner), name in zip(links, names, strict=True)])
    made.set("distinct", exp.Distinct())
    table = exp.to_identifier(alias, quoted=True)
    columns = [exp.column(name.copy(), table=table.copy()) for name in names]
    on = exp.and_(
        *(exp.EQ(this=mine.copy(), expression=other) for (mine, _), other in zip(links, columns, strict=True))
    )
    join = exp.Join(this=made.subquery(table, copy=False), on=on, side="LEFT" if anti else None)
    unit = next(place for place, (column, _) in enumerate(links) if _read(outer, column).unit)
    return join, columns[unit].copy() if anti else None


def _links(
    select: exp.Expr, outer: BoundRelation, text: str, bind: Bind, views: Views
) -> tuple[exp.Select, list[tuple[exp.Column, exp.Expr]]]:
    """The subquery of EXISTS without its equalities with columns of the outer query, and these: the outer column and
    what it equals. One of them is about the unit."""
    if isinstance(select, exp.Subquery):
        select = select.this
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if where is None or select.args.get("group"):
        raise refuse(select, text, "EXISTS needs a SELECT that compares its unit with the outer one.", HINT)
    own: list[exp.Expr] = []
    links: list[tuple[exp.Column, exp.Expr]] = []

    @cache
    def known() -> ColumnScope:
        """The columns of the subquery's tables."""
        rows = select.copy()
        rows.set("where", None)
        rows.set("expressions", [exp.Star()])
        return bind(rows, views).columns

    for part in split_conditions(where.this):
        bare, negated = _bare(part)
        sides = (bare.this, bare.expression) if isinstance(bare, exp.EQ) and not negated else ()
        outside = [
            side for side in sides if isinstance(side, exp.Column) and _is_outer(side, outer, select, known)
        ]  # fmt: skip
        if len(sides) == 2 and len(outside) == 1:
            links.append((outside[0], sides[1] if outside[0] is sides[0] else sides[0]))
        else:
            own.append(part)
    if not any(_read(outer, column).unit for column, _ in links):
        raise refuse(select, text, "EXISTS needs a condition that compares its unit with the outer one.", HINT)
    made = select.copy()
    assert isinstance(made, exp.Select)
    made.set("where", exp.Where(this=exp.and_(*(part.copy() for part in own), copy=False)) if own else None)
    return made, links


def _read(outer: BoundRelation, column: exp.Column) -> Scalar:
    return outer.columns.find(column.table, column.name)[0]


def _is_outer(column: exp.Column, outer: BoundRelation, select: exp.Expr, known: Callable[[], ColumnScope]) -> bool:
    """Whether a column of a subquery's condition is one of the outer query: qualified by an outer table, or with a name
    that no table of the subquery has."""
    inner = {table.alias_or_name.lower() for table in select.find_all(exp.Table)}
    if column.table.lower() in inner or len(outer.columns.find(column.table, column.name)) != 1:
        return False
    return bool(column.table) or not known().find("", column.name)


def public_values(select: exp.Expr, public: Mapping[str, PublicTable], text: str) -> list[object] | None:
    """The values of ``SELECT column FROM public_table WHERE ...``, which are public; None for other subqueries."""
    if isinstance(select, exp.Subquery):
        select = select.this
    from_ = select.args.get("from_") if isinstance(select, exp.Select) else None
    if from_ is None or not isinstance(from_.this, exp.Table):
        return None
    table = next((item for item in public.values() if item.name.lower() == from_.this.name.lower()), None)
    if table is None:
        return None
    if any(
        value
        for name, value in select.args.items()
        if value and name not in ("expressions", "from_", "where", "distinct")
    ):
        raise refuse(select, text, "A subquery about a public table has SELECT, FROM and WHERE.")
    names = [(column, ColumnRef(column, TYPES[table.kind(column)])) for column in table.frame.columns]
    alias = from_.this.alias_or_name
    scope = ColumnScope((alias, name, Scalar(node=node, kind=table.kind(name))) for name, node in names)
    reader = ExpressionCompiler(scope, text)
    if len(select.expressions) != 1:
        raise refuse(select, text, "IN (SELECT ...) selects one column.")
    item = reader.read(select.expressions[0].unalias())
    where = select.args.get("where")
    condition = None if where is None else reader.condition(where.this).node
    stored = tuple((name, Read((table.name, name), node.type)) for name, node in names)
    query = Select((("v", item.node),), Subquery(Select(stored, Stored(table.name))), where=condition, distinct=True)
    return [row[0] for row in public_rows(query, [table])]


def intersected(node: exp.Expr, first: BoundRelation, second: BoundRelation, text: str) -> BoundRelation:
    """INTERSECT and EXCEPT of two sets of units: one row per unit of the first, if it is (not) in the second."""
    for side in (first, second):
        if len(side.columns.items) != 1 or not side.columns.items[0][2].unit:
            raise refuse(node, text, "INTERSECT and EXCEPT are supported for the privacy unit's column alone.", HINT)
    rows = semi_join(node, first, second, text, anti=isinstance(node, exp.Except))
    return replace(first, rows=rows)
