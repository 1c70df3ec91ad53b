"""A query: which rows, which groups, what is measured of each, and what is shown of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato.errors import QueryRefused
from sfumato.query.catalog import Catalog
from sfumato.query.plan.aggregates import (
    Aggregate,
    Count,
    DistinctCount,
    bin_counts_aggregate,
    bounds_problem,
    moments_aggregate,
    present,
    sum_aggregate,
    value_counts_aggregate,
)
from sfumato.query.plan.relational import PlanNode
from sfumato.query.plan.scalar import Scalar
from sfumato.query.results.postprocess import OutputExpr, family
from sfumato.query.sql.allowed_forms import check_forms
from sfumato.query.sql.bind import Binder, BoundRelation, ContributionLimits
from sfumato.query.sql.postprocess_rules import POST_RULES
from sfumato.query.sql.refusal import refuse

__all__ = ["ErrorTarget", "GroupKey", "Query", "parse_query", "parse_statement"]

_LONGEST = 20_000
_MOST_GROUPS = 100_000
_MOST_PARTS = 4_000
_MOST_CANDIDATES = 1_000
_TAIL = re.compile(
    r"\s+ERROR\s*(?:±|\+-|\+/-)?\s*(?P<size>\d{1,15}(?:\.\d{1,15})?)\s*(?P<unit>%?)"
    r"(?:\s+CONFIDENCE\s+(?P<level>\d{1,3}(?:\.\d{1,6})?)\s*%)?\s*;?\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class GroupKey:
    """One GROUP BY expression; ``values`` are its public values, None where the keys are private."""

    scalar: Scalar
    values: tuple[Any, ...] | None


@dataclass(frozen=True, kw_only=True)
class ErrorTarget:
    """The error an analyst can live with, written behind the query: ``ERROR 50 CONFIDENCE 95%``."""

    size: Fraction
    relative: bool
    confidence: Fraction


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query that was understood. Everything in it follows from the query and the public catalog."""

    rows: PlanNode
    keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[tuple[str, OutputExpr], ...]
    having: OutputExpr | None
    order: tuple[tuple[OutputExpr, bool], ...]
    limit: int | None
    limits: ContributionLimits
    """(rows, groups, typical groups) of one unit as declared; where each row is a unit, copies of a row and 1."""
    target: ErrorTarget | None = None

    @property
    def public_keys(self) -> bool:
        return all(key.values is not None for key in self.keys)

    @property
    def groups(self) -> int | None:
        """How many groups the answer has, where that is public."""
        count = 1
        for key in self.keys:
            if key.values is None:
                return None
            count *= len(key.values)
        return count

    def fingerprint(self) -> str:
        """The same for queries that measure the same of the same rows, however they are phrased or shown."""
        parts = [self.rows.sql(), *(key.scalar.sql for key in self.keys), repr(self.aggregates), repr(self.limits)]
        parts += [repr(key.values) for key in self.keys]
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def parse_query(sql: str, catalog: Catalog) -> Query:
    """Read a query; what is outside the language is refused with place, reason and suggestion, at no cost."""
    sql, tree, target = parse_statement(sql)
    try:
        return _Builder(catalog, sql).query(tree, target)
    except RecursionError:
        raise QueryRefused("The query is nested too deeply.") from None


