"""SQL generator: writes statements and expressions in the dialect of one engine, with equal results on all.

Engines differ in rounding, text order, overflow and failures. A generator has one rule per class of node; the rules of
a dialect never raise on any data. What an engine cannot compute alike is refused before anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sfumato.engines.aggregation import (
    CountRows,
    DenseRank,
    Descending,
    Largest,
    RowNumber,
    Shifted,
    Total,
    WholePartition,
)
from sfumato.engines.dialect import SqlDialect
from sfumato.engines.expressions import (
    And,
    Arithmetic,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Compare,
    Constant,
    Expression,
    Extreme,
    In,
    IsNull,
    IsTruth,
    Modulo,
    Negative,
    Not,
    NullIf,
    Or,
    Origin,
    Quotient,
    Read,
    ShiftRight,
    StoredUnit,
    Unit,
    walk,
)
from sfumato.engines.functions import (
    AddInterval,
    DatePart,
    DateTrunc,
    DayNumber,
    Function,
    Hash,
    JoinedText,
    Like,
    Matches,
    RoundTo,
    Shaped,
    Substring,
)
from sfumato.engines.interval_analysis import fits, size
from sfumato.engines.statements import (
    Join,
    Listed,
    NamedView,
    Query,
    Select,
    Source,
    Stored,
    Subquery,
    UnionAllQuery,
    Values,
    With,
)
from sfumato.engines.text_patterns import SHAPES

Columns = Mapping[str, str]
"""Stored type by column: a type of expressions, or one that only the dialect's ``cast`` knows."""
_HASH_STEPS = 1 << 20
_ROUNDING = ("floor", "ceil", "round", "trunc")


