"""Parse a SELECT query into its rows, group keys, aggregates and outputs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.query.catalog import Catalog
from sfumato.query.plan.aggregates import Aggregate
from sfumato.query.plan.outputs import Key, Output, Value
from sfumato.query.plan.relational import PlanNode
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.aggregate_calls import AggregateCompiler
from sfumato.query.sql.bind import Binder
from sfumato.query.sql.possible_groups import possible_groups
from sfumato.query.sql.postprocess_rules import POST_RULES
from sfumato.query.sql.refusal import called, refuse
from sfumato.query.sql.relation import BoundRelation, ContributionLimits
from sfumato.query.sql.statement import ErrorTarget, parse_statement

__all__ = ["GroupKey", "Query", "parse_query"]

_MAX_GROUPS = 100_000
_MAX_OUTPUT_NODES = 4_000


@dataclass(frozen=True, kw_only=True)
class GroupKey:
    """One GROUP BY expression; ``values`` are its public values, None where the keys are private."""

    scalar: Scalar
    values: tuple[Any, ...] | None


@dataclass(frozen=True, kw_only=True)
class Query:
    """A parsed query. It depends only on the text of the query and on the public catalog, never on private data."""

    rows: PlanNode
    keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[tuple[str, Output], ...]
    having: Output | None
    order: tuple[tuple[Output, bool], ...]
    limit: int | None
    limits: ContributionLimits
    """(rows, groups, typical groups) of one unit as declared; where each row is a unit, copies of a row and 1."""
    target: ErrorTarget | None = None
    possible: tuple[int, ...] | None = None
    """Numbers of the groups that can have rows, among all combinations of public keys; None: all."""

    @property
    def public_keys(self) -> bool:
        return all(key.values is not None for key in self.keys)

    @property
    def groups(self) -> int | None:
        """Number of groups in the answer; None where the keys are private."""
        return self.combinations if self.possible is None else len(self.possible)

    @property
    def combinations(self) -> int | None:
        """Number of combinations of the keys' values, also of those that cannot occur; None where keys are private."""
        count = 1
        for key in self.keys:
            if key.values is None:
                return None
            count *= len(key.values)
        return count

    def fingerprint(self) -> str:
        """Hash of what is measured. Queries with the same rows, keys and aggregates have the same fingerprint."""
        measured = repr((self.rows, self.keys, self.aggregates, self.limits, self.possible))
        return hashlib.sha256(measured.encode("utf-8", "backslashreplace")).hexdigest()


def parse_query(sql: str, catalog: Catalog) -> Query:
    """Parse a query. Unsupported SQL is refused with its position, the reason and a fix, at no cost."""
    sql, tree, target = parse_statement(sql)
    try:
        return _Builder(catalog, sql).query(tree, target)
    except RecursionError:
        raise QueryRefused("The query is nested too deeply.") from None


