"""What a query asks of a policy that answers about sets of people: one number, or one column, about a table's rows.

FROM, JOIN and WHERE are read by the same front as private answers, with the same refusals. What follows is narrower:
one aggregate and no groups, because such policies answer one query about one set of people at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from sfumato.engines.expressions import FALSE, TRUE, ColumnRef, Expression, all_of, constant, when
from sfumato.engines.statements import Query, Select, Subquery
from sfumato.errors import QueryRefused
from sfumato.query.plan.aggregates import present
from sfumato.query.plan.catalog import Catalog
from sfumato.query.plan.relational import Filter, PlanNode, PublicJoin, Scan, walk
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.bind import Binder
from sfumato.query.sql.refusal import called, refuse
from sfumato.query.sql.statement import parse_statement

ROW = "sfumato row"
"""The column that numbers the people. It is in no catalog, so no query can name it."""
NUMBERED = "sfumato_row"
_KINDS: dict[type[exp.Expression], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Max: "max", exp.Min: "min"
}  # fmt: skip
_STATISTICS: dict[type[exp.Expression], str] = {
    exp.Variance: "var_samp", exp.VariancePop: "var_pop", exp.Stddev: "stddev_samp", exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop", exp.RegrSlope: "regr_slope", exp.RegrIntercept: "regr_intercept", exp.Corr: "corr",
}  # fmt: skip
_MORE = {"group": "GROUP BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT", "with_": "WITH"}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One part of a WHERE; all parts must hold."""

    scalar: Scalar
    columns: frozenset[str]
    """Names in it, in lower case."""
    node: object
    """Where it stands in the query."""


@dataclass(frozen=True, kw_only=True)
class PolicyQuery:
    """A query that was understood. Everything in it follows from the query and the public catalog."""

    text: str
    title: str
    kind: str
    """"count", "sum", "avg", "max", "min", "values" for a column without an aggregate, or the name of a statistic:
    "var_samp", "var_pop", "stddev_samp", "stddev_pop", "regr_slope", "regr_intercept", "corr"."""
    column: str | None
    """The column asked for, where it is a bare one of the private table."""
    value: Scalar | None
    """What is asked for; None for COUNT(*)."""
    conditions: tuple[Condition, ...]
    joined: frozenset[str]
    """Columns that joins go by, in lower case."""
    attached: frozenset[str]
    """Columns of the public tables that are joined, in lower case."""
    base: PlanNode
    node: object
    """Where the aggregate stands in the query."""
    second: str | None = None
    """The second column of a statistic of two, where it is a bare one of the private table."""

    def refuse(self, node: Any, reason: str, fix: str = "") -> QueryRefused:
        """A refusal with the place of a part of the query."""
        return refuse(node, self.text, reason, fix)

    def about(self, sensitive: Iterable[str]) -> tuple[Condition, ...]:
        """The conditions on sensitive columns.

        Refused are conditions that combine such a column with another one, because the people they select cannot be
        told from the public columns, joins that go by one, conditions on one with anything but COUNT(*), and joined
        tables that have one of the same name.
        """
        named = {name.lower() for name in sensitive}
        if self.joined & named:
            raise self.refuse(self.node, "Joins on a sensitive column are not answered by this policy.")
        if self.attached & named:
            raise self.refuse(
                self.node, "A joined table has a column with the name of a sensitive column.", "Leave it out."
            )
        found = tuple(part for part in self.conditions if part.columns & named)
        for part in found:
            if len(part.columns) > 1:
                raise self.refuse(
                    part.node,
                    "A condition cannot combine a sensitive column with another column.",
                    "Use conditions about one column each, joined by AND.",
                )
        if found and (self.kind != "count" or self.value is not None):
            raise self.refuse(
                found[0].node,
                "People must be selected by columns that are not sensitive.",
                "Use conditions on a sensitive column with COUNT(*) only.",
            )
        return found

    def people(self, conditions: Iterable[Condition]) -> Query:
        """A statement for the numbers of the people for whom conditions hold."""
        return people(self.base, (c.scalar.node for c in conditions), ())

    def holders(self, conditions: Iterable[Condition]) -> Query:
        """The same among everybody in the table, whatever is joined: for conditions on the table's own columns."""
        [table] = (node for node in walk(self.base) if isinstance(node, Scan))
        return people(table, (c.scalar.node for c in conditions), ())

    def valued(self) -> Query:
        """A statement for the people asked about: number, value (0 where there is none), and whether there is one."""
        met = [condition.scalar.node for condition in self.conditions]
        if self.value is None:
            return people(self.base, met, (("value", constant(1)), ("there", TRUE)))
        there, value = present(self.value), constant(1) if self.kind == "count" else self.value.node
        none = {"float": constant(0.0), "flag": FALSE}.get(value.type, constant(0))
        return people(self.base, met, (("value", when(there, value, none)), ("there", there)))


def parse_policy_query(
    sql: str, catalog: Catalog, *, table: str | None = None, statistics: bool = False
) -> PolicyQuery:
    """Read a query; what is outside the language is refused with place, reason and suggestion.

    ``table`` is the only table there is: FROM may call it by any name. ``statistics``: whether variances, correlations
    and regressions are in the language.
    """
    text, tree, target = parse_statement(sql)
    if table is not None:
        _rename_table(tree, table)
    if target is not None:
        raise QueryRefused("ERROR belongs to differential privacy; this data set has another policy.",
                           fix="Leave it out.")  # fmt: skip
    try:
        return _read(text, tree, catalog, {**_KINDS, **_STATISTICS} if statistics else _KINDS)
    except RecursionError:
        raise QueryRefused("The query is nested too deeply.") from None


