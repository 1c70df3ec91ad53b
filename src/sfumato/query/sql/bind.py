"""Bind FROM, WHERE and subqueries to a plan of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any

from sqlglot import exp

from sfumato.dataset import Kind, PeriodDomain, RangeDomain, ValuesDomain
from sfumato.dataset.column import distinct_values
from sfumato.engines.aggregation import Largest
from sfumato.engines.expressions import STORED_TEXT, ColumnRef, Read, standing_for
from sfumato.query.plan.catalog import Catalog, PrivateTable, PublicTable
from sfumato.query.plan.relational import Filter, GroupByUnit, Project, Scan, UnionAll
from sfumato.query.plan.scalar import TYPES, Scalar
from sfumato.query.plan.unit_nodes import SemiJoin, WindowByUnit
from sfumato.query.sql.condition_domains import condition_domains, wider
from sfumato.query.sql.expressions import ColumnScope, ExpressionCompiler
from sfumato.query.sql.joins import JoinBinder
from sfumato.query.sql.refusal import refuse
from sfumato.query.sql.relation import BoundRelation, Views, check_row_repetition, wider_limits
from sfumato.query.sql.spellings import comma_join, qualified_rows
from sfumato.query.sql.unit_aggregates import UNIT_AGGREGATES, computed_groups, filtered_groups, unfiltered
from sfumato.query.sql.unit_sets import (
    intersected,
    is_set_condition,
    public_values,
    split_conditions,
    unit_test,
)
from sfumato.query.sql.unit_windows import unit_window
from sfumato.rationals import rational
from sfumato.wording import did_you_mean

_ALLOWED = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "with_"}
_LAST = {"qualify", "distinct", "offset"}
"""Clauses about noisy rows, which the outermost query may have."""
_MAX_TABLES = 64
_MAX_SUBQUERIES = 100
_WINDOW = "window "
"""Start of the internal names of window functions, which * leaves out."""


class Binder:
    """Builds relations from FROM clauses.

    Internal column names are numbered in the order of the query, so equal queries have equal plans whatever their
    aliases.
    """

    def __init__(self, catalog: Catalog, text: str) -> None:
        self.catalog = catalog
        self.text = text
        self._count = 0
        self._tables = 0
        self._subqueries = 0
        self._joins = JoinBinder(text, self._name)

    def _name(self) -> str:
        self._count += 1
        return f"c{self._count}"

    def refuse(self, node: exp.Expr | None, reason: str, fix: str = "") -> Exception:
        return refuse(node, self.text, reason, fix)

    def reader(self, relation: BoundRelation) -> ExpressionCompiler:
        return ExpressionCompiler(relation.columns, self.text, self._public_values)

    def _public_values(self, select: exp.Expr) -> list[object] | None:
        return public_values(select, self.catalog.public, self.text)

    def views(self, select: exp.Expr, views: Views) -> Views:
        """The subqueries of WITH that are in scope inside a SELECT."""
        with_ = select.args.get("with_")
        if with_ is None:
            return views
        if with_.args.get("recursive"):
            raise self.refuse(with_, "Recursive queries are not supported.")
        views = dict(views)
        for cte in with_.expressions:
            views[cte.alias.lower()] = (cte.this, dict(views))
        return views

    def select_rows(
        self, select: exp.Expr, views: Views, *, last: bool = False, distinct: bool = False
    ) -> BoundRelation:
        """The rows selected by FROM, JOIN and WHERE. ``last``: the query may have clauses about noisy rows."""
        allowed = _ALLOWED | (_LAST if last else {"distinct"} if distinct else set())
        strange = [name for name, value in select.args.items() if value and name not in allowed]
        if strange:
            word = strange[0].rstrip("_").replace("_", " ").upper()
            raise self.refuse(
                select.args[strange[0]] if hasattr(select.args[strange[0]], "walk") else select,
                f"{word} is not supported.",
            )
        views = self.views(select, views)
        from_ = select.args.get("from_")
        if from_ is None:
            raise self.refuse(select, "The query has no FROM clause.", "Use SELECT ... FROM table.")
        relation: BoundRelation | PublicTable = self._item(from_.this, views)
        alias = from_.this.alias_or_name
        where = select.args.get("where")
        conditions = [] if where is None else split_conditions(where.this)
        stated = len(conditions)
        for join in select.args.get("joins") or ():
            if not join.args.get("on") and not join.args.get("using"):
                item = self._item(join.this, views)
                left, right = _known(relation, alias), _known(item, join.this.alias_or_name, keys=True)
                made = comma_join(join, conditions, partial(_sides, left=left, right=right))
                self._joins.check(join if made is None else made)
                relation = self._joins.bind(relation, alias, item, made or join)
                continue
            self._joins.check(join)
            item = self._item(join.this, views)
            if join.side and join.args.get("on") and isinstance(item, BoundRelation):
                join, item = self._outer_conditions(relation, alias, item, join, views)
            relation = self._joins.bind(relation, alias, item, join)
        if isinstance(relation, PublicTable):
            raise self.refuse(
                from_,
                f"`{relation.name}` is a public table, which needs no private query.",
                "Read it directly, or join it with a private table.",
            )
        if where is not None and conditions:
            whole = where.this if len(conditions) == stated else exp.and_(*conditions)
            relation = self._filtered(relation, whole, views)
        return relation

    def _outer_conditions(
        self, left: BoundRelation | PublicTable, alias: str, right: BoundRelation, join: exp.Join, views: Views
    ) -> tuple[exp.Join, BoundRelation]:
        """A LEFT JOIN without the conditions of ON that read the right table alone, which filter its rows before."""
        sides = partial(_sides, left=_known(left, alias), right=_known(right, join.this.alias_or_name))
        parts = split_conditions(join.args["on"])
        own = [part for part in parts if sides(part) == {"right"}]
        kept = [part for part in parts if not any(part is one for one in own)]
        if not own or not kept:
            return join, right
        made = join.copy()
        made.set("on", exp.and_(*kept))
        return made, self._filtered(right, exp.and_(*own), views)

    def _filtered(self, relation: BoundRelation, where: exp.Expr, views: Views) -> BoundRelation:
        """The rows for which WHERE holds: a filter for conditions on the row, semi-joins for those on its unit."""
        reader = self.reader(relation)
        parts = split_conditions(where)
        tests = [part for part in parts if is_set_condition(part, reader)]
        plain = [part for part in parts if not any(part is test for test in tests)]
        if plain:
            condition = reader.condition(exp.and_(*plain, copy=False) if tests else where)
            columns = condition_domains(relation.columns, condition.node)
            relation = replace(relation, rows=Filter(child=relation.rows, condition=condition), columns=columns)
        for part in tests:
            alias = f"{_WINDOW}exists {self._name()}"
            found = unit_test(part, relation, self.subquery, views, self.text, alias=alias)
            if isinstance(found, SemiJoin):
                relation = replace(relation, rows=found)
                continue
            join, missing = found
            relation = self._joins.bind(relation, "", self._item(join.this, views), join)
            if missing is not None:
                none = self.reader(relation).condition(exp.Is(this=missing, expression=exp.Null()))
                relation = replace(relation, rows=Filter(child=relation.rows, condition=none))
        return relation

    def _item(self, node: exp.Expr, views: Views) -> BoundRelation | PublicTable:
        if isinstance(node, exp.Subquery):
            if any(value for name, value in node.args.items() if value and name not in ("this", "alias")):
                raise self.refuse(node, "A subquery in FROM accepts an alias and nothing else.")
            inner = self.subquery(node.this, views)
            return replace(inner, columns=inner.columns.under(node.alias))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
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
                if self._tables > _MAX_TABLES:
                    raise self.refuse(
                        node,
                        f"A query reads private tables at most {_MAX_TABLES} times.",
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
            first = last = None
            if isinstance(domain, ValuesDomain):
                values = table.values[column]
                if kind in (Kind.INTEGER, Kind.NUMBER) and values:
                    low, high = rational(min(values)), rational(max(values))
            elif isinstance(domain, RangeDomain) and kind in (Kind.INTEGER, Kind.NUMBER):
                low, high = rational(domain.low), rational(domain.high)
            elif isinstance(domain, PeriodDomain):
                first, last = domain.moments if kind is Kind.DATETIME else domain.days
            unit = column == table.schema.unit
            node = standing_for(name, Read((table.name, column), TYPES[kind], STORED_TEXT))
            scalar = Scalar(
                node=node, kind=kind, low=low, high=high, values=values, unit=unit, first=first, last=last,
            )  # fmt: skip
            items.append((alias, column, scalar))
        scan = Scan(table=table.name, unit_column=table.schema.unit, names=tuple(names))
        limits = (1, 1, 1) if table.schema.unit is None else (table.rows, table.groups, table.typical_groups)
        return BoundRelation(rows=scan, columns=ColumnScope(items), limits=limits)

    def subquery(self, node: exp.Expr, views: Views) -> BoundRelation:
        """A SELECT, UNION, INTERSECT or EXCEPT inside FROM, WITH or IN."""
        self._subqueries += 1
        if self._subqueries > _MAX_SUBQUERIES:
            raise self.refuse(
                node,
                f"A query has at most {_MAX_SUBQUERIES} subqueries.",
                "A subquery in WITH counts each time it is used.",
            )
        if isinstance(node, exp.Union | exp.Intersect | exp.Except):
            known = ("this", "expression", "with_", "distinct")
            if any(value for name, value in node.args.items() if value and name not in known):
                raise self.refuse(node, "UNION ALL, UNION, INTERSECT and EXCEPT are supported without further clauses.")
            if node.args.get("with_") is not None:
                raise self.refuse(node, "WITH stands before SELECT here.")
            sides = self.subquery(node.this, views), self.subquery(node.expression, views)
            if isinstance(node, exp.Union):
                stacked = self._stack(node, *sides)
                return self._distinct(node, stacked) if node.args.get("distinct", True) else stacked
            if not node.args.get("distinct", True):
                raise self.refuse(node, "INTERSECT and EXCEPT are supported without ALL.")
            return intersected(node, self._distinct(node, sides[0]), sides[1], self.text)
        if isinstance(node, exp.Subquery) and not node.alias:
            return self.subquery(node.this, views)
        if not isinstance(node, exp.Select):
            raise self.refuse(node, "A subquery must be a SELECT.")
        plain = qualified_rows(node)
        if plain is not None:
            return self.subquery(plain, views)
        if node.args.get("group"):
            node = node.transform(unfiltered)
            assert isinstance(node, exp.Select)
            if node.args.get("having"):
                return self.subquery(filtered_groups(node), views)
            computed = computed_groups(node)
            if computed is not None:
                return self.subquery(computed, views)
        for word in ("order", "limit", "having"):
            if node.args.get(word):
                raise self.refuse(
                    node.args[word], f"{word.upper()} is not supported in a subquery.", "Use it in the outer query."
                )
        if node.args.get("distinct") and (node.args["distinct"].args.get("on") or node.args.get("group")):
            raise self.refuse(node, "DISTINCT in a subquery is supported without ON and GROUP BY.")
        relation = self.select_rows(node, views, distinct=True)
        if node.args.get("group"):
            return self._per_unit(node, relation)
        if any(isinstance(item.unalias(), exp.Window) for item in node.expressions):
            relation, node = self._windowed(node, relation)
        names, items, reader = [], [], self.reader(relation)
        for item in node.expressions:
            if isinstance(item, exp.Star | exp.Column) and item.is_star:
                if item.args.get("except_") or item.args.get("replace"):
                    raise self.refuse(item, "Only a plain * is supported.")
                table = item.table if isinstance(item, exp.Column) else ""
                chosen = [(n, s) for a, n, s in relation.columns.items
                          if not n.startswith(_WINDOW) and (not table or a.lower() == table.lower())]  # fmt: skip
            else:
                if not item.alias_or_name:
                    raise self.refuse(item, "A computed column of a subquery requires an alias.", "Use `... AS name`.")
                chosen = [(item.alias_or_name, reader.read(item.unalias()))]
            for name, scalar in chosen:
                inner = self._name()
                names.append((inner, scalar))
                items.append(("", name, replace(scalar, node=standing_for(inner, scalar.node), constant=None)))
        rows = Project(child=relation.rows, items=tuple(names))
        made = replace(relation, rows=rows, columns=ColumnScope(items))
        return self._distinct(node, made) if node.args.get("distinct") else made

    def _windowed(self, node: exp.Expr, relation: BoundRelation) -> tuple[BoundRelation, exp.Expr]:
        """The relation with the window functions of a SELECT as columns, and the SELECT over these columns."""
        items, columns, changed = [], list(relation.columns.items), []
        for item in node.expressions:
            if not isinstance(item.unalias(), exp.Window):
                changed.append(item)
                continue
            if not item.alias:
                raise self.refuse(item, "A computed column of a subquery requires an alias.", "Use `... AS name`.")
            inner = self._name()
            window, scalar = unit_window(item.unalias(), self.reader(relation))
            items.append((inner, window))
            name = f"{_WINDOW}{inner}"
            columns.append(("", name, replace(scalar, node=standing_for(inner, scalar.node))))
            changed.append(exp.alias_(exp.column(exp.to_identifier(name, quoted=True)), item.alias))
        if relation.rows.by_row:
            raise self.refuse(node, "Window functions by person need a unit column.")
        made = node.copy()
        made.set("expressions", changed)
        rows = WindowByUnit(child=relation.rows, items=tuple(items))
        return replace(relation, rows=rows, columns=ColumnScope(columns, relation.columns.merged)), made

    def _distinct(self, node: exp.Expr, relation: BoundRelation) -> BoundRelation:
        """DISTINCT rows, one of whose columns is the unit: each row is computed from its own unit's rows."""
        scalars = [scalar for _, _, scalar in relation.columns.items]
        if relation.rows.by_row or not any(scalar.unit for scalar in scalars):
            raise self.refuse(
                node,
                "DISTINCT rows in a subquery must include the privacy unit.",
                "Add the unit's column, or use UNION ALL.",
            )
        keys = tuple((self._name(), scalar) for scalar in scalars if not scalar.unit)
        units = tuple((self._name(), Largest(scalar.node, True)) for scalar in scalars if scalar.unit)
        rows = GroupByUnit(child=relation.rows, keys=keys, items=units)
        names = iter(name for name, _ in keys)
        owners = iter(name for name, _ in units)
        grouped = [replace(s, node=standing_for(next(owners if s.unit else names), s.node)) for s in scalars]
        ordered = tuple((self._name(), scalar) for scalar in grouped)
        columns = ColumnScope(
            (alias, name, replace(scalar, node=standing_for(inner, scalar.node)))
            for (alias, name, _), (inner, scalar) in zip(relation.columns.items, ordered, strict=True)
        )
        return replace(relation, rows=Project(child=rows, items=ordered), columns=columns)

    def _stack(self, node: exp.Expr, first: BoundRelation, second: BoundRelation) -> BoundRelation:
        one, two = first.columns.items, second.columns.items
        if len(one) != len(two) or any(a.family != b.family for (_, _, a), (_, _, b) in zip(one, two, strict=True)):
            raise self.refuse(node, "Both sides of UNION ALL must have the same number and kinds of columns.")
        items = []
        for (alias, name, a), (_, _, b) in zip(one, two, strict=True):
            low = None if a.low is None or b.low is None else min(a.low, b.low)
            high = None if a.high is None or b.high is None else max(a.high, b.high)
            kind = a.kind if a.kind is b.kind else Kind.NUMBER if a.number else Kind.DATETIME
            values = None if a.values is None or b.values is None else distinct_values((*a.values, *b.values), kind)
            assert isinstance(a.node, ColumnRef)
            column = standing_for(a.node.name, a.node, b.node, kind=TYPES[kind])
            ends: tuple[date | None, date | None] = (None, None)
            if a.kind is b.kind:
                ends = wider(a.first, b.first, least=True), wider(a.last, b.last, least=False)
            known = replace(a, node=column, low=low, high=high, values=values, kind=kind, unit=a.unit and b.unit,
                            first=ends[0], last=ends[1])  # fmt: skip
            items.append((alias, name, known))
        limits = wider_limits(first.limits, second.limits)
        rows = UnionAll(first=first.rows, second=second.rows)
        check_row_repetition(rows, node, self.text)
        return BoundRelation(rows=rows, columns=ColumnScope(items), limits=limits)

    def _per_unit(self, node: exp.Expr, relation: BoundRelation) -> BoundRelation:
        reader = self.reader(relation)
        group = node.args["group"]
        if any(value for name, value in group.args.items() if value and name != "expressions"):
            raise self.refuse(group, "GROUP BY accepts plain columns here.")
        grouped = [reader.read(item) for item in group.expressions]
        if not any(scalar.unit for scalar in grouped):
            raise self.refuse(
                group,
                "GROUP BY in a subquery must include the privacy unit.",
                "Add the unit's column to GROUP BY. Noisy rows cannot be joined with private ones.",
            )
        keys, items, seen = [], [], []
        for item in node.expressions:
            inner = self._name()
            aggregate = UNIT_AGGREGATES.get(type(item.unalias()))
            if aggregate is None:
                scalar = reader.read(item.unalias())
                if scalar.same not in {key.same for key in grouped}:
                    raise self.refuse(item, "This expression is neither an aggregate nor in GROUP BY.")
                keys.append((inner, scalar))
                seen.append(("", item.alias_or_name, replace(scalar, node=standing_for(inner, scalar.node))))
                continue
            if not item.alias:
                raise self.refuse(item, "A computed column of a subquery requires an alias.", "Use `... AS name`.")
            scalar = aggregate(reader, item.unalias())
            scalar = replace(scalar, expected=_expected(reader, item.unalias(), relation, len(grouped)))
            items.append((inner, scalar.node))
            seen.append(("", item.alias, replace(scalar, node=standing_for(inner, scalar.node))))
        selected = {scalar.same for _, scalar in keys}
        for scalar in grouped:
            if scalar.same not in selected:
                keys.append((self._name(), scalar))
        # The unit's column has one value per unit, and rows are grouped by unit anyway: read it, do not group by it.
        items += [(inner, Largest(scalar.node, True)) for inner, scalar in keys if scalar.unit]
        further = tuple(item for item in keys if not item[1].unit)
        grouped_rows = GroupByUnit(child=relation.rows, keys=further, items=tuple(items))
        ordered = tuple((self._name(), scalar) for _, _, scalar in seen)
        named = [
            (alias, name, replace(s, node=standing_for(inner, s.node)))
            for (alias, name, s), (inner, _) in zip(seen, ordered, strict=True)
        ]
        return replace(relation, rows=Project(child=grouped_rows, items=ordered), columns=ColumnScope(named))


