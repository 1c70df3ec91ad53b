"""Relational plan of a query's rows: seven kinds of node with one invariant.

**Invariant.** Every row of a node belongs to exactly one privacy unit and is computed from that unit's own rows and
public tables only. Removing a unit therefore removes its rows and changes no other row. Each node's docstring says why
it keeps the invariant. Contributions are bounded once, at the top, by unit; the nodes below enforce no bounds.

Where each row is a unit of its own, ``copies`` says how many rows of a node one original row can become.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sfumato.data.sql_quoting import quoted_name
from sfumato.query.plan.scalar import Scalar

__all__ = [
    "Filter",
    "GroupByUnit",
    "PlanNode",
    "Project",
    "PublicJoin",
    "Scan",
    "UnionAll",
    "UnitJoin",
    "prune_columns",
    "walk",
]


class PlanNode(ABC):
    """A node of the plan. ``sql`` returns a SELECT whose column ``u`` is the unit, unless each row is a unit."""

    @abstractmethod
    def children(self) -> tuple[PlanNode, ...]: ...

    @abstractmethod
    def sql(self) -> str: ...

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Internal names of the columns, without the unit."""

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
    def ids(self) -> str:
        """The table whose type the unit has; empty where the unit is text, because it comes from several tables."""
        return self.children()[0].ids

    def _unit(self, alias: str) -> str:
        return "" if self.by_row else f"{alias}u, "


def walk(node: PlanNode) -> Iterator[PlanNode]:
    """The node and everything under it."""
    yield node
    for child in node.children():
        yield from walk(child)


@dataclass(frozen=True, kw_only=True)
class Scan(PlanNode):
    """A private table. Each row belongs to the unit in its unit column; rows without a unit are removed."""

    table: str
    unit: str | None
    names: tuple[tuple[str, str, str], ...]
    """(internal name, column, engine type). A value that does not fit its declared kind is read as missing."""

    def children(self) -> tuple[PlanNode, ...]:
        return ()

    @property
    def by_row(self) -> bool:
        return self.unit is None

    @property
    def max_row_multiplicity(self) -> int:
        return 1

    @property
    def unbounded_joins(self) -> int:
        return 1

    @property
    def ids(self) -> str:
        return self.table

    @property
    def copies(self) -> int:
        return 1

    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.names)

    def sql(self) -> str:
        unit = "" if self.unit is None else f"{quoted_name(self.unit)} AS u, "
        items = ", ".join(f"TRY_CAST({quoted_name(column)} AS {kind}) AS {name}" for name, column, kind in self.names)
        where = "" if self.unit is None else f" WHERE {quoted_name(self.unit)} IS NOT NULL"
        return f"SELECT {unit}{items} FROM {quoted_name(self.table)}{where}"


@dataclass(frozen=True, kw_only=True)
class Filter(PlanNode):
    """Rows for which a condition holds. The condition depends on the row only."""

    child: PlanNode
    condition: Scalar

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def columns(self) -> tuple[str, ...]:
        return self.child.columns()

    def sql(self) -> str:
        return f"SELECT * FROM ({self.child.sql()}) WHERE {self.condition.sql}"


@dataclass(frozen=True, kw_only=True)
class Project(PlanNode):
    """Other columns for the same rows, each computed from the row only."""

    child: PlanNode
    items: tuple[tuple[str, Scalar], ...]

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)

    def sql(self) -> str:
        items = ", ".join(f"{scalar.sql} AS {name}" for name, scalar in self.items)
        return f"SELECT {self._unit('')}{items} FROM ({self.child.sql()})"


@dataclass(frozen=True, kw_only=True)
class PublicJoin(PlanNode):
    """Join with a public table on its unique key: at most one match, so rows are not multiplied."""

    child: PlanNode
    table: str
    on: tuple[tuple[Scalar, str, str], ...]
    """(value in the row, key column of the public table, its engine type)."""
    names: tuple[tuple[str, str, str], ...]
    """(internal name, public column, engine type)."""
    outer: bool

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    def columns(self) -> tuple[str, ...]:
        return (*self.child.columns(), *(name for name, _, _ in self.names))

    def sql(self) -> str:
        columns = ", ".join(f"CAST({quoted_name(column)} AS {kind}) AS {name}" for name, column, kind in self.names)
        keys = ", ".join(f"CAST({quoted_name(key)} AS {kind}) AS key{i}" for i, (_, key, kind) in enumerate(self.on))
        match = " AND ".join(f"{scalar.sql} = p.key{i}" for i, (scalar, _, _) in enumerate(self.on))
        kept = ", ".join([f"{self._unit('r.')}r.{name}" if not i else f"r.{name}"
                          for i, name in enumerate(self.child.columns())])  # fmt: skip
        more = "".join(f", p.{name}" for name, _, _ in self.names)
        how = "LEFT JOIN" if self.outer else "JOIN"
        public = f"SELECT {keys}{', ' + columns if columns else ''} FROM {quoted_name(self.table)}"
        return f"SELECT {kept}{more} FROM ({self.child.sql()}) AS r {how} ({public}) AS p ON {match}"


