"""Statements in other dialects: read in DuckDB's, with types, and written so that the result is the same.

A plain transpilation is not enough: engines differ in how they round, order text, overflow and fail. The writer knows
every node that prepared statements consist of and the type of every value; what it does not know it refuses, so that
nothing reaches an engine whose meaning there has not been decided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from tacit.errors import QueryRefused

__all__ = ["Columns", "Writer"]

Columns = dict[str, str]
"""Type by name: int, huge (more than 64 bits), float, text, date, time, flag, null; of a stored table also others that
only ``cast`` knows."""
Scope = list[tuple[str, Columns]]
Typed = tuple[str, str]

_TYPES = {
    "BIGINT": "int", "INT": "int", "INT128": "huge", "DOUBLE": "float", "VARCHAR": "text", "TEXT": "text",
    "DATE": "date", "TIMESTAMP": "time", "TIMESTAMPNTZ": "time", "BOOLEAN": "flag",
}  # fmt: skip
_NUMBERS = ("int", "huge", "float")
_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_CLAUSES = {"expressions", "from_", "joins", "where", "group", "with_", "distinct", "order"}
_HASH_STEPS = 1 << 20
_UNREADABLE = "unreadable"


class Writer(ABC):
    """One dialect. Subclasses say how values are written; statements are put together here."""

    title = ""
    """The engine's name in refusals."""

    def __init__(self, tables: Mapping[str, Columns], names: Mapping[str, str] | None = None) -> None:
        self._tables = tables
        self._names = names or {}
        self._aliases = 0

    def write(self, sql: str) -> str:
        """The statement in this dialect; QueryRefused where that is not possible."""
        import sqlglot

        try:
            trees = sqlglot.parse(sql, read="duckdb")
        except sqlglot.errors.SqlglotError:
            raise self.no("this statement") from None
        if len(trees) != 1 or trees[0] is None:
            raise self.no("this statement")
        self._aliases = 0
        written, columns = self._query(trees[0], {})
        if _UNREADABLE in columns.values():
            raise self.no("with a column whose stored type is not the declared one")
        return written

    def no(self, what: str) -> QueryRefused:
        return QueryRefused(
            f"{self.title} cannot compute {what} with exactly the result the other engines give.",
            fix="Ask in another way, or copy the table to a Parquet file and use DuckDB.",
        )

    # --- how values are written -----------------------------------------------------------------------------------

    @abstractmethod
    def name(self, value: str) -> str: ...

    @abstractmethod
    def text(self, value: str) -> str: ...

    @abstractmethod
    def constant(self, value: str, kind: str) -> str:
        """A written-out float, date or time."""

    def whole(self, value: int) -> str:
        """A written-out whole number that is not negative."""
        return str(value)

    @abstractmethod
    def cast(self, sql: str, kind: str, to: str) -> str:
        """A conversion that gives NULL where it is not possible."""

    @abstractmethod
    def arithmetic(self, sign: str, a: str, b: str) -> str:
        """IEEE arithmetic on floats that never raises."""

    @abstractmethod
    def function(self, name: str, a: str) -> str:
        """floor, ceil, round, trunc (floats); isnan, sqrt, abs; lower, upper, trim, length."""

    @abstractmethod
    def substring(self, items: list[str]) -> str: ...

    @abstractmethod
    def part(self, part: str, a: str) -> str:
        """A date part as a whole number."""

    @abstractmethod
    def like(self, a: str, pattern: str, *, fold: bool) -> str: ...

    @abstractmethod
    def whole_division(self, a: str, b: str, kind: str) -> str:
        """Division of numbers that are not negative, without remainder."""

    @abstractmethod
    def digest(self, text: str) -> str:
        """The first 60 bits of a text's SHA-256 as a whole number."""

    @abstractmethod
    def joined(self, items: list[str]) -> str:
        """Texts one after the other."""

    def ordered(self, sql: str, kind: str) -> str:
        """A value where its order matters: text is ordered by its bytes."""
        return sql

    def values(self, rows: list[str], alias: str, columns: list[str]) -> str:
        return f"(VALUES {', '.join(rows)}) AS {alias}({', '.join(columns)})"

    # --- statements -----------------------------------------------------------------------------------------------

    def _query(self, node: Any, views: Mapping[str, Columns]) -> tuple[str, Columns]:
        match type(node).__name__:
            case "Subquery" | "Paren":
                return self._query(node.this, views)
            case "Union" if not node.args.get("distinct"):
                one, columns = self._query(node.this, views)
                two, others = self._query(node.expression, views)
                kinds = [self._merged([a, b]) for a, b in zip(columns.values(), others.values(), strict=True)]
                return f"{one} UNION ALL {two}", dict(zip(columns, kinds, strict=True))
            case "Select":
                return self._select(node, dict(views))
        raise self.no("this statement")

    def _select(self, node: Any, views: dict[str, Columns]) -> tuple[str, Columns]:
        if any(value for name, value in node.args.items() if value and name not in _CLAUSES):
            raise self.no("this clause")
        opening = []
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            sql, columns = self._query(cte.this, views)
            views[cte.alias] = columns
            opening.append(f"{self.name(cte.alias)} AS ({sql})")
        scope: Scope = []
        text = self._source(node.args["from_"].this, views, scope) if node.args.get("from_") else ""
        for join in node.args.get("joins") or ():
            how = "LEFT JOIN" if (join.side or "").upper() == "LEFT" else "JOIN"
            text += f" {how} {self._source(join.this, views, scope)}"
            if join.args.get("using"):
                text += f" USING ({', '.join(self.name(item.name) for item in join.args['using'])})"
            else:
                text += f" ON {self._expression(join.args['on'], scope)[0]}"
        items, columns = self._items(node.expressions, scope)
        if _UNREADABLE in columns.values() and (node.args.get("group") or node.args.get("distinct")):
            raise self.no("with a column whose stored type is not the declared one")
        sql = f"SELECT {'DISTINCT ' if node.args.get('distinct') else ''}{', '.join(items)}"
        sql += f" FROM {text}" if text else ""
        if node.args.get("where"):
            sql += f" WHERE {self._expression(node.args['where'].this, scope)[0]}"
        if node.args.get("group"):
            sql += f" GROUP BY {', '.join(self._expression(item, scope)[0] for item in node.args['group'].expressions)}"
        if node.args.get("order"):
            by = [self.ordered(*self._expression(item.this, scope)) for item in node.args["order"].expressions]
            sql += f" ORDER BY {', '.join(by)}"
        return (f"WITH {', '.join(opening)} {sql}" if opening else sql), columns

    def _items(self, nodes: list[Any], scope: Scope) -> tuple[list[str], Columns]:
        items: list[str] = []
        columns: Columns = {}
        for item in nodes:
            if item.is_star and type(item).__name__ in ("Star", "Column"):
                table = item.table if type(item).__name__ == "Column" else ""
                items.append(f"{self.name(table)}.*" if table else "*")
                for alias, known in scope:
                    columns |= known if not table or alias == table else {}
                continue
            sql, kind = self._item(item.unalias(), scope)
            title = item.alias_or_name or f"column{len(columns)}"
            items.append(f"{sql} AS {self.name(title)}")
            columns[title] = kind
        return items, columns

    def _item(self, node: Any, scope: Scope) -> Typed:
        """One column of a SELECT. A stored column that cannot be read as declared hurts only those who use it."""
        if type(node).__name__ == "Column" and self._kind(node, scope) == _UNREADABLE:
            return "NULL", _UNREADABLE
        try:
            return self._expression(node, scope)
        except QueryRefused:
            if type(node).__name__ == "TryCast" and type(node.this).__name__ == "Column" and len(scope) == 1:
                return "NULL", _UNREADABLE
            raise

    def _source(self, node: Any, views: Mapping[str, Columns], scope: Scope) -> str:
        self._aliases += 1
        alias = node.alias or f"from{self._aliases}"
        match type(node).__name__:
            case "Subquery":
                sql, columns = self._query(node.this, views)
                scope.append((alias, columns))
                return f"({sql}) AS {self.name(alias)}"
            case "Values":
                rows = [[self._expression(item, []) for item in row.expressions] for row in node.expressions]
                names = [column.name for column in node.args["alias"].columns]
                kinds = [self._merged([row[i][1] for row in rows]) for i in range(len(names))]
                scope.append((alias, dict(zip(names, kinds, strict=True))))
                written = [f"({', '.join(sql for sql, _ in row)})" for row in rows]
                return self.values(written, self.name(alias), [self.name(name) for name in names])
            case "Table" if not node.args.get("db") and type(node.this).__name__ == "Identifier":
                known = views.get(node.name)
                stored = self._tables.get(node.name) if known is None else known
                if stored is None:
                    raise self.no("from this table")
                alias = node.alias or node.name
                scope.append((alias, stored))
                place = self.name(node.name) if known is not None else self._names.get(node.name, self.name(node.name))
                return f"{place} AS {self.name(alias)}"
        raise self.no("from this source")

    # --- expressions ----------------------------------------------------------------------------------------------

    def _expression(self, node: Any, scope: Scope) -> Typed:
        kind = type(node).__name__
        rule = _RULES.get(kind)
        if kind in _COMPARISONS:
            return self._compare(_COMPARISONS[kind], node, scope)
        if rule is None:
            raise self.no(f"`{node.sql_name() if hasattr(node, 'sql_name') else node.key.upper()}`")
        return rule(self, node, scope)

    def _merged(self, kinds: list[str]) -> str:
        found = {kind for kind in kinds if kind != "null"}
        if len(found) <= 1:
            return found.pop() if found else "null"
        if found <= set(_NUMBERS):
            return "float" if "float" in found else "huge"
        raise self.no("with values of mixed kinds")

    def _compare(self, sign: str, node: Any, scope: Scope) -> Typed:
        (a, one), (b, two) = self._expression(node.this, scope), self._expression(node.expression, scope)
        kind = self._merged([one, two])
        if sign not in ("=", "<>"):
            a, b = self.ordered(a, kind), self.ordered(b, kind)
        return f"({a} {sign} {b})", "flag"

    def _kind(self, node: Any, scope: Scope) -> str | None:
        found = (known for alias, known in scope if (not node.table or node.table == alias) and node.name in known)
        return next((known[node.name] for known in found), None)

    def _column(self, node: Any, scope: Scope) -> Typed:
        kind = self._kind(node, scope)
        if kind is None:
            raise self.no("with this column")
        if kind == _UNREADABLE:
            raise self.no("with a column whose stored type is not the declared one")
        return (f"{self.name(node.table)}." if node.table else "") + self.name(node.name), kind

    def _literal(self, node: Any, scope: Scope) -> Typed:
        if node.is_string:
            return self.text(node.this), "text"
        if node.this.isdigit():
            return self.whole(int(node.this)), "int" if int(node.this) < 1 << 63 else "huge"
        return self.constant(node.this, "float"), "float"

    def _cast(self, node: Any, scope: Scope) -> Typed:
        to = _TYPES.get(node.args["to"].this.name)
        if to is None:
            raise self.no("this cast")
        inner = node.this
        negative = type(inner).__name__ == "Neg"
        if type(inner.this if negative else inner).__name__ == "Literal" and to in ("float", "date", "time"):
            return self.constant(f"{'-' if negative else ''}{(inner.this if negative else inner).this}", to), to
        sql, kind = self._expression(inner, scope)
        return self.cast(sql, kind, to), to

    def _calculate(self, sign: str, node: Any, scope: Scope) -> Typed:
        from sqlglot import exp

        (a, one), (b, two) = self._expression(node.this, scope), self._expression(node.expression, scope)
        kind = self._merged([one, two])
        if kind not in _NUMBERS:
            raise self.no("this arithmetic")
        if kind != "float":
            if sign == "/":
                raise self.no("this division")
            return f"({a} {sign} {b})", kind
        a, b = (sql if own == "float" else self.cast(sql, own, "float") for sql, own in ((a, one), (b, two)))
        if node.find(exp.AggFunc) is not None:
            # A unit's own sum of whole steps: far from the ends of the floats unless the bounds are there.
            large = [item for item in node.find_all(exp.Literal) if not item.is_string and float(item.this) > 1e280]
            if large:
                raise self.no("sums of numbers as large as these")
            return f"({a} {sign} {b})", "float"
        return self.arithmetic(sign, a, b), "float"

    def _negative(self, node: Any, scope: Scope) -> Typed:
        a, kind = self._expression(node.this, scope)
        return f"(-{a})", kind

    def _logic(self, sign: str, node: Any, scope: Scope) -> Typed:
        a, b = self._expression(node.this, scope)[0], self._expression(node.expression, scope)[0]
        return f"({a} {sign} {b})", "flag"

    def _is(self, node: Any, scope: Scope) -> Typed:
        a = self._expression(node.this, scope)[0]
        return f"({a} IS {self._expression(node.expression, scope)[0]})", "flag"

    def _in(self, node: Any, scope: Scope) -> Typed:
        a, kind = self._expression(node.this, scope)
        items = [self._expression(item, scope) for item in node.expressions]
        self._merged([kind, *(own for _, own in items)])
        return f"({a} IN ({', '.join(sql for sql, _ in items)}))", "flag"

    def _like(self, node: Any, scope: Scope) -> Typed:
        a = self._expression(node.this, scope)[0]
        return self.like(a, node.expression.this, fold=type(node).__name__ == "ILike"), "flag"

    def _case(self, node: Any, scope: Scope) -> Typed:
        branches = [(self._expression(item.this, scope)[0], self._expression(item.args["true"], scope))
                    for item in node.args["ifs"]]  # fmt: skip
        default = self._expression(node.args["default"], scope) if node.args.get("default") else ("NULL", "null")
        kind = self._merged([*(result[1] for _, result in branches), default[1]])
        whens = " ".join(f"WHEN {test} THEN {result}" for test, (result, _) in branches)
        return f"(CASE {whens} ELSE {default[0]} END)", kind

    def _several(self, function: str, node: Any, scope: Scope) -> Typed:
        items = [self._expression(item, scope) for item in [node.this, *node.expressions]]
        return f"{function}({', '.join(sql for sql, _ in items)})", self._merged([kind for _, kind in items])

    def _nullif(self, node: Any, scope: Scope) -> Typed:
        (a, kind), (b, other) = self._expression(node.this, scope), self._expression(node.expression, scope)
        self._merged([kind, other])
        return f"NULLIF({a}, {b})", kind

    def _function(self, name: str, node: Any, scope: Scope) -> Typed:
        if any(value for key, value in node.args.items() if key != "this" and value):
            raise self.no(f"{name.upper()} of this form")
        a, kind = self._expression(node.this, scope)
        if kind != "float" and name in ("floor", "ceil", "round", "trunc", "sqrt", "isnan", "abs"):
            a = self.cast(a, kind, "float")
        return self.function(name, a), {"isnan": "flag", "length": "int"}.get(
            name, "text" if name in ("lower", "upper", "trim") else "float"
        )

    def _substring(self, node: Any, scope: Scope) -> Typed:
        numbers = [node.args[name] for name in ("start", "length") if node.args.get(name) is not None]
        plain = [(item.this if type(item).__name__ == "Cast" else item).this for item in numbers]
        return self.substring([self._expression(node.this, scope)[0], *plain]), "text"

    def _whole_division(self, node: Any, scope: Scope) -> Typed:
        (a, kind), (b, _) = self._expression(node.this, scope), self._expression(node.expression, scope)
        return self.whole_division(a, b, kind), kind

    def _shift(self, node: Any, scope: Scope) -> Typed:
        """Only of hashes, which are not negative: a division."""
        a = self._expression(node.this, scope)[0]
        return self.whole_division(a, str(1 << int(node.expression.this)), "int"), "int"

    def _anonymous(self, node: Any, scope: Scope) -> Typed:
        name = str(node.this).lower()
        if name == "hash":
            items = [self._as_text(*self._expression(item, scope)) for item in node.expressions]
            marked = [part for item in items for part in (item, self.text("|"))]
            return self.digest(self.joined(marked[:-1])), "int"
        if name == "date_part":
            return self.part(node.expressions[0].this, self._expression(node.expressions[1], scope)[0]), "int"
        raise self.no(f"`{'%' if name == 'fmod' else name.upper()}`")

    def _as_text(self, sql: str, kind: str) -> str:
        """A value as the hash sees it. Floats go by steps of a millionth: engines print them differently."""
        if kind == "float":
            steps = self.arithmetic("*", sql, self.constant(str(_HASH_STEPS), "float"))
            sql, kind = self.cast(self.function("floor", steps), "float", "int"), "int"
            return f"COALESCE({self.cast(sql, kind, 'text')}, '')"
        return sql if kind == "text" else self.cast(sql, kind, "text")

    def _count(self, node: Any, scope: Scope) -> Typed:
        inner = node.this
        if type(inner).__name__ == "Star":
            return "COUNT(*)", "int"
        if type(inner).__name__ == "Distinct":
            [item] = inner.expressions
            return f"COUNT(DISTINCT {self._expression(item, scope)[0]})", "int"
        return f"COUNT({self._expression(inner, scope)[0]})", "int"

    def _sum(self, node: Any, scope: Scope) -> Typed:
        a, kind = self._expression(node.this, scope)
        if kind not in ("int", "huge"):
            raise self.no("sums of floats")
        return self.sum(a), "huge"

    def sum(self, a: str) -> str:
        """An exact sum of whole numbers, wider than 64 bits."""
        return f"SUM({a})"

    def _extreme(self, function: str, node: Any, scope: Scope) -> Typed:
        a, kind = self._expression(node.this, scope)
        return f"{function}({a})", kind

    def _filter(self, node: Any, scope: Scope) -> Typed:
        a, kind = self._expression(node.this, scope)
        return f"{a} FILTER (WHERE {self._expression(node.expression.this, scope)[0]})", kind

    def _window(self, node: Any, scope: Scope) -> Typed:
        function = {"RowNumber": "row_number()", "DenseRank": "dense_rank()"}.get(type(node.this).__name__)
        if function is None:
            raise self.no("this window")
        parts = [self._expression(item, scope)[0] for item in node.args.get("partition_by") or ()]
        order = node.args["order"].expressions if node.args.get("order") else []
        by = [self.ordered(*self._expression(item.this, scope)) for item in order]
        return f"{function} OVER (PARTITION BY {', '.join(parts)}{self.window_order(by)})", "int"

    def window_order(self, by: list[str]) -> str:
        return f" ORDER BY {', '.join(by)}" if by else ""