def _expected(
    reader: ExpressionCompiler, node: exp.Expr, relation: BoundRelation, keys: int
) -> tuple[Fraction, Fraction] | None:
    """Bounds of a person's count or sum, from the rows of one person that count by declaration."""
    rows, groups, _ = relation.limits
    if rows is None or groups is None or not isinstance(node, exp.Count | exp.Sum):
        return None
    most = rows if keys > 1 else rows * groups
    if isinstance(node, exp.Count):
        return Fraction(0), Fraction(most)
    scalar = reader.number(node.this)
    if scalar.low is None or scalar.high is None:
        return None
    return most * min(Fraction(0), scalar.low), most * max(Fraction(0), scalar.high)


def _known(relation: BoundRelation | PublicTable, alias: str, *, keys: bool = False) -> Callable[[exp.Column], bool]:
    """Whether a column is one of a table or of rows; with ``keys``, of a public table those that it is joined on."""
    if isinstance(relation, BoundRelation):
        return lambda column: bool(relation.columns.find(column.table, column.name))
    names = {name.lower() for name in (relation.key if keys else relation.frame.columns)}
    return lambda column: column.table.lower() in ("", alias.lower()) and column.name.lower() in names


def _sides(node: exp.Expr, left: Callable[[exp.Column], bool], right: Callable[[exp.Column], bool]) -> set[str]:
    """On which sides of a join the columns of an expression are; "" for those on both or on neither."""
    where = {(True, False): "left", (False, True): "right"}
    return {where.get((left(column), right(column)), "") for column in node.find_all(exp.Column)}


def scan_table(catalog: Catalog, table: PrivateTable) -> Scan:
    """All rows of a private table, as queries read them."""
    scan = Binder(catalog, "")._scan(table, table.name).rows
    assert isinstance(scan, Scan)
    return scan
