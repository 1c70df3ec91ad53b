"""Truncate the rows of one unit before they are combined pairwise, so that no unit makes a query slow."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sfumato.engines.aggregation import CountRows, RowNumber
from sfumato.engines.expressions import ColumnRef, Compare, Expression, IsNull, Unit, constant, equal
from sfumato.engines.statements import Join, NamedView, Query, Select, Subquery, UnionAllQuery, With
from sfumato.query.plan.relational import Items, PlanNode, columns_of
from sfumato.query.plan.unit_nodes import unsigned_zero

MOST_JOINED_ROWS = 256
"""Rows of one unit on one side of a join of private tables."""


@dataclass(frozen=True, kw_only=True)
class FirstRows(PlanNode):
    """At most ``most`` rows of each unit: the first in the order of ``first``, then of all columns.

    Rows that are equal in all columns are the same row, so that which of them stays changes nothing. What stays of a
    unit depends on its own rows alone. Only the rows of units that have too many are put in order.
    """

    child: PlanNode
    most: int
    first: tuple[Expression, ...]
    """Columns by which both sides of a join are compared, so that partners stay together."""

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def columns(self) -> Items:
        return self.child.columns()

    def keep(self, names: frozenset[str]) -> PlanNode:
        return replace(self, child=self.child.keep(names | columns_of(self.first)))

    def query(self) -> Query:
        assert not self.by_row
        columns, origin = self.child.columns(), self.origin
        plain = tuple((name, unsigned_zero(node)) for name, node in columns)
        rows = Select((*self.unit(), *plain), Subquery(self.child.query()))
        number = ColumnRef("n", "int")
        counts = Select((*self.unit(), ("n", CountRows())), NamedView("rows"), group_by=1)
        many = Select(self.unit(), Subquery(counts), where=Compare(">", number, constant(self.most)))
        same = equal(Unit(origin, "rows"), Unit(origin, "many"))
        few = Select((), Join(NamedView("rows"), NamedView("many"), same, outer=True),
                     where=IsNull(Unit(origin, "many")), star="rows")  # fmt: skip
        order: list[Expression] = []
        for node in (*self.first, *(node for _, node in columns)):
            order += [IsNull(node), node]
        long = Select((), Join(NamedView("rows"), NamedView("many"), same), star="rows")
        placed = Select((("place", RowNumber((Unit(origin),), tuple(order))),), Subquery(long), star=True)
        within = Compare("<=", ColumnRef("place", "int"), constant(self.most))
        kept = Select((*self.unit(), *columns), Subquery(placed), where=within)
        return With((("rows", rows), ("many", many)), UnionAllQuery(few, kept))


def truncated(node: PlanNode, first: tuple[Expression, ...]) -> PlanNode:
    """A side of a join of private tables with a limited number of rows of each unit."""
    if node.unbounded_joins == 0 or isinstance(node, FirstRows):
        return node
    return FirstRows(child=node, most=MOST_JOINED_ROWS, first=first)