def parse_statement(sql: str) -> tuple[str, Any, ErrorTarget | None]:
    """The query without its ERROR clause, its syntax tree, and that clause."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    if len(sql) > _LONGEST:
        raise QueryRefused(f"A query has at most {_LONGEST} characters.")
    sql, target = _target(sql)
    try:
        trees = sqlglot.parse(sql, dialect="duckdb")
    except SqlglotError as failure:
        found = (getattr(failure, "errors", None) or [{}])[0]
        raise QueryRefused(
            "The SQL cannot be parsed" + (f", near `{found['highlight']}`." if found.get("highlight") else "."),
            line=found.get("line"), column=found.get("col"),
        ) from None  # fmt: skip
    except RecursionError:
        raise QueryRefused("The query is nested too deeply.") from None
    except Exception:
        raise QueryRefused("The SQL cannot be parsed.") from None
    statements = [tree for tree in trees if tree is not None]
    if len(statements) != 1:
        raise QueryRefused("A query is exactly one SELECT statement.")
    check_forms(statements[0], sql)
    return sql, statements[0], target


def _target(sql: str) -> tuple[str, ErrorTarget | None]:
    found = _TAIL.search(sql)
    if found is None:
        return sql, None
    relative, size = found["unit"] == "%", Fraction(found["size"])
    level = Fraction(found["level"] or "95") / 100
    if size <= 0 or not 0 < level < 1:
        raise QueryRefused("ERROR must be above 0 and CONFIDENCE between 0% and 100%.")
    return sql[: found.start()], ErrorTarget(size=size / 100 if relative else size, relative=relative, confidence=level)


@dataclass
class _Builder:
    catalog: Catalog
    text: str
    aggregates: list[Aggregate] = field(default_factory=list)
    grouped: list[Scalar] = field(default_factory=list)
    aliases: dict[str, Any] = field(default_factory=dict)
    parts: int = 0

    def refuse(self, node: Any, reason: str, fix: str = "") -> Exception:
        return refuse(node, self.text, reason, fix)

    def query(self, tree: Any, target: ErrorTarget | None) -> Query:
        if type(tree).__name__ != "Select":
            raise self.refuse(
                tree, f"Only SELECT is answered, not {tree.key.upper()}.", "UNION ALL can stand in a subquery in FROM."
            )
        sources = Binder(self.catalog, self.text)
        for item in tree.expressions:
            if type(item).__name__ == "Star" or (getattr(item, "is_star", False) and type(item).__name__ == "Column"):
                raise self.refuse(
                    item,
                    "SELECT * returns rows, and each row is about one person.",
                    "Use aggregates: SELECT COUNT(*), AVG(column) FROM ... GROUP BY ...",
                )
        relation, _ = sources.select_rows(tree, {})
        self.relation, self.reader = relation, sources.reader(relation)
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
            aggregates=tuple(self.aggregates),
            limits=_limits(relation),
            target=target,
        )
        if not query.aggregates:
            raise self.refuse(tree, "The query has no aggregate.", "Use COUNT(*), SUM(column), AVG(column), ...")
        groups = query.groups
        if groups is not None and not 1 <= groups <= _MOST_GROUPS:
            raise self.refuse(
                tree.args["group"],
                f"There would be {groups} groups; at most {_MOST_GROUPS} are answered.",
                "Group by fewer or coarser keys.",
            )
        return query

    def _title(self, item: Any) -> str:
        if item.alias:
            return str(item.alias)
        return str(item.name) if type(item).__name__ == "Column" else str(item.sql(dialect="duckdb"))[:80]

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
            if scalar.sql in {known.sql for known in self.grouped}:
                continue  # the same key twice makes the same groups
            self.grouped.append(scalar)
            keys.append(GroupKey(scalar=scalar, values=_sorted(scalar.keys())))
        return tuple(keys)

    def _named(self, node: Any, tree: Any) -> Any:
        """GROUP BY 2 and GROUP BY alias stand for the item of SELECT."""
        kind = type(node).__name__
        if kind == "Literal" and not node.is_string:
            if node.this.isdigit() and 1 <= int(node.this) <= len(tree.expressions):
                return tree.expressions[int(node.this) - 1].unalias()
            raise self.refuse(node, "SELECT has no column with this number.")
        if kind == "Column" and not node.table and not self.relation.columns.find("", node.name):
            return self.aliases.get(node.name.lower(), node)
        return node

    def _limit(self, node: Any) -> int:
        inner = node.expression
        if type(inner).__name__ != "Literal" or inner.is_string or not inner.this.isdigit() or node.args.get("offset"):
            raise self.refuse(node, "LIMIT must be a whole number constant.")
        return int(inner.this)

    def _ordered(self, node: Any, outputs: tuple[tuple[str, OutputExpr], ...]) -> tuple[OutputExpr, bool]:
        inner = node.this
        if type(inner).__name__ == "Literal" and not inner.is_string:
            if inner.this.isdigit() and 1 <= int(inner.this) <= len(outputs):
                return outputs[int(inner.this) - 1][1], bool(node.args.get("desc"))
            raise self.refuse(node, "SELECT has no column with this number.")
        return self.output(inner), bool(node.args.get("desc"))

    def output(self, node: Any) -> OutputExpr:
        kind = type(node).__name__
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise self.refuse(
                node, "The output expressions are too large.", "An alias counts as the expression it stands for."
            )
        if kind == "Paren":
            return self.output(node.this)
        if kind == "Column" and not node.table and node.name.lower() in self.aliases:
            inner = self.aliases[node.name.lower()]
            if inner is not node and not (type(inner).__name__ == "Column" and inner.name.lower() == node.name.lower()):
                return self.output(inner)
        aggregate = _AGGREGATES.get(kind)
        if aggregate is not None or kind in ("Filter", "WithinGroup"):
            return self._aggregate(node)
        if kind in ("Literal", "Boolean"):
            constant = self.reader.read(node).constant
            if isinstance(constant, Fraction):
                constant = int(constant) if constant.denominator == 1 and abs(constant) < 1 << 53 else float(constant)
            return OutputExpr(op="constant", value=constant)
        found = self._as_key(node)
        if found is not None:
            return found
        rule = POST_RULES.get(kind)
        if rule is None:
            if kind == "Column":
                self.reader.read(node)
                raise self.refuse(
                    node,
                    f"`{node.name}` is neither an aggregate nor in GROUP BY.",
                    "Use an aggregate, or add it to GROUP BY.",
                )
            if any(type(child).__name__ in _AGGREGATES for child in node.walk()):
                raise self.refuse(
                    node,
                    f"{kind.upper()} cannot be applied to aggregates.",
                    "Supported: + - * /, comparisons, AND, OR, NOT, ABS, ROUND, COALESCE, CASE.",
                )
            raise self.refuse(node, "This expression is neither an aggregate nor in GROUP BY.")
        made: OutputExpr = rule(self, node)
        try:
            family(made, [key.family for key in self.grouped])
        except TypeError as clash:
            raise self.refuse(node, f"Values of different kinds are combined here: {clash}.") from None
        return made

    def _condition(self, node: Any) -> OutputExpr:
        made = self.output(node)
        if family(made, [key.family for key in self.grouped]) not in ("boolean", ""):
            raise self.refuse(node, "A condition is required here.")
        return made

    def _as_key(self, node: Any) -> OutputExpr | None:
        try:
            scalar = self.reader.read(node)
        except QueryRefused:
            return None
        for i, key in enumerate(self.grouped):
            if key.sql == scalar.sql:
                return OutputExpr(op="key", value=i)
        return None

    def _add_aggregate(self, aggregate: Aggregate) -> int:
        if aggregate not in self.aggregates:
            if len(self.aggregates) >= 20:
                raise QueryRefused("A query has at most 20 aggregates.", fix="Use two queries.")
            self.aggregates.append(aggregate)
        return self.aggregates.index(aggregate)

    def _aggregate(self, node: Any) -> OutputExpr:
        condition = "TRUE"
        if type(node).__name__ == "Filter":
            condition = self.reader.condition(node.expression.this).sql
            node = node.this
        kind = type(node).__name__
        if kind == "WithinGroup":
            inner = node.this
            ordered = node.expression.expressions
            if type(inner).__name__ not in ("PercentileCont", "PercentileDisc") or len(ordered) != 1:
                raise self.refuse(node, "WITHIN GROUP is supported for PERCENTILE_CONT(rank) ... (ORDER BY column).")
            if ordered[0].args.get("desc"):
                raise self.refuse(node, "WITHIN GROUP supports ascending order only.", "Use 1 - rank instead.")
            return self._quantile(node, ordered[0].this, self._rank(inner.this), condition)
        if kind not in _AGGREGATES:
            raise self.refuse(node, "FILTER is supported for aggregates only.")
        made: OutputExpr = _AGGREGATES[kind](self, node, condition)
        return made

    def _rank(self, node: Any) -> Fraction:
        constant = self.reader.read(node).constant
        if not isinstance(constant, Fraction) or not 0 <= constant <= 1 or constant.denominator > 10**6:
            raise self.refuse(node, "The rank must be a constant from 0 to 1, such as 0.9.")
        return constant

    def _bounded(self, node: Any) -> Scalar:
        scalar = self.reader.number(node)
        reason = bounds_problem(scalar)
        if reason:
            raise self.refuse(node, reason, "Use CLIP(x, low, high), or declare a domain for the column.")
        return scalar

    def _quantile(self, node: Any, inner: Any, rank: Fraction, condition: str) -> OutputExpr:
        return OutputExpr(
            op="quantile", value=self._add_aggregate(bin_counts_aggregate(self._bounded(inner), condition, rank))
        )

    def sum(self, node: Any, condition: str) -> OutputExpr:
        measured = sum_aggregate(self._bounded(_one(self, node)), condition)
        return OutputExpr(op="sum", value=self._add_aggregate(measured))

    def mode(self, node: Any, condition: str) -> OutputExpr:
        scalar = self.reader.read(_one(self, node))
        candidates = _sorted(scalar.keys())
        if not candidates:
            raise self.refuse(
                node,
                "MODE needs a column whose values are publicly known.",
                "Declare `domain: {values: [...]}` for the column, or use CASE WHEN ... END.",
            )
        if len(candidates) > _MOST_CANDIDATES or len(scalar.sql) * len(candidates) > 100_000:
            raise self.refuse(
                node,
                f"MODE chooses among at most {_MOST_CANDIDATES:,} values of a short expression.",
                "Use fewer or coarser values.",
            )
        aggregate = value_counts_aggregate(scalar, condition, candidates)
        return OutputExpr(op="mode", value=self._add_aggregate(aggregate), kind=scalar.family)

    def count(self, node: Any, condition: str) -> OutputExpr:
        inner = node.this
        if type(inner).__name__ == "Star" or inner is None:
            return OutputExpr(op="count", value=self._add_aggregate(Count(condition=condition)))
        if type(inner).__name__ == "Distinct":
            if len(inner.expressions) != 1:
                raise self.refuse(node, "COUNT(DISTINCT ...) accepts one column.")
            scalar = self.reader.read(inner.expressions[0])
            if scalar.unit:
                return OutputExpr(op="count", value=self._add_aggregate(Count(condition=condition, once=True)))
            filled = f"({condition} AND {present(scalar)})"
            return OutputExpr(
                op="distinct", value=self._add_aggregate(DistinctCount(value=scalar.sql, condition=filled))
            )
        if node.args.get("expressions"):
            raise self.refuse(node, "COUNT accepts one column.")
        scalar = self.reader.read(inner)
        filled = condition if scalar.unit else f"({condition} AND {present(scalar)})"
        return OutputExpr(op="count", value=self._add_aggregate(Count(condition=filled)))

    def mean(self, node: Any, condition: str) -> OutputExpr:
        scalar = self._bounded(_one(self, node))
        ends = (float(scalar.low or 0), float(scalar.high or 0))
        return OutputExpr(op="mean", value=(self._add_aggregate(moments_aggregate(scalar, condition, 1)), ends))

    def spread(self, node: Any, condition: str, *, root: bool, sample: bool) -> OutputExpr:
        scalar = self._bounded(_one(self, node))
        span = (float(scalar.high or 0) - float(scalar.low or 0)) ** 2 / 4
        index = self._add_aggregate(moments_aggregate(scalar, condition, 2))
        return OutputExpr(op="deviation" if root else "variance", value=(index, (span, sample)))


def _one(builder: _Builder, node: Any) -> Any:
    if type(node.this).__name__ == "Distinct":
        raise builder.refuse(node, "DISTINCT is supported for COUNT only.")
    return node.this


def _sorted(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(sorted(values))


def _limits(relation: BoundRelation) -> ContributionLimits:
    return (relation.rows.copies, 1, 1) if relation.rows.by_row else relation.limits


def _extreme(rank: int) -> Any:
    return lambda b, n, c: b._quantile(n, _one(b, n), Fraction(rank), c)


_AGGREGATES: dict[str, Any] = {
    "Count": _Builder.count,
    "Sum": _Builder.sum,
    "Avg": _Builder.mean,
    "Variance": lambda b, n, c: b.spread(n, c, root=False, sample=True),
    "VariancePop": lambda b, n, c: b.spread(n, c, root=False, sample=False),
    "Stddev": lambda b, n, c: b.spread(n, c, root=True, sample=True),
    "StddevSamp": lambda b, n, c: b.spread(n, c, root=True, sample=True),
    "StddevPop": lambda b, n, c: b.spread(n, c, root=True, sample=False),
    "Mode": _Builder.mode,
    "Min": _extreme(0),
    "Max": _extreme(1),
    "Median": lambda b, n, c: b._quantile(n, _one(b, n), Fraction(1, 2), c),
    "PercentileCont": lambda b, n, c: b._quantile(n, _one(b, n), b._rank(n.expression), c),
    "PercentileDisc": lambda b, n, c: b._quantile(n, _one(b, n), b._rank(n.expression), c),
    "Quantile": lambda b, n, c: b._quantile(n, _one(b, n), b._rank(n.args["quantile"]), c),
}
