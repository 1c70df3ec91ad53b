"""Relational plan of a query's rows: kinds of node with one invariant.

**Invariant.** Every row of a node belongs to exactly one privacy unit and is computed from that unit's own rows and
public tables only. Removing a unit therefore removes its rows and changes no other row. Each node's docstring says why
it keeps the invariant. Contributions are bounded once, at the top, by unit; the nodes below enforce no bounds.

Where each row is a unit of its own, ``copies`` says how many rows of a node one original row can become.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sfumato.engines.expressions import (
    STORED_TEXT,
    Cast,
    ColumnRef,
    Compare,
    Expression,
    IsNull,
    Not,
    Origin,
    Read,
    StoredUnit,
    Unit,
    all_of,
    equal,
    standing_for,
)
from sfumato.engines.expressions import walk as walk_expression
from sfumato.engines.statements import Join, Query, Select, Stored, Subquery, UnionAllQuery
from sfumato.query.plan.scalar import Scalar

Items = tuple[tuple[str, Expression], ...]


class PlanNode(ABC):
    """A node of the plan."""

    @abstractmethod
    def children(self) -> tuple[PlanNode, ...]: ...

    @abstractmethod
    def query(self) -> Query:
        """The statement of its rows; its column ``u`` is the unit, unless each row is a unit."""

    @abstractmethod
    def columns(self) -> Items:
        """Internal names of the columns, without the unit, each as an expression above this node."""

    @abstractmethod
    def keep(self, names: frozenset[str]) -> PlanNode:
        """The node without columns that nobody uses. An engine would remove them, but after binding every one."""

    @property
    def by_row(self) -> bool:
        """Whether each row of the private table is a unit of its own."""
        return self.children()[0].by_row

    @property
    def copies(self) -> int:
        """Most rows that come from one original row (used only where each row is a unit)."""
        return self.children()[0].copies

    @property
    def max_row_multiplicity(self) -> int:
        """Most times that one row of a table is repeated."""
        return self.children()[0].max_row_multiplicity

    @property
    def unbounded_joins(self) -> int:
        """Number of tables whose rows of one unit are combined pairwise."""
        return self.children()[0].unbounded_joins

    @property
    def origin(self) -> Origin | None:
        """The stored column that has the unit; None where the unit is text, because it comes from several tables."""
        return self.children()[0].origin

    def unit(self, table: str = "") -> Items:
        """The unit as a column; nothing where each row is a unit."""
        return () if self.by_row else (("u", Unit(self.origin, table)),)


def walk(node: PlanNode) -> Iterator[PlanNode]:
    """The node and everything under it."""
    yield node
    for child in node.children():
        yield from walk(child)


def columns_of(expressions: Iterable[Expression]) -> frozenset[str]:
    """Names of the columns that expressions use."""
    return frozenset(part.name for node in expressions for part in walk_expression(node) if isinstance(part, ColumnRef))


def _named(items: Iterable[tuple[str, Expression]], table: str = "") -> Items:
    return tuple((name, standing_for(name, item, table=table)) for name, item in items)


@dataclass(frozen=True, kw_only=True)
class Scan(PlanNode):
    """A private table. Each row belongs to the unit in its unit column; rows without a unit are removed."""

    table: str
    unit_column: str | None
    names: tuple[tuple[str, str, str], ...]
    """(internal name, column, type). A value that does not fit its declared kind is read as missing; a text is cut."""

    def children(self) -> tuple[PlanNode, ...]:
        return ()

    @property
    def by_row(self) -> bool:
        return self.unit_column is None

    @property
    def max_row_multiplicity(self) -> int:
        return 1

    @property
    def unbounded_joins(self) -> int:
        return 1

    @property
    def origin(self) -> Origin | None:
        return None if self.unit_column is None else (self.table, self.unit_column)

    @property
    def copies(self) -> int:
        return 1

    def columns(self) -> Items:
        return _named(self._read())

    def _read(self) -> Items:
        return tuple((name, Read((self.table, column), kind, STORED_TEXT)) for name, column, kind in self.names)

    def keep(self, names: frozenset[str]) -> PlanNode:
        kept = tuple(item for item in self.names if item[0] in names)
        return replace(self, names=kept or (self.names[:1] if self.by_row else ()))

    def query(self) -> Query:
        items = self._read()
        if self.origin is None:
            return Select(items, Stored(self.table))
        unit = StoredUnit(self.origin)
        return Select((("u", unit), *items), Stored(self.table), where=Not(IsNull(unit)))


@dataclass(frozen=True, kw_only=True)
class Filter(PlanNode):
    """Rows for which a condition holds. The condition depends on the row only."""

    child: PlanNode
    condition: Scalar

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def columns(self) -> Items:
        return self.child.columns()

    def keep(self, names: frozenset[str]) -> PlanNode:
        return replace(self, child=self.child.keep(names | columns_of([self.condition.node])))

    def query(self) -> Query:
        return Select((), Subquery(self.child.query()), where=self.condition.node, star=True)


@dataclass(frozen=True, kw_only=True)
class Project(PlanNode):
    """Other columns for the same rows, each computed from the row only."""

    child: PlanNode
    items: tuple[tuple[str, Scalar], ...]

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def columns(self) -> Items:
        return _named((name, scalar.node) for name, scalar in self.items)

    def keep(self, names: frozenset[str]) -> PlanNode:
        items = tuple(item for item in self.items if item[0] in names) or self.items[:1]
        return replace(self, items=items, child=self.child.keep(columns_of(scalar.node for _, scalar in items)))

    def query(self) -> Query:
        items = tuple((name, scalar.node) for name, scalar in self.items)
        return Select((*self.unit(), *items), Subquery(self.child.query()))


@dataclass(frozen=True, kw_only=True)
class PublicJoin(PlanNode):
    """Join with a public table on its unique key: at most one match, so rows are not multiplied."""

    child: PlanNode
    table: str
    on: tuple[tuple[Scalar, str, str], ...]
    """(value in the row, key column of the public table, its type)."""
    names: tuple[tuple[str, str, str], ...]
    """(internal name, public column, type)."""
    outer: bool

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def columns(self) -> Items:
        return (*self.child.columns(), *((name, ColumnRef(name, kind)) for name, _, kind in self.names))

    def keep(self, names: frozenset[str]) -> PlanNode:
        child = self.child.keep(names | columns_of(scalar.node for scalar, _, _ in self.on))
        return replace(self, child=child, names=tuple(item for item in self.names if item[0] in names))

    def query(self) -> Query:
        keys = tuple((f"key{i}", Read((self.table, key), kind)) for i, (_, key, kind) in enumerate(self.on))
        more = tuple((name, Read((self.table, column), kind)) for name, column, kind in self.names)
        match = all_of(*(equal(s.node, ColumnRef(f"key{i}", kind, "p")) for i, (s, _, kind) in enumerate(self.on)))
        public = Subquery(Select((*keys, *more), Stored(self.table)), "p")
        items = (*self.unit("r"), *_named(self.child.columns(), "r"), *_named(more, "p"))
        return Select(items, Join(Subquery(self.child.query(), "r"), public, match, outer=self.outer))


@dataclass(frozen=True, kw_only=True)
class UnitJoin(PlanNode):
    """Join of two nodes on the unit: both rows of each pair belong to the same unit.

    With ``outer``, rows of the left side without a partner stay, too. Whether a row has one depends on its own unit.
    """

    left: PlanNode
    right: PlanNode
    outer: bool = False
    on: tuple[Scalar, ...] = ()
    """Further conditions that a partner must meet."""

    def children(self) -> tuple[PlanNode, ...]:
        return (self.left, self.right)

    @property
    def max_row_multiplicity(self) -> int:
        return self.left.max_row_multiplicity * self.right.max_row_multiplicity

    @property
    def unbounded_joins(self) -> int:
        return self.left.unbounded_joins + self.right.unbounded_joins

    def columns(self) -> Items:
        return (*self.left.columns(), *self.right.columns())

    def keep(self, names: frozenset[str]) -> PlanNode:
        used = names | columns_of(scalar.node for scalar in self.on)
        return replace(self, left=self.left.keep(used), right=self.right.keep(used))

    def query(self) -> Query:
        assert not self.by_row
        one, two = Unit(self.left.origin, "l"), Unit(self.right.origin, "r")
        # Units of different tables may have different types, and converting text to a number can fail.
        same = self.left.origin == self.right.origin
        match: Compare = equal(one, two) if same else equal(Cast(one, "text"), Cast(two, "text"))
        items = (("u", one), *_named(self.left.columns(), "l"), *_named(self.right.columns(), "r"))
        whole = all_of(match, *(scalar.node for scalar in self.on))
        sides = Subquery(self.left.query(), "l"), Subquery(self.right.query(), "r")
        return Select(items, Join(*sides, whole, outer=self.outer))


@dataclass(frozen=True, kw_only=True)
class UnionAll(PlanNode):
    """The rows of both nodes. A row keeps its unit; where each row is a unit, one original row may occur twice.

    Unit ids of different tables become text. A common type chosen by the engine could fail on some ids, or merge two
    ids into one (integers as floats), whose rows would then be bounded together and exceed what one unit may change.
    """

    first: PlanNode
    second: PlanNode

    def children(self) -> tuple[PlanNode, ...]:
        return (self.first, self.second)

    @property
    def max_row_multiplicity(self) -> int:
        return self.first.max_row_multiplicity + self.second.max_row_multiplicity

    @property
    def unbounded_joins(self) -> int:
        return max(self.first.unbounded_joins, self.second.unbounded_joins)

    @property
    def origin(self) -> Origin | None:
        return self.first.origin if self.first.origin == self.second.origin else None

    @property
    def copies(self) -> int:
        return self.first.copies + self.second.copies

    def columns(self) -> Items:
        pairs = zip(self.first.columns(), self.second.columns(), strict=True)
        return tuple((name, standing_for(name, a, b, kind=_wider(a.type, b.type))) for (name, a), (_, b) in pairs)

    def keep(self, names: frozenset[str]) -> PlanNode:
        # Columns are matched by their places, so that all of them stay.
        return replace(self, **{
            side: node.keep(frozenset(name for name, _ in node.columns()))
            for side, node in (("first", self.first), ("second", self.second))
        })  # fmt: skip

    def query(self) -> Query:
        return UnionAllQuery(self._side(self.first), self._side(self.second))

    def _side(self, node: PlanNode) -> Query:
        unit = node.unit() if self.origin else tuple((name, Cast(item, "text")) for name, item in node.unit())
        pairs = zip(node.columns(), self.columns(), strict=True)
        items = tuple(
            (name, item if item.type == own.type else Cast(item, own.type)) for (name, item), (_, own) in pairs
        )
        return Select((*unit, *items), Subquery(node.query()))


def _wider(one: str, other: str) -> str:
    return one if one == other else "float" if "float" in (one, other) else "time"


@dataclass(frozen=True, kw_only=True)
class GroupByUnit(PlanNode):
    """Aggregates by unit (and further keys). Each result is computed from the rows of one unit and belongs to it."""

    child: PlanNode
    keys: tuple[tuple[str, Scalar], ...]
    items: Items
    """(internal name, aggregate)."""

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    @property
    def max_row_multiplicity(self) -> int:
        return self.child.max_row_multiplicity if self.keys else 1

    @property
    def unbounded_joins(self) -> int:
        return self.child.unbounded_joins if self.keys else 0

    def columns(self) -> Items:
        return _named((*((name, scalar.node) for name, scalar in self.keys), *self.items))

    def keep(self, names: frozenset[str]) -> PlanNode:
        items = tuple(item for item in self.items if item[0] in names)
        used = columns_of([*(scalar.node for _, scalar in self.keys), *(node for _, node in items)])
        return replace(self, items=items, child=self.child.keep(used))

    def query(self) -> Query:
        assert not self.by_row
        keys = tuple((name, scalar.node) for name, scalar in self.keys)
        return Select((*self.unit(), *keys, *self.items), Subquery(self.child.query()), group_by=1 + len(keys))