class SqlGenerator(SqlDialect):
    """Generator of one dialect. Subclasses write values and functions; this class assembles them."""

    def __init__(
        self, tables: Mapping[str, Columns], names: Mapping[str, str] | None = None, *, own_hash: bool = False
    ) -> None:
        self.own_hash = own_hash
        self._tables = tables
        self._names = names or {}
        self._aliases = 0

    kept: ClassVar[str] = ""
    """Written before a named query that is computed once."""

    def write(self, query: Query) -> str:
        """The statement in this dialect. Raises QueryRefused if the engine cannot compute it as the others do."""
        self._aliases = 0
        return self._query(query)

    # --- statements -------------------------------------------------------------------------------------------------

    def _query(self, query: Query) -> str:
        match query:
            case UnionAllQuery(first, second):
                return f"{self._query(first)} UNION ALL {self._query(second)}"
            case With(views, inner):
                named = ", ".join(f"{self.name(name)} AS {self.kept}({self._query(view)})" for name, view in views)
                return f"WITH {named} {self._query(inner)}"
            case Select():
                return self._select(query)

    def _select(self, query: Select) -> str:
        items = [f"{self.name(query.star)}.*" if isinstance(query.star, str) else "*"] if query.star else []
        items += [f"{self.expression(item)} AS {self.name(name)}" for name, item in query.items]
        sql = f"SELECT {'DISTINCT ' if query.distinct else ''}{', '.join(items)} FROM {self._source(query.source)}"
        if query.where is not None:
            sql += f" WHERE {self.expression(query.where)}"
        if query.group_by:
            sql += f" GROUP BY {', '.join(str(place + 1) for place in range(query.group_by))}"
        if query.order_by:
            sql += f" ORDER BY {', '.join(map(self._in_order, query.order_by))}"
        return sql

    def _source(self, source: Source) -> str:
        match source:
            case Stored(table):
                return self._names.get(table) or self.name(table)
            case NamedView(name):
                return self.name(name)
            case Subquery(query, alias):
                self._aliases += 1
                return f"({self._query(query)}) AS {self.name(alias or f'from{self._aliases}')}"
            case Values(rows, alias, columns):
                written = [f"({', '.join(map(self.expression, row))})" for row in rows]
                return self.values(written, self.name(alias), [self.name(name) for name in columns])
            case Listed(name, alias, columns):
                return f"{name} AS {alias}({', '.join(columns)})"
            case Join(left, right, on, outer):
                how = "LEFT JOIN" if outer else "JOIN"
                return f"{self._source(left)} {how} {self._source(right)} ON {self.expression(on)}"

    # --- expressions ------------------------------------------------------------------------------------------------

    def expression(self, node: Expression) -> str:
        return _RULES[type(node)](self, node)

    def _in_order(self, node: Expression) -> str:
        if isinstance(node, Descending):
            return f"{self._in_order(node.a)} DESC"
        return self.ordered(self.expression(node), self.kind(node))

    def kind(self, node: Expression) -> str:
        """The type of a value; of a unit, the type that its stored column is read as."""
        return self.unit_kind(node.origin) if isinstance(node, Unit | StoredUnit) and node.origin else node.type

    def unit_kind(self, origin: Origin) -> str:
        """The type that the stored column of a unit is read as."""
        return self._stored_kind(origin)

    def _stored_kind(self, origin: Origin) -> str:
        table, column = origin
        kind = self._tables[table].get(column)
        if kind is None:
            raise self.no("with this column")
        return kind

    def stored(self, origin: Origin) -> str:
        """A stored column as it is."""
        return self.name(origin[1])

    def stored_unit(self, origin: Origin) -> str:
        """The stored column of a unit, read as ``unit_kind``."""
        return self.stored(origin)

    def _column(self, node: ColumnRef) -> str:
        return f"{self.name(node.table)}.{self.name(node.name)}" if node.table else self.name(node.name)

    def _unit(self, node: Unit) -> str:
        return f"{self.name(node.table)}.{self.name('u')}" if node.table else self.name("u")

    def _read(self, node: Read) -> str:
        kind = self._stored_kind(node.origin)
        sql = self.stored(node.origin)
        if kind == "text" and node.kind != "text":
            return self.read_stored(sql, node.kind)
        return self.cast(sql, kind, node.kind)

    def _read_cut(self, node: Read) -> str:
        sql = self._read(node)
        return sql if node.kind != "text" or node.most is None else self.substring([sql, "1", str(node.most)])

    def _constant(self, node: Constant) -> str:
        value: Any = node.value
        match node.kind:
            case "null":
                return "NULL"
            case "flag":
                return "TRUE" if value else "FALSE"
            case "int" | "huge":
                return self.whole(value) if value >= 0 else f"(-{self.whole(-value)})"
            case "float":
                return self.constant(repr(float(value)), "float")
            case "text":
                return self.text(value)
            case "date":
                return self.constant(value.isoformat(), "date")
        return self.constant(value.isoformat(sep=" "), "time")

    def _cast(self, node: Cast) -> str:
        kind = self.kind(node.a)
        if (kind, node.to) == ("float", "int") and _largest(node.a) < 2.0**62:
            kind = "small float"
        if (kind, node.to) == ("huge", "int") and _largest(node.a) < 2.0**62:
            kind = "small huge"
        return self.cast(self.expression(node.a), kind, node.to)

    def _float(self, node: Expression) -> str:
        sql, kind = self.expression(node), self.kind(node)
        return sql if kind == "float" else self.cast(sql, kind, "float")

    def _arithmetic(self, node: Arithmetic) -> str:
        sizes = size(node.a), size(node.b)
        if node.type != "float":
            if node.sign == "*" and sizes[0] and sizes[1] and sizes[0][0] * sizes[1][0] < 2.0**62:
                return f"({self._narrow(node.a)} * {self._narrow(node.b)})"
            a, b = self.expression(node.a), self.expression(node.b)
            return self.product(a, b) if node.sign == "*" and node.type == "huge" else f"({a} {node.sign} {b})"
        a, b = self._float(node.a), self._float(node.b)
        if any(isinstance(part, Total) for part in walk(node)):
            # The sum of one unit, in whole steps: it cannot overflow unless the bounds are near the largest float.
            if any(isinstance(part, Constant) and part.kind == "float" and part.value > 1e280 for part in walk(node)):
                raise self.no("sums of numbers as large as these")
            return f"({a} {node.sign} {b})"
        if sizes[0] is not None and sizes[1] is not None and fits(node.sign, sizes[0], sizes[1]):
            return f"({a} {node.sign} {b})"
        return self.arithmetic(node.sign, a, b)

    def _narrow(self, node: Expression) -> str:
        """A whole number without the cast that makes it wide, since the result fits 64 bits without it."""
        return self.expression(node.a if isinstance(node, Cast) and node.a.type == "int" else node)

    def _modulo(self, node: Modulo) -> str:
        a, b = self.expression(node.a), self.expression(node.b)
        return f"({a} % {b})" if node.type == "int" else self.modulo(a, b)

    def _compare(self, node: Compare) -> str:
        if node.sign in ("=", "<>"):
            return f"({self.expression(node.a)} {node.sign} {self.expression(node.b)})"
        return f"({self._in_order(node.a)} {node.sign} {self._in_order(node.b)})"

    def _logic(self, node: And | Or) -> str:
        return f"({(' AND ' if isinstance(node, And) else ' OR ').join(map(self.expression, node.items))})"

    def _case(self, node: Case) -> str:
        whens = " ".join(
            f"WHEN {self.expression(test)} THEN {self.expression(result)}" for test, result in node.branches
        )
        return f"(CASE {whens} ELSE {self.expression(node.default)} END)"

    def _function(self, node: Function) -> str:
        text = node.name in ("lower", "upper", "trim", "length")
        a = self.expression(node.a) if text else self._float(node.a)
        return self.function(node.name, a, small=node.name in _ROUNDING and _largest(node.a) < 2.0**52)

    def _substring(self, node: Substring) -> str:
        numbers = [str(number) for number in (node.start, node.length) if number is not None]
        return self.substring([self.expression(node.a), *numbers])

    def hash(self, node: Hash) -> str:
        """The hash of some values: the engine's own, or the first bits of the SHA-256 of their texts."""
        if self.own_hash:
            return self.fast_hash([(self.kind(item), self.expression(item)) if self.kind(item) == "int" else
                                   ("text", self._as_text(item)) for item in node.items])  # fmt: skip
        marked = [part for item in node.items for part in (self._as_text(item), self.text("|"))]
        return self.digest(self.joined(marked[:-1]))

    def shift_right(self, node: ShiftRight) -> str:
        return self.whole_division(self.expression(node.a), str(1 << node.bits), "int")

    def _as_text(self, node: Expression) -> str:
        """The text of a value that is hashed. Floats are rounded down to multiples of 2**-20: engines print them
        differently."""
        sql, kind = self.expression(node), self.kind(node)
        if kind == "float":
            steps = self.arithmetic("*", sql, self.constant(str(_HASH_STEPS), "float"))
            return f"COALESCE({self.cast(self.cast(self.function('floor', steps), 'float', 'int'), 'int', 'text')}, '')"
        return sql if kind == "text" else self.cast(sql, kind, "text")

    def _count(self, node: CountRows) -> str:
        inner = "*" if node.a is None else f"{'DISTINCT ' if node.distinct else ''}{self.expression(node.a)}"
        return f"COUNT({inner})" + ("" if node.where is None else f" FILTER (WHERE {self.expression(node.where)})")

    def _largest_of(self, node: Largest) -> str:
        sql = f"{'MIN' if node.least else 'MAX'}({self.expression(node.a)})"
        return sql if node.where is None else f"{sql} FILTER (WHERE {self.expression(node.where)})"

    def _window(self, node: RowNumber | Shifted) -> str:
        if isinstance(node, Shifted):
            name = "lag" if node.offset >= 0 else "lead"
            function = f"{name}({self.expression(node.a)}, {abs(node.offset)})"
        else:
            function = "dense_rank()" if isinstance(node, DenseRank) else "row_number()"
        by = [self._in_order(item) for item in node.order]
        return f"{function} OVER ({self._partition(node)}{self.window_order(by)})"

    def _whole_partition(self, node: WholePartition) -> str:
        over = f" OVER ({self._partition(node)})"
        if isinstance(node.aggregate, Total):
            return self._total(node.aggregate, over)
        return self.expression(node.aggregate) + over

    def _total(self, node: Total, over: str = "") -> str:
        return self.sum(self.expression(node.a), small=_largest(node.a) < 2.0**24, over=over)

    def _partition(self, node: RowNumber | Shifted | WholePartition) -> str:
        return f"PARTITION BY {', '.join(map(self.expression, node.partition))}"