def _rename_table(tree: object, table: str) -> None:
    """Let FROM name ``table``, whatever it is called; columns may still be qualified by the name in the text."""
    node = tree.args["from_"].this if isinstance(tree, exp.Select) and tree.args.get("from_") else None
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        _call(node, table)


def _call(node: exp.Table, table: str) -> None:
    if not node.alias:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
    node.set("this", exp.to_identifier(table, quoted=True))
    node.set("db", None)
    node.set("catalog", None)


def restated(sql: str, catalog: Catalog) -> str:
    """An earlier query with the private table's name of today: the same table may be declared under several names."""
    try:
        _, tree, _ = parse_statement(sql)
    except QueryRefused:
        return sql
    known = {name.lower() for name in (*catalog.private, *catalog.public)}
    named_otherwise = [node for node in tree.find_all(exp.Table) if node.name.lower() not in known]
    if len(named_otherwise) != 1:
        return sql
    [table] = catalog.private
    _call(named_otherwise[0], table)
    return tree.sql(dialect="duckdb")


def _read(text: str, tree: Any, catalog: Catalog, kinds: Mapping[type[exp.Expression], str]) -> PolicyQuery:
    if not isinstance(tree, exp.Select):
        raise refuse(tree, text, f"Only SELECT is answered, not {tree.key.upper()}.")
    for name, words in _MORE.items():
        if tree.args.get(name):
            raise refuse(
                tree.args[name],
                text,
                f"{words} is supported with differential privacy only.",
                "Use one aggregate with a WHERE.",
            )
    if len(tree.expressions) != 1:
        raise refuse(tree.expressions[1], text, "A query selects one column or aggregate.", "Use one query for each.")
    shown = tree.expressions[0]
    item = shown.unalias()
    if isinstance(item, exp.Star | exp.Column) and item.is_star:
        raise refuse(item, text, "SELECT * returns rows, and each row is about one person.", "Use an aggregate.")
    sources = Binder(catalog, text)
    relation = sources.select_rows(tree, {})
    where, base = tree.args.get("where"), relation.rows
    if where is not None:
        assert isinstance(base, Filter)
        base = base.child
    if not all(isinstance(node, Scan | PublicJoin) for node in walk(base)):
        raise refuse(
            tree.args["from_"],
            text,
            "Subqueries are supported with differential privacy only.",
            "Use the table itself; public tables may be joined.",
        )
    reader = sources.reader(relation)
    conditions = tuple(
        Condition(scalar=reader.condition(part), columns=_names([part]), node=part) for part in _parts(where)
    )
    kind = kinds.get(type(item))
    if kind is None and not isinstance(item, exp.Column):
        raise refuse(
            item,
            text,
            f"`{called(item, text)}` is not answered by this policy.",
            "Use COUNT(*), SUM(column) or AVG(column).",
        )
    inner = item.this if kind else item
    star = kind == "count" and (inner is None or isinstance(inner, exp.Star))
    if isinstance(inner, exp.Distinct) or (kind and item.args.get("expressions")):
        raise refuse(item, text, "DISTINCT and several arguments are not answered by this policy.")
    other = item.args.get("expression") if kind in _STATISTICS.values() else None
    second = reader.number(other) if other is not None else None
    value = None if star else reader.read(inner) if kind in (None, "count") else reader.number(inner)
    return PolicyQuery(
        text=text,
        title=str(shown.alias or (item.name if kind is None else item.sql(dialect="duckdb")[:80])),
        kind=kind or "values",
        column=_bare(base, value),
        second=_bare(base, second),
        value=value,
        conditions=conditions,
        joined=_names(
            [join.args["on"] for join in tree.args.get("joins") or () if join.args.get("on") is not None]
            + [name for join in tree.args.get("joins") or () for name in join.args.get("using") or ()]
        ),
        attached=frozenset(c.lower() for n in walk(base) if isinstance(n, PublicJoin) for _, c, _ in n.names),
        base=_numbered(base),
        node=item,
    )


def people(rows: PlanNode, conditions: Iterable[Expression], more: tuple[tuple[str, Expression], ...]) -> Query:
    """The numbers of the people for whom conditions hold, in order, with further columns."""
    where = all_of(*conditions)
    number = ColumnRef(NUMBERED, "int")
    return Select(((NUMBERED, number), *more), Subquery(rows.query()), where=where, order_by=(number,))


def _parts(where: Any) -> list[Any]:
    """The conditions that an AND puts together."""
    if where is None:
        return []
    waiting, found = [where.this], []
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _names(nodes: list[Any]) -> frozenset[str]:
    """The columns named under the nodes; USING names them without more ado."""
    plain = {node.name.lower() for node in nodes if isinstance(node, exp.Identifier)}
    return frozenset(
        plain.union(part.name.lower() for node in nodes for part in node.walk() if isinstance(part, exp.Column))
    )


def _bare(base: PlanNode, scalar: Scalar | None) -> str | None:
    """The column of the private table that an expression consists of, if it is one."""
    if scalar is None or not isinstance(scalar.node, ColumnRef):
        return None
    names = {name: column for node in walk(base) if isinstance(node, Scan) for name, column, _ in node.names}
    return names.get(scalar.node.name)


def _numbered(node: PlanNode) -> PlanNode:
    """The same rows, each with the number of its person."""
    match node:
        case Scan():
            return replace(node, names=(*node.names, (NUMBERED, ROW, "int")))
        case PublicJoin():
            return replace(node, child=_numbered(node.child))
        case _:
            raise AssertionError("only tables and joins with public tables are numbered")