@dataclass(frozen=True, kw_only=True)
class UnitJoin(PlanNode):
    """Join of two nodes on the unit: both rows of each pair belong to the same unit."""

    left: PlanNode
    right: PlanNode

    def children(self) -> tuple[PlanNode, ...]:
        return (self.left, self.right)

    @property
    def max_row_multiplicity(self) -> int:
        return self.left.max_row_multiplicity * self.right.max_row_multiplicity

    @property
    def unbounded_joins(self) -> int:
        return self.left.unbounded_joins + self.right.unbounded_joins

    def columns(self) -> tuple[str, ...]:
        return (*self.left.columns(), *self.right.columns())

    def sql(self) -> str:
        assert not self.by_row
        one = "".join(f", l.{name}" for name in self.left.columns())
        two = "".join(f", r.{name}" for name in self.right.columns())
        # Units of different tables may have different types, and converting text to a number can fail.
        same = self.left.ids == self.right.ids
        match = "l.u = r.u" if same else "CAST(l.u AS VARCHAR) = CAST(r.u AS VARCHAR)"
        return f"SELECT l.u{one}{two} FROM ({self.left.sql()}) AS l JOIN ({self.right.sql()}) AS r ON {match}"


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
    def ids(self) -> str:
        return self.first.ids if self.first.ids == self.second.ids else ""

    @property
    def copies(self) -> int:
        return self.first.copies + self.second.copies

    def columns(self) -> tuple[str, ...]:
        return self.first.columns()

    def sql(self) -> str:
        unit = self._unit("") if self.ids else "CAST(u AS VARCHAR) AS u, "
        one, two = ", ".join(self.first.columns()), ", ".join(self.second.columns())
        return f"SELECT {unit}{one} FROM ({self.first.sql()}) UNION ALL SELECT {unit}{two} FROM ({self.second.sql()})"


@dataclass(frozen=True, kw_only=True)
class GroupByUnit(PlanNode):
    """Aggregates by unit (and further keys). Each result is computed from the rows of one unit and belongs to it."""

    child: PlanNode
    keys: tuple[tuple[str, Scalar], ...]
    items: tuple[tuple[str, str], ...]
    """(internal name, aggregate in engine SQL that cannot raise)."""

    def children(self) -> tuple[PlanNode, ...]:
        return (self.child,)

    @property
    def max_row_multiplicity(self) -> int:
        return self.child.max_row_multiplicity if self.keys else 1

    @property
    def unbounded_joins(self) -> int:
        return self.child.unbounded_joins if self.keys else 0

    def columns(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.keys), *(name for name, _ in self.items))

    def sql(self) -> str:
        assert not self.by_row
        keys = "".join(f", {scalar.sql} AS {name}" for name, scalar in self.keys)
        items = "".join(f", {sql} AS {name}" for name, sql in self.items)
        groups = "".join(f", {i + 2}" for i in range(len(self.keys)))
        return f"SELECT u{keys}{items} FROM ({self.child.sql()}) GROUP BY 1{groups}"


def prune_columns(node: PlanNode, text: str) -> PlanNode:
    """Remove columns of the tables that neither ``text`` nor the conditions of the nodes use.

    An engine would remove them as well, but only after binding every one of them.
    """
    match node:
        case Filter():
            return replace(node, child=prune_columns(node.child, f"{text} {node.condition.sql}"))
        case PublicJoin():
            child = prune_columns(node.child, " ".join([text, *(scalar.sql for scalar, _, _ in node.on)]))
            return replace(node, child=child, names=_named(node.names, text))
        case Scan():
            return replace(node, names=_named(node.names, text) or node.names[:1])
        case _:
            return node


def _named(names: tuple[tuple[str, str, str], ...], text: str) -> tuple[tuple[str, str, str], ...]:
    used = set(
        re.findall(r"\bc\d+\b", text)
    )  # a word in a text constant can look like a name: then one column too many is kept
    return tuple(item for item in names if item[0] in used)