def _largest(node: Expression) -> float:
    return (size(node) or (math.inf,))[0]


def _called(function: str) -> Callable[[SqlGenerator, Any], str]:
    return lambda g, node: f"{function}({', '.join(map(g.expression, node.parts()))})"


_RULES: dict[type[Expression], Callable[[SqlGenerator, Any], str]] = {
    ColumnRef: SqlGenerator._column,
    Unit: SqlGenerator._unit,
    StoredUnit: lambda g, node: g.stored_unit(node.origin),
    Read: SqlGenerator._read_cut,
    Constant: SqlGenerator._constant,
    Cast: SqlGenerator._cast,
    Arithmetic: SqlGenerator._arithmetic,
    Modulo: SqlGenerator._modulo,
    Quotient: lambda g, node: g.whole_division(g.expression(node.a), g.expression(node.b), node.type),
    ShiftRight: lambda g, node: g.shift_right(node),
    Negative: lambda g, node: f"(-{g.expression(node.a)})",
    Compare: SqlGenerator._compare,
    And: SqlGenerator._logic,
    Or: SqlGenerator._logic,
    Not: lambda g, node: f"(NOT {g.expression(node.a)})",
    IsNull: lambda g, node: f"({g.expression(node.a)} IS NULL)",
    IsTruth: lambda g, node: f"({g.expression(node.a)} IS {'TRUE' if node.truth else 'FALSE'})",
    In: lambda g, node: f"({g.expression(node.a)} IN ({', '.join(map(g.expression, node.items))}))",
    Like: lambda g, node: g.like(g.expression(node.a), node.pattern, fold=node.fold),
    Matches: lambda g, node: g.matches(g.expression(node.a), node.branches),
    Case: SqlGenerator._case,
    Coalesce: _called("COALESCE"),
    Extreme: lambda g, node: _called("LEAST" if node.least else "GREATEST")(g, node),
    NullIf: _called("NULLIF"),
    Function: SqlGenerator._function,
    RoundTo: lambda g, node: g.round_to(g._float(node.a), node.places),
    Shaped: lambda g, node: g.shaped(g.expression(node.a), f"^(?:{SHAPES[node.shape]})$"),
    Substring: SqlGenerator._substring,
    DatePart: lambda g, node: g.part(node.part, g.expression(node.a)),
    DateTrunc: lambda g, node: g.truncate(node.unit, g.expression(node.a), node.type),
    DayNumber: lambda g, node: g.day_number(g.cast(g.expression(node.a), node.a.type, "date")),
    AddInterval: lambda g, node: g.add_interval(g.expression(node.a), node.type, node.months, node.days, node.minutes),
    JoinedText: lambda g, node: g.joined([g.expression(item) for item in node.items]),
    Hash: lambda g, node: g.hash(node),
    CountRows: SqlGenerator._count,
    Total: SqlGenerator._total,
    Largest: SqlGenerator._largest_of,
    RowNumber: SqlGenerator._window,
    DenseRank: SqlGenerator._window,
    Shifted: SqlGenerator._window,
    WholePartition: SqlGenerator._whole_partition,
}
