"""From FROM, JOIN, WHERE and subqueries to a plan of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from sfumato.errors import did_you_mean
from sfumato.query.catalog import Catalog, PrivateTable, PublicTable, distinct_values
from sfumato.query.plan.relational import Filter, GroupByUnit, PlanNode, Project, PublicJoin, Scan, UnionAll, UnitJoin
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.expressions import ColumnScope, ExpressionCompiler
from sfumato.query.sql.functions import TYPES
from sfumato.query.sql.refusal import refuse
from sfumato.query.sql.unit_aggregates import UNIT_AGGREGATES
from sfumato.rationals import rational
from sfumato.schema import Kind

__all__ = ["Binder", "BoundRelation", "ContributionLimits", "scan_table"]

_ALLOWED = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "with_"}


_MOST_TABLES = 64
_MOST_LOOSE = 3
_FAN = 64
"""A unit's row may be repeated so often by UNION ALL, a quarter as often for each table it is joined with. Who could
repeat one person's row at will could make a query run out of time for that person alone, and see it do so."""

ContributionLimits = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, kw_only=True)
class BoundRelation:
    """Rows and the names by which the query can speak of their columns."""

    rows: PlanNode
    columns: ColumnScope
    limits: ContributionLimits
    """(rows, groups, typical groups) of one unit, as the owner declared them."""


