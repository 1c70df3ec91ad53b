"""Plan nodes that compare or order the rows of one unit: semi- and anti-joins on the unit, window functions by unit.

They keep the invariant of :mod:`sfumato.query.plan.relational`: a row is computed from its own unit's rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sfumato.engines.aggregation import Descending, RowNumber, Shifted
from sfumato.engines.expressions import (
    Case,
    Cast,
    Compare,
    Expression,
    IsNull,
    Unit,
    constant,
    equal,
    standing_for,
)
from sfumato.engines.statements import Join, Query, Select, Subquery
from sfumato.query.plan.relational import Items, PlanNode, columns_of
from sfumato.query.plan.scalar import Scalar


@dataclass(frozen=True, kw_only=True)
class SemiJoin(PlanNode):
    """Rows whose unit has a row in another node (``anti``: has none there).

    Whether a row stays depends on the unit's own rows in both nodes, so that removing another unit changes nothing. No
    row is repeated: the right side has each unit once.
    """

    left: PlanNode
    right: PlanNode
    anti: bool

    def children(self) -> tuple[PlanNode, ...]:
        return (self.left, self.right)

    def columns(self) -> Items:
        return self.left.columns()

    def keep(self, names: frozenset[str]) -> PlanNode:
        return replace(self, left=self.left.keep(names), right=self.right.keep(frozenset()))

    def query(self) -> Query:
        assert not self.by_row
        assert not self.right.by_row
        one = Unit(self.left.origin, "l")
        # Units of different tables may have different types, and converting text to a number can fail.
        same = self.left.origin == self.right.origin and self.left.origin is not None
        own: Expression = Unit(self.right.origin)
        units = Select((("u", own if same else Cast(own, "text")),), Subquery(self.right.query()), distinct=True)
        two = Unit(self.right.origin if same else None, "r")
        match: Compare = equal(one if same else Cast(one, "text"), two)
        joined = Join(Subquery(self.left.query(), "l"), Subquery(units, "r"), match, outer=self.anti)
        return Select((), joined, where=IsNull(two) if self.anti else None, star="l")


@dataclass(frozen=True, kw_only=True)
class UnitWindow:
    """ROW_NUMBER, or LAG and LEAD of a value (``offset`` rows before, or after if negative), within one unit."""

    value: Scalar | None
    partition: tuple[Scalar, ...]
    """Further columns of PARTITION BY, besides the unit."""
    order: tuple[tuple[Scalar, bool], ...]
    """What rows are ordered by, and whether descending. Missing values come last."""
    offset: int = 1

    def nodes(self) -> tuple[Expression, ...]:
        scalars = [*self.partition, *(item for item, _ in self.order), *([self.value] if self.value else [])]
        return tuple(scalar.node for scalar in scalars)


@dataclass(frozen=True, kw_only=True)
class WindowByUnit(PlanNode):
    """The same rows with the results of window functions, each over the rows of one unit.

    Rows that compare equal are ordered by all their columns, with zeros without a sign. Rows that are still equal are
    the same row, so that which of them comes first changes nothing. The result depends on the unit's own rows alone,
    not on the order in which an engine reads the table.
    """

    child: PlanNode
    items: tuple[tuple[str, UnitWindow], ...]

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def columns(self) -> Items:
        made = tuple((name, self._call(window)) for name, window in self.items)
        return (*self.child.columns(), *((name, standing_for(name, node)) for name, node in made))

    def keep(self, names: frozenset[str]) -> PlanNode:
        items = tuple(item for item in self.items if item[0] in names)
        used = columns_of(node for _, window in items for node in window.nodes())
        return replace(self, items=items, child=self.child.keep(names | used))

    def _call(self, window: UnitWindow) -> Expression:
        partition = (Unit(self.child.origin), *(scalar.node for scalar in window.partition))
        order: list[Expression] = []
        for scalar, descending in window.order:
            order += [IsNull(scalar.node), Descending(scalar.node) if descending else scalar.node]
        for _, column in self.child.columns():
            order += [IsNull(column), column]
        if window.value is None:
            return RowNumber(partition, tuple(order))
        return Shifted(window.value.node, partition, tuple(order), window.offset)

    def query(self) -> Query:
        assert not self.by_row
        columns = self.child.columns()
        plain = tuple((name, unsigned_zero(node)) for name, node in columns)
        rows = Select((*self.unit(), *plain), Subquery(self.child.query()))
        calls = tuple((name, self._call(window)) for name, window in self.items)
        return Select((*self.unit(), *columns, *calls), Subquery(rows))


def unsigned_zero(node: Expression) -> Expression:
    """A number without the sign of zero, so that equal numbers are the same."""
    zero = constant(0.0)
    return Case(((equal(node, zero), zero),), node) if node.type == "float" else node