def _with(method: Callable[..., Typed], word: str) -> Callable[[Writer, Any, Scope], Typed]:
    return lambda writer, node, scope: method(writer, word, node, scope)


_RULES: dict[str, Callable[[Writer, Any, Scope], Typed]] = {
    "Column": Writer._column,
    "Literal": Writer._literal,
    "Boolean": lambda _writer, node, _scope: ("TRUE" if node.this else "FALSE", "flag"),
    "Null": lambda _writer, _node, _scope: ("NULL", "null"),
    "Paren": lambda writer, node, scope: writer._expression(node.this, scope),
    "Cast": Writer._cast,
    "TryCast": Writer._cast,
    "Add": _with(Writer._calculate, "+"),
    "Sub": _with(Writer._calculate, "-"),
    "Mul": _with(Writer._calculate, "*"),
    "Div": _with(Writer._calculate, "/"),
    "IntDiv": Writer._whole_division,
    "BitwiseRightShift": Writer._shift,
    "Neg": Writer._negative,
    "And": _with(Writer._logic, "AND"),
    "Or": _with(Writer._logic, "OR"),
    "Not": lambda writer, node, scope: (f"(NOT {writer._expression(node.this, scope)[0]})", "flag"),
    "Is": Writer._is,
    "In": Writer._in,
    "Like": Writer._like,
    "ILike": Writer._like,
    "Case": Writer._case,
    "Coalesce": _with(Writer._several, "COALESCE"),
    "Greatest": _with(Writer._several, "GREATEST"),
    "Least": _with(Writer._several, "LEAST"),
    "Nullif": Writer._nullif,
    **{name.capitalize(): _with(Writer._function, name)
       for name in ("floor", "ceil", "round", "trunc", "sqrt", "abs", "lower", "upper", "trim", "length")},
    "IsNan": _with(Writer._function, "isnan"),
    "Substring": Writer._substring,
    "Anonymous": Writer._anonymous,
    "Count": Writer._count,
    "Sum": Writer._sum,
    "Min": _with(Writer._extreme, "MIN"),
    "Max": _with(Writer._extreme, "MAX"),
    "Filter": Writer._filter,
    "Window": Writer._window,
}  # fmt: skip
