"""Parse a SELECT query into its rows, group keys, aggregates and outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from sfumato.engines.contribution_bounding import CODE_BITS
from sfumato.errors import QueryRefused
from sfumato.query.plan.catalog import Catalog
from sfumato.query.plan.expanded_size import check_expanded_size
from sfumato.query.plan.outputs import Key, Output
from sfumato.query.plan.query import ContributionLimits, GroupKey, Query
from sfumato.query.plan.row_steps import Compute, Keep
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.aggregate_calls import AggregateCompiler
from sfumato.query.sql.bind import Binder
from sfumato.query.sql.expressions import ColumnScope, ExpressionCompiler
from sfumato.query.sql.histograms import with_bins
from sfumato.query.sql.output_binder import OutputBinder
from sfumato.query.sql.possible_groups import possible_groups
from sfumato.query.sql.refusal import called, nearest, refuse
from sfumato.query.sql.relation import BoundRelation, Views
from sfumato.query.sql.released import ReleasedRows, bind_released, has_aggregate, title
from sfumato.query.sql.released_joins import check_shifted, joined_released
from sfumato.query.sql.statement import parse_statement

_MAX_GROUPS = 1 << CODE_BITS
"""A group's number must fit the low bits of its place in a unit's order."""
_KEPT_QUERIES, _KEPT_CHARACTERS = 200, 2_000


def bind_query(tree: exp.Expr, catalog: Catalog, text: str, views: Views) -> Query:
    """The query of a syntax tree, with the subqueries of WITH that are in scope."""
    try:
        return _Builder(catalog, text).query(tree, views)
    except RecursionError:
        raise QueryRefused("The query is nested too deeply.") from None


def parse_query(sql: str, catalog: Catalog) -> Query:
    """Parse a query. Unsupported SQL is refused with its position, the reason and a fix, at no cost.

    A text that was parsed lately is not parsed again: a server describes a query before it is asked.
    """
    known = catalog.parsed.get(sql)
    if known is not None:
        return known
    text, tree, target = parse_statement(sql)
    query = bind_query(tree, catalog, text, {})
    if target is not None:
        query = replace(query, target=target, confidence=target.confidence)
    if len(sql) <= _KEPT_CHARACTERS:
        if len(catalog.parsed) >= _KEPT_QUERIES:
            catalog.parsed.clear()
        catalog.parsed[sql] = query
    return query


class _Measured(OutputBinder):
    """Binds a SELECT of aggregates over private rows."""

    def __init__(self, text: str, relation: BoundRelation, reader: ExpressionCompiler) -> None:
        super().__init__(text, reader)
        self._relation = relation
        self._calls = AggregateCompiler(reader)
        self._grouped: list[Scalar] = []

    def leaf(self, node: exp.Expr) -> Output | None:
        aggregate = self._calls.compile(node)
        return aggregate if aggregate is not None or isinstance(node, exp.Literal) else self._as_key(node)

    def unknown(self, node: exp.Expr) -> Exception:
        if isinstance(node, exp.Column):
            self.reader.read(node)
            return self.refuse(
                node,
                f"`{node.name}` is neither an aggregate nor in GROUP BY.",
                "Use an aggregate, or add it to GROUP BY.",
            )
        if any(AggregateCompiler.is_aggregate(child) for child in node.walk()):
            return self.not_applicable(node)
        return self.refuse(
            node,
            f"`{called(node, self.text)}` is neither a supported aggregate nor in GROUP BY.",
            nearest(called(node, self.text)) or f"Supported: {AggregateCompiler.NAMES}.",
        )

    def _as_key(self, node: exp.Expr) -> Output | None:
        try:
            scalar = self.reader.read(node)
        except QueryRefused:
            return None
        for i, key in enumerate(self._grouped):
            if key.node == scalar.node:
                return Key(i)
        return None

    def query(self, tree: exp.Expr, catalog: Catalog) -> Query:
        relation = self._relation
        tree = with_bins(tree, self.reader)
        self.named(tree.expressions)
        keys = self._keys(tree)
        having = tree.args.get("having")
        held = None if having is None else self.condition(having.this)
        outputs = tuple((title(item), self.output(item.unalias())) for item in tree.expressions)
        last = self.last_steps(tree, outputs)
        query = Query(
            rows=relation.rows,
            keys=keys,
            outputs=outputs,
            steps=(*(() if held is None else (Keep(held),)), *last),
            aggregates=tuple(self._calls.aggregates),
            assumed=tuple(self._calls.assumed),
            limits=_limits(relation),
            possible=possible_groups(relation.rows, [(k.scalar, k.values) for k in keys], catalog.public),
        )
        if not query.aggregates:
            raise self.refuse(tree, "The query has no aggregate.", "Use COUNT(*), SUM(column), AVG(column), ...")
        check_expanded_size(query.rows, query.keys, query.aggregates)
        groups = query.groups
        if groups is not None and not 1 <= groups <= _MAX_GROUPS:
            raise self.refuse(
                tree.args["group"],
                f"There would be {groups:,} groups; at most {_MAX_GROUPS:,} are answered.",
                "Group by fewer or coarser keys.",
            )
        return query

    def _keys(self, tree: exp.Expr) -> tuple[GroupKey, ...]:
        group = tree.args.get("group")
        if group is None:
            return ()
        nodes = group.expressions
        if group.args.get("all") and not nodes:
            nodes = [item.unalias() for item in tree.expressions if not has_aggregate(item)]
        elif not nodes or any(value for name, value in group.args.items() if value and name != "expressions"):
            raise self.refuse(group, "GROUP BY accepts columns and expressions.")
        keys = []
        for node in nodes:
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise self.refuse(node, "Grouping sets are answered in the outermost query.", "Use UNION ALL there.")
            scalar = self.reader.read(self._named(node, tree))
            if scalar.unit:
                raise self.refuse(
                    node,
                    "GROUP BY cannot use the privacy unit: each group would be one person.",
                    "Use a column that many people share.",
                )
            if scalar.node in {known.node for known in self._grouped}:
                continue  # the same key twice makes the same groups
            self._grouped.append(scalar)
            keys.append(GroupKey(scalar=scalar, values=_sorted(scalar.keys())))
        self.families = [key.scalar.family for key in keys]
        return tuple(keys)

    def _named(self, node: exp.Expr, tree: exp.Expr) -> exp.Expr:
        """Replace a position or alias in GROUP BY by the SELECT item it refers to."""
        if isinstance(node, exp.Literal) and not node.is_string:
            if node.this.isdigit() and 1 <= int(node.this) <= len(tree.expressions):
                item: exp.Expr = tree.expressions[int(node.this) - 1].unalias()
                return item
            raise self.refuse(node, "SELECT has no column with this number.")
        if not isinstance(node, exp.Column) or node.table:
            return node
        item = self.aliases.get(node.name.lower(), node)
        # COALESCE(k, 'none') AS k ... GROUP BY k: the rows without a value are a group, which it names.
        named = isinstance(item, exp.Coalesce) and isinstance(item.this, exp.Column) and item.this.name == node.name
        return item if named or not self._relation.columns.find("", node.name) else node


class _Builder:
    """Builds a query from nested SELECTs: the innermost reads private rows, the others its noisy rows."""

    def __init__(self, catalog: Catalog, text: str) -> None:
        self._catalog = catalog
        self._text = text

    def query(self, tree: exp.Expr, views: Views) -> Query:
        if not isinstance(tree, exp.Select):
            raise refuse(
                tree, self._text, f"Only SELECT is answered, not {tree.key.upper()}.", "Use SELECT ... FROM table."
            )
        inner = self._aggregates_in_from(tree, views)
        if inner is None:
            return self._measured(tree, views)
        node, outer, alias = inner
        query = self.query(node, outer)
        families = [key.scalar.family for key in query.keys]
        rows = ReleasedRows(query.outputs, query.steps, families, sum(isinstance(s, Compute) for s in query.steps))
        reader = ExpressionCompiler(ColumnScope(), self._text)
        views = Binder(self._catalog, self._text).views(tree, views)
        tree, rows = joined_released(tree, rows, views, reader)
        check_shifted(rows.steps, query.keys, reader)
        made = bind_released(tree, rows, alias, reader)
        return replace(query, outputs=made.outputs, steps=made.steps)

    def _measured(self, tree: exp.Expr, views: Views) -> Query:
        for item in tree.expressions:
            if isinstance(item, exp.Star | exp.Column) and item.is_star:
                raise refuse(
                    item,
                    self._text,
                    "SELECT * returns rows, and each row is about one person.",
                    "Use aggregates: SELECT COUNT(*), AVG(column) FROM ... GROUP BY ...",
                )
        sources = Binder(self._catalog, self._text)
        relation = sources.select_rows(tree, views, last=True)
        return _Measured(self._text, relation, sources.reader(relation)).query(tree, self._catalog)

    def _aggregates_in_from(self, tree: exp.Expr, views: Views) -> tuple[exp.Expr, Views, str] | None:
        """The query of aggregates in FROM with its views and its alias; None where FROM has private rows."""
        from_ = tree.args.get("from_")
        if from_ is None:
            return None
        views = Binder(self._catalog, self._text).views(tree, views)
        item = from_.this
        if isinstance(item, exp.Subquery):
            node, outer = item.this, views
        elif isinstance(item, exp.Table) and item.name.lower() in views:
            node, outer = views[item.name.lower()]
        else:
            return None
        while isinstance(node, exp.Subquery) and not node.alias:
            node = node.this
        if not isinstance(node, exp.Select) or not self._is_aggregate(node, outer):
            return None
        extra = [name for name, value in item.args.items() if value and name not in ("this", "alias")]
        if extra:
            raise refuse(item, self._text, "A subquery in FROM accepts an alias and nothing else.")
        return node, outer, item.alias_or_name

    def _is_aggregate(self, node: exp.Expr, views: Views) -> bool:
        """Whether the rows of a subquery are noisy: it has aggregates and does not group by the privacy unit."""
        if self._aggregates_in_from(node, views) is not None:
            return True
        group = node.args.get("group")
        if group is None:
            return any(has_aggregate(item) for item in node.expressions)
        binder = Binder(self._catalog, self._text)
        relation = binder.select_rows(node, views, last=True)
        return not any(
            scalar.unit
            for item in group.expressions
            if isinstance(item, exp.Column)
            for scalar in relation.columns.find(item.table, item.name)
        )


def _sorted(values: tuple[object, ...] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(sorted(values))


def _limits(relation: BoundRelation) -> ContributionLimits:
    return (relation.rows.copies, 1, 1) if relation.rows.by_row else relation.limits