class Binder:
    """Builds relations; hands out internal column names in the order of the query, so that equal queries give equal
    plans whatever their aliases."""

    def __init__(self, catalog: Catalog, text: str) -> None:
        self.catalog = catalog
        self.text = text
        self._count = 0
        self._tables = 0

    def _name(self) -> str:
        self._count += 1
        return f"c{self._count}"

    def refuse(self, node: Any, reason: str, fix: str = "") -> Exception:
        return refuse(node, self.text, reason, fix)

    def reader(self, relation: BoundRelation) -> ExpressionCompiler:
        return ExpressionCompiler(relation.columns, self.text)

    def select_rows(self, select: Any, views: Mapping[str, Any]) -> tuple[BoundRelation, Mapping[str, Any]]:
        """FROM, JOIN and WHERE of a SELECT, and the named subqueries in sight."""
        strange = [name for name, value in select.args.items() if value and name not in _ALLOWED]
        if strange:
            word = strange[0].rstrip("_").replace("_", " ").upper()
            raise self.refuse(
                select.args[strange[0]] if hasattr(select.args[strange[0]], "walk") else select,
                f"{word} is not supported.",
            )
        with_ = select.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise self.refuse(with_, "Recursive queries are not supported.")
            views = dict(views)
            for cte in with_.expressions:
                views[cte.alias.lower()] = (cte.this, dict(views))
        from_ = select.args.get("from_")
        if from_ is None:
            raise self.refuse(select, "The query has no FROM clause.", "Use SELECT ... FROM table.")
        relation: BoundRelation | PublicTable = self._item(from_.this, views)
        alias = from_.this.alias_or_name
        for join in select.args.get("joins") or ():
            relation = self._join(relation, alias, join, views)
        if isinstance(relation, PublicTable):
            raise self.refuse(
                from_,
                f"`{relation.name}` is a public table, which needs no private query.",
                "Read it directly, or join it with a private table.",
            )
        where = select.args.get("where")
        if where is not None:
            condition = self.reader(relation).condition(where.this)
            relation = replace(relation, rows=Filter(child=relation.rows, condition=condition))
        return relation, views

    def _item(self, node: Any, views: Mapping[str, Any]) -> BoundRelation | PublicTable:
        kind = type(node).__name__
        if kind == "Subquery":
            if any(value for name, value in node.args.items() if value and name not in ("this", "alias")):
                raise self.refuse(node, "A subquery in FROM accepts an alias and nothing else.")
            inner = self.subquery(node.this, views)
            return replace(inner, columns=inner.columns.under(node.alias))
        if kind != "Table" or type(node.this).__name__ != "Identifier":
            raise self.refuse(node, "FROM accepts tables of the catalog and subqueries, not functions or files.")
        if any(value for name, value in node.args.items() if value and name not in ("this", "alias")):
            raise self.refuse(
                node,
                "FROM accepts the name of a table without qualifiers.",
                "Remove schema, TABLESAMPLE and other clauses.",
            )
        alias_node = node.args.get("alias")
        if alias_node is not None and alias_node.args.get("columns"):
            raise self.refuse(node, "FROM does not support column aliases. Rename columns in SELECT.")
        name = node.name.lower()
        if name in views:
            query, outer = views[name]
            inner = self.subquery(query, outer)
            return replace(inner, columns=inner.columns.under(node.alias_or_name))
        for table in self.catalog.private.values():
            if table.name.lower() == name:
                self._tables += 1
                if self._tables > _MOST_TABLES:
                    raise self.refuse(
                        node,
                        f"A query reads private tables at most {_MOST_TABLES} times.",
                        "A subquery in WITH counts each time it is used.",
                    )
                return self._scan(table, node.alias_or_name)
        for public in self.catalog.public.values():
            if public.name.lower() == name:
                return public
        known = [*self.catalog.private, *self.catalog.public, *views]
        raise self.refuse(node, f"There is no table `{node.name}`.", did_you_mean(node.name, known))

    def _scan(self, table: PrivateTable, alias: str) -> BoundRelation:
        names, items = [], []
        for column, declared in table.schema.columns.items():
            kind = declared.kind
            assert kind is not None
            name = self._name()
            names.append((name, column, TYPES[kind]))
            low = high = None
            values: tuple[Any, ...] | None = None
            domain = declared.domain
            if domain is not None and domain.values is not None:
                values = table.values[column]
                if kind in (Kind.INTEGER, Kind.NUMBER) and values:
                    low, high = rational(min(values)), rational(max(values))
            elif domain is not None and kind in (Kind.INTEGER, Kind.NUMBER):
                low, high = rational(domain.low or 0), rational(domain.high or 0)
            unit = column == table.schema.unit
            scalar = Scalar(sql=name, kind=kind, low=low, high=high, values=values, unit=unit)
            items.append((alias, column, scalar))
        scan = Scan(table=table.name, unit=table.schema.unit, names=tuple(names))
        limits = (1, 1, 1) if table.schema.unit is None else (table.rows, table.groups, table.typical)
        return BoundRelation(rows=scan, columns=ColumnScope(items), limits=limits)

    def _join(
        self, left: BoundRelation | PublicTable, alias: str, join: Any, views: Mapping[str, Any]
    ) -> BoundRelation:
        side, how = (join.side or "").upper(), (join.kind or "").upper()
        if join.method or side not in ("", "LEFT") or how not in ("", "INNER", "OUTER"):
            raise self.refuse(join, "Only JOIN and LEFT JOIN are supported.")
        condition, using = join.args.get("on"), join.args.get("using")
        if condition is None and not using:
            raise self.refuse(
                join, "A join requires ON or USING.", "Use JOIN ... ON key columns; cross joins are not supported."
            )
        right, right_alias, left_alias = self._item(join.this, views), join.this.alias_or_name, alias
        if isinstance(left, PublicTable):
            if side or isinstance(right, PublicTable):
                raise self.refuse(join, "The private table comes first in a LEFT JOIN, and one table must be private.")
            left, right, right_alias, left_alias = right, left, left_alias, right_alias
        if isinstance(right, PublicTable):
            return self._attach(left, right, right_alias, join, outer=side == "LEFT")
        if side:
            raise self.refuse(join, "Two private tables are joined by JOIN.", "LEFT JOIN is for public tables.")
        return self._pair(left, right, join)

    def _attach(self, left: BoundRelation, table: PublicTable, alias: str, join: Any, *, outer: bool) -> BoundRelation:
        public = ColumnScope(
            (alias, column, Scalar(sql=f"public:{column}", kind=table.kind(column))) for column in table.frame.columns
        )
        seen, both = self.reader(left), ExpressionCompiler(left.columns + public, self.text)
        on: list[tuple[Scalar, str, str]] = []
        for one, other in self._equalities(join):
            if isinstance(one, str):
                found = left.columns.find("", one)
                if len(found) != 1 or not public.find("", one):
                    raise self.refuse(join, f"USING needs the column `{one}` on both sides.")
                scalar, column = found[0], next(n for n in table.frame.columns if n.lower() == one.lower())
            else:
                scalar, column = self._sides(both, seen, one, other, join)
            theirs = Scalar(sql="", kind=table.kind(column))
            if scalar.family != theirs.family:
                raise self.refuse(
                    join, f"A {scalar.family} cannot be joined with a {theirs.family}.", "Use CAST on the first."
                )
            if scalar.kind is Kind.NUMBER and theirs.kind is Kind.INTEGER:
                scalar = _whole(scalar)
            on.append((scalar, column, TYPES[theirs.kind]))
        if {column for _, column, _ in on} != set(table.key) or len(on) != len(table.key):
            raise self.refuse(
                join,
                f"`{table.name}` is joined on its key: {', '.join(table.key)}.",
                "Use WHERE for further conditions.",
            )
        names, items = [], []
        for column in table.frame.columns:
            kind = table.kind(column)
            name = self._name()
            names.append((name, column, TYPES[kind]))
            values = table.values(column)
            ends = [value for value in values if value == value] if kind in (Kind.INTEGER, Kind.NUMBER) else []
            bounded = ends and isfinite(ends[0]) and isfinite(ends[-1])
            low, high = (rational(ends[0]), rational(ends[-1])) if bounded else (None, None)
            known = None if kind is Kind.NUMBER else values
            items.append((alias, column, Scalar(sql=name, kind=kind, low=low, high=high, values=known)))
        rows = PublicJoin(child=left.rows, table=table.name, on=tuple(on), names=tuple(names), outer=outer)
        shared = {str(node.name).lower() for node in join.args.get("using") or ()}
        keep = ColumnScope(item for item in items if item[1].lower() not in shared)
        # After USING the shared name stands for one column; its public side has the publicly known values.
        same = {} if outer else {column.lower(): scalar for _, column, scalar in items if column.lower() in shared}
        mine = ColumnScope((a, n, s if s.unit else same.get(n.lower(), s)) for a, n, s in left.columns.items)
        return replace(left, rows=rows, columns=mine + keep)

    def _sides(
        self, both: ExpressionCompiler, seen: ExpressionCompiler, one: Any, other: Any, join: Any
    ) -> tuple[Scalar, str]:
        a, b = both.read(one), both.read(other)
        public = [s for s in (a, b) if s.sql.startswith("public:")]
        if len(public) != 1:
            raise self.refuse(join, "Each join condition must equate a column of one table with a column of the other.")
        mine = one if public[0] is b else other
        return seen.read(mine), public[0].sql.removeprefix("public:")

    def _equalities(self, join: Any) -> list[tuple[Any, Any]]:
        using = join.args.get("using")
        if using:
            return [(str(node.name), None) for node in using]
        found, open_ = [], [join.args["on"]]
        while open_:
            node = open_.pop(0)
            kind = type(node).__name__
            if kind == "And":
                open_ = [node.this, node.expression, *open_]
            elif kind == "Paren":
                open_ = [node.this, *open_]
            elif kind == "EQ":
                found.append((node.this, node.expression))
            else:
                raise self.refuse(
                    node, "ON supports equalities of columns joined by AND.", "Use WHERE for other conditions."
                )
        return found

    def _pair(self, left: BoundRelation, right: BoundRelation, join: Any) -> BoundRelation:
        if left.rows.by_row or right.rows.by_row:
            raise self.refuse(
                join,
                "A private table whose rows are all different people cannot be joined with itself.",
                "Joins of private tables need a unit column in both.",
            )
        both = BoundRelation(rows=UnitJoin(left=left.rows, right=right.rows), columns=left.columns + right.columns,
                        limits=_wider(left.limits, right.limits))  # fmt: skip
        by_unit, rest = False, []
        for one, other in self._equalities(join):
            if isinstance(one, str):
                pairs = (left.columns.find("", one), right.columns.find("", one))
                if len(pairs[0]) != 1 or len(pairs[1]) != 1:
                    raise self.refuse(join, f"USING needs the column `{one}` on both sides.")
                a, b = pairs[0][0], pairs[1][0]
            else:
                a, b = self.reader(both).pair(join, one, other)
            if a.unit and b.unit:
                by_unit = True
            else:
                rest.append(Scalar(sql=f"({a.sql} = {b.sql})", kind=Kind.BOOLEAN))
        self._spare(both.rows, join)
        if not by_unit:
            raise self.refuse(
                join,
                "Private tables must be joined on their privacy unit.",
                "Use `AND a.unit = b.unit`.",
            )
        rows: PlanNode = both.rows
        for condition in rest:
            rows = Filter(child=rows, condition=condition)
        return replace(both, rows=rows)

    def subquery(self, node: Any, views: Mapping[str, Any]) -> BoundRelation:
        """A SELECT or UNION ALL inside FROM or WITH."""
        kind = type(node).__name__
        if kind == "Union":
            if node.args.get("distinct", True) or any(
                value for name, value in node.args.items() if value and name not in ("this", "expression", "with_")
            ):
                raise self.refuse(node, "Only a plain UNION ALL is supported.")
            if node.args.get("with_") is not None:
                raise self.refuse(node, "WITH stands before SELECT here.")
            return self._stack(node, self.subquery(node.this, views), self.subquery(node.expression, views))
        if kind == "Subquery" and not node.alias:
            return self.subquery(node.this, views)
        if kind != "Select":
            raise self.refuse(node, "A subquery must be a SELECT.")
        for word in ("order", "limit", "having"):
            if node.args.get(word):
                raise self.refuse(
                    node.args[word], f"{word.upper()} is not supported in a subquery.", "Use it in the outer query."
                )
        relation, _ = self.select_rows(node, views)
        if node.args.get("group"):
            return self._per_unit(node, relation)
        names, items, reader = [], [], self.reader(relation)
        for item in node.expressions:
            if type(item).__name__ == "Star" or (type(item).__name__ == "Column" and item.is_star):
                if item.args.get("except_") or item.args.get("replace"):
                    raise self.refuse(item, "Only a plain * is supported.")
                table = item.table if type(item).__name__ == "Column" else ""
                chosen = [(n, s) for a, n, s in relation.columns.items if not table or a.lower() == table.lower()]
            else:
                if not item.alias_or_name:
                    raise self.refuse(item, "A computed column of a subquery requires an alias.", "Use `... AS name`.")
                chosen = [(item.alias_or_name, reader.read(item.unalias()))]
            for name, scalar in chosen:
                inner = self._name()
                names.append((inner, scalar))
                items.append(("", name, replace(scalar, sql=inner, constant=None)))
        rows = Project(child=relation.rows, items=tuple(names))
        return replace(relation, rows=rows, columns=ColumnScope(items))

    def _stack(self, node: Any, first: BoundRelation, second: BoundRelation) -> BoundRelation:
        one, two = first.columns.items, second.columns.items
        if len(one) != len(two) or any(a.family != b.family for (_, _, a), (_, _, b) in zip(one, two, strict=True)):
            raise self.refuse(node, "Both sides of UNION ALL must have the same number and kinds of columns.")
        items = []
        for (alias, name, a), (_, _, b) in zip(one, two, strict=True):
            low = None if a.low is None or b.low is None else min(a.low, b.low)
            high = None if a.high is None or b.high is None else max(a.high, b.high)
            kind = a.kind if a.kind is b.kind else Kind.NUMBER if a.number else Kind.DATETIME
            values = None if a.values is None or b.values is None else distinct_values((*a.values, *b.values), kind)
            items.append(
                (alias, name, replace(a, low=low, high=high, values=values, kind=kind, unit=a.unit and b.unit))
            )
        limits = _wider(first.limits, second.limits)
        rows = UnionAll(first=first.rows, second=second.rows)
        self._spare(rows, node)
        return BoundRelation(rows=rows, columns=ColumnScope(items), limits=limits)

    def _spare(self, rows: PlanNode, node: Any) -> None:
        """Refuse what makes too many rows out of one person's."""
        if rows.unbounded_joins > _MOST_LOOSE:
            raise self.refuse(
                node,
                f"At most {_MOST_LOOSE} private tables are joined row by row.",
                "Join subqueries that GROUP BY the unit alone: they have one row per person.",
            )
        if rows.max_row_multiplicity * 4 ** max(0, rows.unbounded_joins - 1) > _FAN:
            raise self.refuse(
                node,
                "One person's rows would be repeated too often.",
                "Use fewer parts in UNION ALL, and join fewer private tables with it.",
            )

    def _per_unit(self, node: Any, relation: BoundRelation) -> BoundRelation:
        reader = self.reader(relation)
        group = node.args["group"]
        if any(value for name, value in group.args.items() if value and name != "expressions"):
            raise self.refuse(group, "GROUP BY accepts plain columns here.")
        grouped = [reader.read(item) for item in group.expressions]
        if not any(scalar.unit for scalar in grouped):
            raise self.refuse(
                group,
                "GROUP BY in a subquery must include the privacy unit.",
                "Add the unit's column to GROUP BY.",
            )
        keys, items, seen = [], [], []
        for item in node.expressions:
            inner = self._name()
            aggregate = UNIT_AGGREGATES.get(type(item.unalias()).__name__)
            if aggregate is None:
                scalar = reader.read(item.unalias())
                if scalar.same not in {key.same for key in grouped}:
                    raise self.refuse(item, "This expression is neither an aggregate nor in GROUP BY.")
                keys.append((inner, scalar))
                seen.append(("", item.alias_or_name, replace(scalar, sql=inner)))
                continue
            if not item.alias:
                raise self.refuse(item, "A computed column of a subquery requires an alias.", "Use `... AS name`.")
            sql, scalar = aggregate(reader, item.unalias())
            items.append((inner, sql))
            seen.append(("", item.alias, replace(scalar, sql=inner)))
        selected = {scalar.same for _, scalar in keys}
        for scalar in grouped:
            if scalar.same not in selected:
                keys.append((self._name(), scalar))
        # The unit's own column has one value in a unit: it is read, not grouped by, since rows are of one unit anyway.
        items += [(inner, f"min({scalar.sql})") for inner, scalar in keys if scalar.unit]
        further = tuple(item for item in keys if not item[1].unit)
        grouped_rows = GroupByUnit(child=relation.rows, keys=further, items=tuple(items))
        ordered = tuple((self._name(), scalar) for _, _, scalar in seen)
        named = [(a, n, replace(s, sql=inner)) for (a, n, s), (inner, _) in zip(seen, ordered, strict=True)]
        return replace(relation, rows=Project(child=grouped_rows, items=ordered), columns=ColumnScope(named))


def scan_table(catalog: Catalog, table: PrivateTable) -> PlanNode:
    """All rows of a private table, as queries read them."""
    return Binder(catalog, "")._scan(table, table.name).rows


def _whole(scalar: Scalar) -> Scalar:
    """A float that is looked up among whole numbers, as the one whole number it is.

    Compared as floats, neighbouring whole numbers above 2**53 are equal, and one row would meet many.
    """
    x = scalar.sql
    return Scalar(sql=f"(CASE WHEN {x} = floor({x}) THEN TRY_CAST({x} AS BIGINT) END)", kind=Kind.INTEGER)


def _wider(a: ContributionLimits, b: ContributionLimits) -> ContributionLimits:
    first, second, third = (None if x is None or y is None else max(x, y) for x, y in zip(a, b, strict=True))
    return first, second, third