@dataclass
class _Builder:
    catalog: Catalog
    text: str
    grouped: list[Scalar] = field(default_factory=list)
    aliases: dict[str, Any] = field(default_factory=dict)
    nodes: int = 0

    def refuse(self, node: Any, reason: str, fix: str = "") -> Exception:
        return refuse(node, self.text, reason, fix)

    def query(self, tree: Any, target: ErrorTarget | None) -> Query:
        if not isinstance(tree, exp.Select):
            raise self.refuse(
                tree, f"Only SELECT is answered, not {tree.key.upper()}.", "UNION ALL can stand in a subquery in FROM."
            )
        sources = Binder(self.catalog, self.text)
        for item in tree.expressions:
            if isinstance(item, exp.Star | exp.Column) and item.is_star:
                raise self.refuse(
                    item,
                    "SELECT * returns rows, and each row is about one person.",
                    "Use aggregates: SELECT COUNT(*), AVG(column) FROM ... GROUP BY ...",
                )
        relation, _ = sources.select_rows(tree, {})
        self.relation, self.reader = relation, sources.reader(relation)
        self.calls = AggregateCompiler(self.reader)
        for item in tree.expressions:
            if item.alias:
                self.aliases[item.alias.lower()] = item.unalias()
        keys = self._keys(tree)
        outputs = tuple((self._title(item), self.output(item.unalias())) for item in tree.expressions)
        having = tree.args.get("having")
        order, limit = tree.args.get("order"), tree.args.get("limit")
        query = Query(
            rows=relation.rows,
            keys=keys,
            outputs=outputs,
            having=self._condition(having.this) if having is not None else None,
            order=tuple(self._ordered(item, outputs) for item in order.expressions) if order is not None else (),
            limit=self._limit(limit) if limit is not None else None,
            aggregates=tuple(self.calls.aggregates),
            limits=_limits(relation),
            target=target,
            possible=possible_groups(relation.rows, [(k.scalar, k.values) for k in keys], self.catalog.public),
        )
        if not query.aggregates:
            raise self.refuse(tree, "The query has no aggregate.", "Use COUNT(*), SUM(column), AVG(column), ...")
        groups = query.groups
        if groups is not None and not 1 <= groups <= _MAX_GROUPS:
            raise self.refuse(
                tree.args["group"],
                f"There would be {groups} groups; at most {_MAX_GROUPS} are answered.",
                "Group by fewer or coarser keys.",
            )
        return query

    def _title(self, item: Any) -> str:
        if item.alias:
            return str(item.alias)
        return str(item.name) if isinstance(item, exp.Column) else str(item.sql(dialect="duckdb"))[:80]

    def _keys(self, tree: Any) -> tuple[GroupKey, ...]:
        group = tree.args.get("group")
        if group is None:
            return ()
        if any(value for name, value in group.args.items() if value and name != "expressions") or not group.expressions:
            raise self.refuse(
                group, "GROUP BY accepts columns and expressions.", "ROLLUP, CUBE and ALL are not supported."
            )
        keys = []
        for node in group.expressions:
            scalar = self.reader.read(self._named(node, tree))
            if scalar.unit:
                raise self.refuse(
                    node,
                    "GROUP BY cannot use the privacy unit: each group would be one person.",
                    "Use a column that many people share.",
                )
            if scalar.node in {known.node for known in self.grouped}:
                continue  # the same key twice makes the same groups
            self.grouped.append(scalar)
            keys.append(GroupKey(scalar=scalar, values=_sorted(scalar.keys())))
        return tuple(keys)

    def _named(self, node: Any, tree: Any) -> Any:
        """Replace a position or alias in GROUP BY by the SELECT item it refers to."""
        if isinstance(node, exp.Literal) and not node.is_string:
            if node.this.isdigit() and 1 <= int(node.this) <= len(tree.expressions):
                return tree.expressions[int(node.this) - 1].unalias()
            raise self.refuse(node, "SELECT has no column with this number.")
        if isinstance(node, exp.Column) and not node.table and not self.relation.columns.find("", node.name):
            return self.aliases.get(node.name.lower(), node)
        return node

    def _limit(self, node: Any) -> int:
        inner = node.expression
        if not isinstance(inner, exp.Literal) or inner.is_string or not inner.this.isdigit() or node.args.get("offset"):
            raise self.refuse(node, "LIMIT must be a whole number constant.")
        return int(inner.this)

    def _ordered(self, node: Any, outputs: tuple[tuple[str, Output], ...]) -> tuple[Output, bool]:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            if inner.this.isdigit() and 1 <= int(inner.this) <= len(outputs):
                return outputs[int(inner.this) - 1][1], bool(node.args.get("desc"))
            raise self.refuse(node, "SELECT has no column with this number.")
        return self.output(inner), bool(node.args.get("desc"))

    def output(self, node: Any) -> Output:
        self.nodes += 1
        if self.nodes > _MAX_OUTPUT_NODES:
            raise self.refuse(
                node, "The output expressions are too large.", "An alias counts as the expression it stands for."
            )
        if isinstance(node, exp.Paren):
            return self.output(node.this)
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self.aliases:
            inner = self.aliases[node.name.lower()]
            if inner is not node and not (isinstance(inner, exp.Column) and inner.name.lower() == node.name.lower()):
                return self.output(inner)
        aggregate = self.calls.compile(node)
        if aggregate is not None:
            return aggregate
        if isinstance(node, exp.Literal | exp.Boolean):
            constant = self.reader.read(node).constant
            if isinstance(constant, Fraction):
                constant = int(constant) if constant.denominator == 1 and abs(constant) < 1 << 53 else float(constant)
            return Value(constant)
        key = self._as_key(node)
        if key is not None:
            return key
        rule = POST_RULES.get(type(node))
        if rule is None:
            if isinstance(node, exp.Column):
                self.reader.read(node)
                raise self.refuse(
                    node,
                    f"`{node.name}` is neither an aggregate nor in GROUP BY.",
                    "Use an aggregate, or add it to GROUP BY.",
                )
            if any(AggregateCompiler.is_aggregate(child) for child in node.walk()):
                raise self.refuse(
                    node,
                    f"`{called(node, self.text)}` cannot be applied to aggregates.",
                    "Supported: + - * /, comparisons, AND, OR, NOT, IN, ABS, ROUND, FLOOR, CEIL, SQRT, EXP, LN, LOG, "
                    "COALESCE, NULLIF, CASE.",
                )
            raise self.refuse(node, f"`{called(node, self.text)}` is neither a supported aggregate nor in GROUP BY.")
        output = rule(self, node)
        try:
            output.family([key.family for key in self.grouped])
        except TypeError as clash:
            raise self.refuse(node, f"Values of different kinds are combined here: {clash}.") from None
        return output

    def _condition(self, node: Any) -> Output:
        condition = self.output(node)
        if condition.family([key.family for key in self.grouped]) not in ("boolean", ""):
            raise self.refuse(node, "A condition is required here.")
        return condition

    def _as_key(self, node: Any) -> Output | None:
        try:
            scalar = self.reader.read(node)
        except QueryRefused:
            return None
        for i, key in enumerate(self.grouped):
            if key.node == scalar.node:
                return Key(i)
        return None


def _sorted(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(sorted(values))


def _limits(relation: BoundRelation) -> ContributionLimits:
    return (relation.rows.copies, 1, 1) if relation.rows.by_row else relation.limits
