"""JOIN of private tables with public tables and with each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import TypeAlias

from sqlglot import exp

from sfumato.dataset import Kind
from sfumato.engines.expressions import Cast, ColumnRef, Expression, constant, equal, when
from sfumato.engines.functions import Function
from sfumato.query.plan.catalog import PublicTable
from sfumato.query.plan.first_rows import truncated
from sfumato.query.plan.relational import Filter, PlanNode, PublicJoin, UnitJoin, columns_of
from sfumato.query.plan.scalar import TYPES, Scalar, flag
from sfumato.query.sql.expressions import ColumnScope, ExpressionCompiler
from sfumato.query.sql.refusal import refuse
from sfumato.query.sql.relation import BoundRelation, check_row_repetition, wider_limits
from sfumato.query.sql.unit_sets import HINT, semi_join
from sfumato.rationals import rational

_Equality: TypeAlias = str | tuple[exp.Expr, exp.Expr]
"""A column of USING, or the two sides of an equality of ON."""


_PUBLIC = "public"
"""Mark of the columns of a public table while a join condition is read."""


class JoinBinder:
    """Binds joins: a private table with a public one on its key, or two private tables on the unit."""

    def __init__(self, text: str, fresh_name: Callable[[], str]) -> None:
        self._text = text
        self._fresh_name = fresh_name

    def _refuse(self, node: exp.Expr, reason: str, fix: str = "") -> Exception:
        return refuse(node, self._text, reason, fix)

    def _reader(self, columns: ColumnScope) -> ExpressionCompiler:
        return ExpressionCompiler(columns, self._text)

    def check(self, join: exp.Join) -> None:
        """Refuse a kind of join that is not supported, before its tables are bound."""
        kind, side = (join.kind or "").upper(), _side(join)
        if join.method or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER", "SEMI", "ANTI"):
            raise self._refuse(
                join,
                "Only JOIN, LEFT JOIN, SEMI JOIN and ANTI JOIN are supported.",
                "Use LEFT JOIN with the tables in the other order." if side == "RIGHT" else "",
            )
        if join.args.get("on") is None and not join.args.get("using"):
            raise self._refuse(
                join, "A join requires ON or USING.", "Use JOIN ... ON key columns; cross joins are not supported."
            )

    def bind(
        self, left: BoundRelation | PublicTable, alias: str, right: BoundRelation | PublicTable, join: exp.Join
    ) -> BoundRelation:
        """The rows of a join. ``alias`` names the left table."""
        side, right_alias = _side(join), join.this.alias_or_name
        if isinstance(left, PublicTable):
            if side or join.kind or isinstance(right, PublicTable):
                raise self._refuse(join, "The private table comes first in a LEFT JOIN, and one table must be private.")
            left, right, right_alias = right, left, alias
        kind = (join.kind or "").upper()
        if kind in ("SEMI", "ANTI"):
            return self._semi_join(left, right, join, anti=kind == "ANTI")
        if isinstance(right, PublicTable):
            return self._join_public(left, right, right_alias, join, outer=side == "LEFT")
        return self._join_units(left, right, join, outer=side == "LEFT")

    def _semi_join(
        self, left: BoundRelation, right: BoundRelation | PublicTable, join: exp.Join, *, anti: bool
    ) -> BoundRelation:
        """The rows of the left table whose unit is (not) in the right one."""
        on = self._equalities(join)
        if (
            isinstance(right, PublicTable)
            or len(on) != 1
            or not _units(left, *self._compared(left, right, join, on[0]))
        ):
            raise self._refuse(join, "SEMI JOIN and ANTI JOIN compare the privacy units of two tables alone.", HINT)
        return replace(left, rows=semi_join(join, left, right, self._text, anti=anti))

    def _compared(
        self, left: BoundRelation, right: BoundRelation, join: exp.Join, equality: _Equality
    ) -> tuple[Scalar, Scalar]:
        if not isinstance(equality, str):
            return self._reader(left.columns + right.columns).pair(join, *equality)
        mine, theirs = left.columns.find("", equality), right.columns.find("", equality)
        if len(mine) != 1 or len(theirs) != 1:
            raise self._refuse(join, f"USING needs the column `{equality}` on both sides.")
        return mine[0], theirs[0]

    def _join_public(
        self, left: BoundRelation, table: PublicTable, alias: str, join: exp.Join, *, outer: bool
    ) -> BoundRelation:
        public = ColumnScope(
            (alias, column, Scalar(node=ColumnRef(column, TYPES[table.kind(column)], _PUBLIC), kind=table.kind(column)))
            for column in table.frame.columns
        )
        seen, both = self._reader(left.columns), self._reader(left.columns + public)
        on: list[tuple[Scalar, str, str]] = []
        for equality in self._equalities(join):
            if isinstance(equality, str):
                matches = left.columns.find("", equality)
                if len(matches) != 1 or not public.find("", equality):
                    raise self._refuse(join, f"USING needs the column `{equality}` on both sides.")
                scalar, column = matches[0], next(n for n in table.frame.columns if n.lower() == equality.lower())
            else:
                scalar, column = self._sides(both, seen, *equality, join)
            [theirs] = public.find("", column)
            if scalar.family != theirs.family:
                raise self._refuse(
                    join, f"A {scalar.family} cannot be joined with a {theirs.family}.", "Use CAST on the first."
                )
            if scalar.kind is Kind.NUMBER and theirs.kind is Kind.INTEGER:
                scalar = _as_integer(scalar)
            on.append((scalar, column, TYPES[theirs.kind]))
        if {column for _, column, _ in on} != set(table.key) or len(on) != len(table.key):
            raise self._refuse(
                join,
                f"`{table.name}` is joined on its key: {', '.join(table.key)}.",
                "Use WHERE for further conditions.",
            )
        names, items = [], []
        for column in table.frame.columns:
            kind = table.kind(column)
            name = self._fresh_name()
            names.append((name, column, TYPES[kind]))
            values = table.values(column)
            ends = [value for value in values if value == value] if kind in (Kind.INTEGER, Kind.NUMBER) else []
            bounded = ends and isfinite(ends[0]) and isfinite(ends[-1])
            low, high = (rational(ends[0]), rational(ends[-1])) if bounded else (None, None)
            known = None if kind is Kind.NUMBER else values
            longest = [constant(max(values, key=len))] if kind is Kind.CATEGORY and values else []
            node = ColumnRef(name, TYPES[kind], of=tuple(longest))
            items.append((alias, column, Scalar(node=node, kind=kind, low=low, high=high, values=known)))
        rows = PublicJoin(child=left.rows, table=table.name, on=tuple(on), names=tuple(names), outer=outer)
        shared = {str(node.name).lower() for node in join.args.get("using") or ()}
        keep = _using(items, shared)
        # After USING the shared name is one column, with the public values of the public table.
        same = {} if outer else {column.lower(): scalar for _, column, scalar in items if column.lower() in shared}
        mine = ColumnScope(
            ((a, n, s if s.unit else same.get(n.lower(), s)) for a, n, s in left.columns.items), left.columns.merged
        )
        return replace(left, rows=rows, columns=mine + keep)

    def _sides(
        self, both: ExpressionCompiler, seen: ExpressionCompiler, one: exp.Expr, other: exp.Expr, join: exp.Join
    ) -> tuple[Scalar, str]:
        a, b = both.read(one), both.read(other)
        public = [s for s in (a, b) if isinstance(s.node, ColumnRef) and s.node.table == _PUBLIC]
        if len(public) != 1:
            raise self._refuse(
                join, "Each join condition must equate a column of one table with a column of the other."
            )
        mine = one if public[0] is b else other
        column = public[0].node
        assert isinstance(column, ColumnRef)
        return seen.read(mine), column.name

    def _equalities(self, join: exp.Join) -> list[_Equality]:
        using = join.args.get("using")
        if using:
            return [str(node.name) for node in using]
        equalities: list[_Equality] = []
        pending: list[exp.Expr] = [join.args["on"]]
        while pending:
            node = pending.pop(0)
            if isinstance(node, exp.And):
                pending = [node.this, node.expression, *pending]
            elif isinstance(node, exp.Paren):
                pending = [node.this, *pending]
            elif isinstance(node, exp.EQ):
                equalities.append((node.this, node.expression))
            else:
                raise self._refuse(
                    node, "ON supports equalities of columns joined by AND.", "Use WHERE for other conditions."
                )
        return equalities

    def _join_units(self, left: BoundRelation, right: BoundRelation, join: exp.Join, *, outer: bool) -> BoundRelation:
        if left.rows.by_row or right.rows.by_row:
            raise self._refuse(
                join,
                "A private table whose rows are all different people cannot be joined with itself.",
                "Joins of private tables need a unit column in both.",
            )
        both = BoundRelation(rows=UnitJoin(left=left.rows, right=right.rows), columns=left.columns + right.columns,
                        limits=wider_limits(left.limits, right.limits))  # fmt: skip
        by_unit, rest = False, []
        compared: tuple[list[Expression], list[Expression]] = [], []
        for equality in self._equalities(join):
            a, b = self._compared(left, right, join, equality)
            if _units(left, a, b):
                by_unit = True
            else:
                rest.append(flag(equal(a.node, b.node)))
                for scalar in (a, b):
                    for columns, side in zip(compared, (left, right), strict=True):
                        own = {name for name, _ in side.rows.columns()}
                        columns += [scalar.node] if columns_of([scalar.node]) <= own else []
        check_row_repetition(both.rows, join, self._text)
        if not by_unit:
            raise self._refuse(
                join,
                "Private tables must be joined on their privacy unit.",
                "Use `AND a.unit = b.unit`.",
            )
        first, second = truncated(left.rows, tuple(compared[0])), truncated(right.rows, tuple(compared[1]))
        if outer:
            # The other side's unit is missing where there is no partner: it is an ordinary column there.
            shared = {str(node.name).lower() for node in join.args.get("using") or ()}
            others = _using(
                [
                    (alias, name, replace(scalar, unit=False, first=None, last=None))
                    for alias, name, scalar in right.columns.items
                ],
                shared,
            )
            joined = UnitJoin(left=first, right=second, outer=True, on=tuple(rest))
            return replace(both, rows=joined, columns=left.columns + others)
        rows: PlanNode = UnitJoin(left=first, right=second)
        for condition in rest:
            rows = Filter(child=rows, condition=condition)
        return replace(both, rows=rows)


def _using(columns: list[tuple[str, str, Scalar]], shared: set[str]) -> ColumnScope:
    """The columns of the right side of a join; those of USING by ``table.column`` alone."""
    return ColumnScope(
        (item for item in columns if item[1].lower() not in shared),
        (item for item in columns if item[1].lower() in shared),
    )


def _units(left: BoundRelation, a: Scalar, b: Scalar) -> bool:
    """Whether an equality is between the unit of the left side and that of the right one."""
    own = {name for name, _ in left.rows.columns()}
    return a.unit and b.unit and (columns_of([a.node]) <= own) != (columns_of([b.node]) <= own)


def _side(join: exp.Join) -> str:
    return (join.side or "").upper()


def _as_integer(scalar: Scalar) -> Scalar:
    """A float key converted to an integer, NULL where it is not whole.

    Compared as floats, neighbouring integers above 2**53 are equal, and one row would match several.
    """
    x = scalar.node
    return Scalar(node=when(equal(x, Function(x, "floor")), Cast(x, "int")), kind=Kind.INTEGER)
