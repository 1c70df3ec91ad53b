"""UNION ALL of aggregate queries, ROLLUP, CUBE and GROUPING SETS: several queries whose rows make one answer.

The parts of UNION ALL are measured one after the other, each at an equal share of the cost, so that the losses add up
to the whole cost (sequential composition). Rows of one person may be in all of them. Grouping sets are measured
together where their aggregates add up (``plan.grouping_sets``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.query.plan.catalog import Catalog
from sfumato.query.plan.query import Query
from sfumato.query.sql.bind import Binder
from sfumato.query.sql.parse import bind_query
from sfumato.query.sql.refusal import refuse
from sfumato.query.sql.relation import Views
from sfumato.query.sql.released import title
from sfumato.query.sql.statement import parse_statement

_MAX_PARTS = 50
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True, kw_only=True)
class CompoundQuery:
    """Queries with the same columns. The rows of all are sorted and limited together."""

    parts: tuple[Query, ...]
    order: tuple[tuple[int, bool], ...] = ()
    """Places of columns, and whether descending."""
    limit: int | None = None
    sets: tuple[str, ...] = ()
    """Names of the grouping sets, such as `by ward, sex`, where the parts are those of one SELECT."""

    @property
    def chosen_by_noise(self) -> bool:
        """Whether a limit cuts rows that are ordered by noisy values."""
        ordered = (part.outputs[place][1] for part in self.parts for place, _ in self.order)
        return self.limit is not None and any(output.noisy for output in ordered)


def parse_compound(sql: str, catalog: Catalog) -> CompoundQuery | None:
    """The parts of a UNION ALL or of grouping sets; None for a query of one part."""
    if "UNION" not in sql.upper() and not any(word in sql.upper() for word in ("ROLLUP", "CUBE", "GROUPING")):
        return None
    text, tree, target = parse_statement(sql)
    try:
        selects = list(_selects(tree, text))
    except RecursionError:
        raise QueryRefused("The query is nested too deeply.") from None
    if len(selects) == 1 and selects[0] is tree:
        return None
    if target is not None:
        raise QueryRefused("ERROR is not supported for UNION ALL and grouping sets.", fix="Use epsilon.")
    if len(selects) > _MAX_PARTS:
        raise refuse(tree, text, f"A query has at most {_MAX_PARTS} parts.", "Use fewer grouping sets.")
    views: Views = Binder(catalog, text).views(tree, {})
    parts = tuple(bind_query(select, catalog, text, views) for select in selects)
    _check_columns(tree, text, parts)
    names = [title(item).lower() for item in selects[0].expressions]
    order, limit = tree.args.get("order"), tree.args.get("limit")
    return CompoundQuery(
        parts=parts,
        order=tuple(_ordered(item, names, text) for item in order.expressions) if order is not None else (),
        limit=None if limit is None else _whole(limit, text),
        sets=tuple(_set_name(select) for select in selects) if isinstance(tree, exp.Select) else (),
    )


def _set_name(select: exp.Expr) -> str:
    group = select.args.get("group")
    return f"by {', '.join(key.sql('duckdb') for key in group.expressions)}" if group is not None else "in total"


def _selects(tree: exp.Expr, text: str) -> Iterator[exp.Expr]:
    """The SELECTs of a UNION ALL, and of the grouping sets in each."""
    if isinstance(tree, exp.Union):
        if tree.args.get("distinct", True):
            raise refuse(tree, text, "Rows of aggregates are combined by UNION ALL.", "Use UNION ALL.")
        known = ("this", "expression", "with_", "order", "limit", "distinct")
        if any(value for name, value in tree.args.items() if value and name not in known):
            raise refuse(tree, text, "UNION ALL accepts ORDER BY and LIMIT behind it.")
        for side in (tree.this, tree.expression):
            yield from _selects(side.this if isinstance(side, exp.Subquery) else side, text)
        return
    group = tree.args.get("group") if isinstance(tree, exp.Select) else None
    if group is None or not any(isinstance(item, _SETS) for item in group.expressions):
        yield tree
        return
    if tree.args.get("qualify") or any(isinstance(node, exp.Window) for node in tree.walk()):
        raise refuse(
            tree, text, "Window functions are not supported with grouping sets.", "Use one query a grouping set."
        )
    for keys in _grouping_sets(group, text):
        yield _grouped_by(tree, [_key(key, tree) for key in keys], text)


def _key(node: exp.Expr, select: exp.Expr) -> exp.Expr:
    """A key of a grouping set; one that is a place in SELECT as the expression there."""
    place = int(node.this) if isinstance(node, exp.Literal) and node.is_int else 0
    return select.expressions[place - 1].unalias() if 0 < place <= len(select.expressions) else node


def _grouping_sets(group: exp.Expr, text: str) -> list[list[exp.Expr]]:
    """All sets of keys, as the product of the elements of GROUP BY; the same set twice counts once."""
    elements: list[list[list[exp.Expr]]] = []
    for item in group.expressions:
        keys = [_tuple(part) for part in item.expressions] if isinstance(item, _SETS) else [[item]]
        match item:
            case exp.Rollup():
                elements.append([list(chain(*keys[:size])) for size in range(len(keys), -1, -1)])
            case exp.Cube():
                if len(keys) > 5:
                    raise refuse(item, text, "CUBE accepts at most 5 keys.", "Use GROUPING SETS.")
                sizes = range(len(keys), -1, -1)
                elements.append([list(chain(*chosen)) for size in sizes for chosen in combinations(keys, size)])
            case exp.GroupingSets() | exp.Expression():  # the sets as they are written, or one plain key
                elements.append(keys)
    found: dict[tuple[str, ...], list[exp.Expr]] = {}
    for chosen in product(*elements):
        keys_of = [key for part in chosen for key in part]
        found.setdefault(tuple(sorted(key.sql() for key in keys_of)), keys_of)
    return list(found.values())


def _tuple(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return [node.this]
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _grouped_by(tree: exp.Expr, keys: list[exp.Expr], text: str) -> exp.Expr:
    """The SELECT of one grouping set: keys that are not in it are NULL."""
    every = {_key(key, tree).sql().lower() for item in tree.args["group"].expressions
             for part in (item.expressions if isinstance(item, _SETS) else [item]) for key in _tuple(part)}  # fmt: skip
    here = {key.sql().lower() for key in keys}
    made = tree.copy()
    for word in ("order", "limit", "with_"):
        made.set(word, None)
    made.set("group", exp.Group(expressions=[key.copy() for key in keys]) if keys else None)
    items = []
    for item in made.expressions:
        inner = item.unalias()
        name = inner.sql().lower()
        alias = item.alias.lower() if item.alias else ""
        if name in every - here or alias in every - here:
            inner = exp.Null()
        elif isinstance(inner, exp.Grouping):
            inner = exp.Literal.number(int(inner.expressions[0].sql().lower() not in here))
        items.append(exp.alias_(inner, title(item), quoted=True) if inner is not item else item)
    made.set("expressions", items)
    return made


def _check_columns(tree: exp.Expr, text: str, parts: tuple[Query, ...]) -> None:
    rows = [[output.family([key.scalar.family for key in part.keys]) for _, output in part.outputs] for part in parts]
    if len({len(row) for row in rows}) != 1:
        raise refuse(tree, text, "All parts must have the same number of columns.")
    for column in zip(*rows, strict=True):
        if len({family for family in column if family}) > 1:
            raise refuse(tree, text, "A column must be of one kind in all parts.", "Use CAST(... AS VARCHAR).")


def _ordered(node: exp.Expr, names: list[str], text: str) -> tuple[int, bool]:
    inner, descending = node.this, bool(node.args.get("desc"))
    if isinstance(inner, exp.Literal) and inner.this.isdigit() and 1 <= int(inner.this) <= len(names):
        return int(inner.this) - 1, descending
    if isinstance(inner, exp.Column) and inner.name.lower() in names and not node.args.get("nulls_first"):
        return names.index(inner.name.lower()), descending
    raise refuse(node, text, "ORDER BY of several parts takes names and places of columns.", "Use ORDER BY 1.")


def _whole(node: exp.Expr, text: str) -> int:
    inner = node.expression
    if not isinstance(inner, exp.Literal) or inner.is_string or not inner.this.isdigit() or node.args.get("offset"):
        raise refuse(node, text, "LIMIT must be a whole number constant.")
    return int(inner.this)
