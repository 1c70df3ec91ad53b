"""Translation of expressions: every kind of node that prepared statements contain, with the type of its value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from sfumato.engines.dialect import SqlDialect
from sfumato.engines.interval_analysis import Size, fits, size
from sfumato.engines.text_patterns import in_text

__all__ = ["UNREADABLE", "Columns", "Expressions", "Scope", "Typed"]

Columns = dict[str, str]
"""Type by name: int, huge (more than 64 bits), float, text, date, time, flag, null; of a stored table also others that
only ``cast`` knows. A text of the shape that casts need is an ``int in text``, and so on; a float that surely fits 64
bits is a ``small float``."""
Scope = list[tuple[str, Columns]]
Typed = tuple[str, str]

_TYPES = {
    "BIGINT": "int", "INT": "int", "INT128": "huge", "DOUBLE": "float", "VARCHAR": "text", "TEXT": "text",
    "DATE": "date", "TIMESTAMP": "time", "TIMESTAMPNTZ": "time", "BOOLEAN": "flag",
}  # fmt: skip
_NUMBERS = ("int", "huge", "float")
_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_HASH_STEPS = 1 << 20
UNREADABLE = "unreadable"
"""The type of a stored column that this engine cannot read as it was declared."""


class Expressions(SqlDialect):
    """Translates expressions by one rule per kind of node. A node without a rule is refused."""

    _tables: Mapping[str, Columns]

    def expression(self, node: Any, scope: Scope) -> Typed:
        kind = type(node).__name__
        rule = _RULES.get(kind)
        if kind in _COMPARISONS:
            return self._compare(_COMPARISONS[kind], node, scope)
        if rule is None:
            raise self.no(f"`{node.sql_name() if hasattr(node, 'sql_name') else node.key.upper()}`")
        return rule(self, node, scope)

    def merged(self, kinds: list[str]) -> str:
        distinct = {kind for kind in kinds if kind != "null"}
        if len(distinct) <= 1:
            # ``str`` drops the bounds of a single column, which do not hold for the merged values
            return str(distinct.pop()) if distinct else "null"
        if distinct <= set(_NUMBERS):
            return "float" if "float" in distinct else "huge"
        raise self.no("with values of mixed kinds")

    def _compare(self, sign: str, node: Any, scope: Scope) -> Typed:
        (a, one), (b, two) = self.expression(node.this, scope), self.expression(node.expression, scope)
        kind = self.merged([one, two])
        if sign not in ("=", "<>"):
            a, b = self.ordered(a, kind), self.ordered(b, kind)
        return f"({a} {sign} {b})", "flag"

    def kind_of(self, node: Any, scope: Scope) -> str | None:
        columns = (known for alias, known in scope if (not node.table or node.table == alias) and node.name in known)
        return next((known[node.name] for known in columns), None)

    def is_stored(self, node: Any, scope: Scope) -> bool:
        """Whether a column belongs to a stored table and not to a subquery."""
        columns = (known for alias, known in scope if (not node.table or node.table == alias) and node.name in known)
        return any(next(columns, None) is table for table in self._tables.values())

    def _column(self, node: Any, scope: Scope) -> Typed:
        kind = self.kind_of(node, scope)
        if kind is None:
            raise self.no("with this column")
        if kind == UNREADABLE:
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
        sql, kind = self.expression(inner, scope)
        if kind == "text" and to != "text":
            return self.read_stored(sql, to), to
        if (kind, to) == ("float", "int") and (self._size(inner, scope) or (math.inf,))[0] < 2.0**62:
            kind = "small float"
        return self.cast(sql, kind, to), to

    def _shaped(self, node: Any, scope: Scope) -> Typed:
        a, kind = self.expression(node.this, scope)
        to = in_text(node.expression.this)
        if to is None or kind != "text":
            raise self.no("with this pattern")
        return self.shaped(a, node.expression.this), f"{to} in text"

    def _modulo(self, node: Any, scope: Scope) -> Typed:
        (a, one), (b, two) = self.expression(node.this, scope), self.expression(node.expression, scope)
        if (one, two) == ("int", "int"):
            return f"({a} % {b})", "int"
        if (one, two) == ("float", "float"):
            return self.modulo(a, b), "float"
        raise self.no("`%` of these values")

    def _round(self, node: Any, scope: Scope) -> Typed:
        if node.args.get("decimals") is None:
            return self._function("round", node, scope)
        a, kind = self.expression(node.this, scope)
        return self.round_to(a if kind == "float" else self.cast(a, kind, "float"), int(node.args["decimals"].this)), (
            "float"
        )

    def _trim(self, node: Any, scope: Scope) -> Typed:
        """TRIM of blanks; other characters are refused."""
        if getattr(node.args.get("expression"), "this", " ") != " ":
            raise self.no("TRIM of this form")
        return self.function("trim", self.expression(node.this, scope)[0]), "text"

    def _calculate(self, sign: str, node: Any, scope: Scope) -> Typed:
        from sqlglot import exp

        (a, one), (b, two) = self.expression(node.this, scope), self.expression(node.expression, scope)
        kind = self.merged([one, two])
        if kind not in _NUMBERS:
            raise self.no("this arithmetic")
        sizes = self._size(node.this, scope), self._size(node.expression, scope)
        if kind != "float":
            if sign == "/":
                raise self.no("this division")
            if kind == "huge" and sign == "*" and sizes[0] and sizes[1] and sizes[0][0] * sizes[1][0] < 2.0**62:
                plain = self._narrow(node.this, scope), self._narrow(node.expression, scope)
                if plain[0] and plain[1]:
                    return f"({plain[0]} * {plain[1]})", "int"
            return f"({a} {sign} {b})", kind
        a, b = (sql if own == "float" else self.cast(sql, own, "float") for sql, own in ((a, one), (b, two)))
        if node.find(exp.AggFunc) is not None:
            # The sum of one unit, in whole steps: it cannot overflow unless the bounds are near the largest float.
            large = [item for item in node.find_all(exp.Literal) if not item.is_string and float(item.this) > 1e280]
            if large:
                raise self.no("sums of numbers as large as these")
            return f"({a} {sign} {b})", "float"
        if sizes[0] is not None and sizes[1] is not None and fits(type(node).__name__, sizes[0], sizes[1]):
            return f"({a} {sign} {b})", "float"
        return self.arithmetic(sign, a, b), "float"

    def _narrow(self, node: Any, scope: Scope) -> str | None:
        """A whole number without the cast that makes it wide, if it fits 64 bits without it."""
        inner = node.this if type(node).__name__ == "Cast" and _TYPES.get(node.args["to"].this.name) == "huge" else node
        sql, kind = self.expression(inner, scope)
        return sql if kind == "int" else None

    def _size(self, node: Any, scope: Scope) -> Size | None:
        return size(node, lambda column: self.kind_of(column, scope))

    def _negative(self, node: Any, scope: Scope) -> Typed:
        a, kind = self.expression(node.this, scope)
        return f"(-{a})", kind

    def _logic(self, sign: str, node: Any, scope: Scope) -> Typed:
        a, b = self.expression(node.this, scope)[0], self.expression(node.expression, scope)[0]
        return f"({a} {sign} {b})", "flag"

    def _is(self, node: Any, scope: Scope) -> Typed:
        a = self.expression(node.this, scope)[0]
        return f"({a} IS {self.expression(node.expression, scope)[0]})", "flag"

    def _in(self, node: Any, scope: Scope) -> Typed:
        a, kind = self.expression(node.this, scope)
        items = [self.expression(item, scope) for item in node.expressions]
        self.merged([kind, *(own for _, own in items)])
        return f"({a} IN ({', '.join(sql for sql, _ in items)}))", "flag"

    def _like(self, node: Any, scope: Scope) -> Typed:
        a = self.expression(node.this, scope)[0]
        return self.like(a, node.expression.this, fold=type(node).__name__ == "ILike"), "flag"

    def _case(self, node: Any, scope: Scope) -> Typed:
        branches = [(self.expression(item.this, scope)[0], self.expression(item.args["true"], scope))
                    for item in node.args["ifs"]]  # fmt: skip
        default = self.expression(node.args["default"], scope) if node.args.get("default") else ("NULL", "null")
        kind = self.merged([*(result[1] for _, result in branches), default[1]])
        whens = " ".join(f"WHEN {test} THEN {result}" for test, (result, _) in branches)
        return f"(CASE {whens} ELSE {default[0]} END)", kind

    def _several(self, function: str, node: Any, scope: Scope) -> Typed:
        items = [self.expression(item, scope) for item in [node.this, *node.expressions]]
        return f"{function}({', '.join(sql for sql, _ in items)})", self.merged([kind for _, kind in items])

    def _nullif(self, node: Any, scope: Scope) -> Typed:
        (a, kind), (b, other) = self.expression(node.this, scope), self.expression(node.expression, scope)
        self.merged([kind, other])
        return f"NULLIF({a}, {b})", kind

    def _function(self, name: str, node: Any, scope: Scope) -> Typed:
        if any(value for key, value in node.args.items() if key != "this" and value):
            raise self.no(f"{name.upper()} of this form")
        a, kind = self.expression(node.this, scope)
        if kind != "float" and name in ("floor", "ceil", "round", "trunc", "sqrt", "isnan", "abs"):
            a = self.cast(a, kind, "float")
        small = (
            name in ("floor", "ceil", "round", "trunc") and (self._size(node.this, scope) or (math.inf,))[0] < 2.0**52
        )
        return self.function(name, a, small=small), {"isnan": "flag", "length": "int"}.get(
            name, "text" if name in ("lower", "upper") else "float"
        )

    def _substring(self, node: Any, scope: Scope) -> Typed:
        numbers = [node.args[name] for name in ("start", "length") if node.args.get(name) is not None]
        plain = [(item.this if type(item).__name__ == "Cast" else item).this for item in numbers]
        return self.substring([self.expression(node.this, scope)[0], *plain]), "text"

    def _whole_division(self, node: Any, scope: Scope) -> Typed:
        (a, kind), (b, _) = self.expression(node.this, scope), self.expression(node.expression, scope)
        return self.whole_division(a, b, kind), kind

    def _shift(self, node: Any, scope: Scope) -> Typed:
        """Right shift as a division. It is applied only to hashes, which are not negative."""
        a = self.expression(node.this, scope)[0]
        return self.whole_division(a, str(1 << int(node.expression.this)), "int"), "int"

    def _anonymous(self, node: Any, scope: Scope) -> Typed:
        name = str(node.this).lower()
        if name == "hash":
            items = [self._as_text(*self.expression(item, scope)) for item in node.expressions]
            marked = [part for item in items for part in (item, self.text("|"))]
            return self.digest(self.joined(marked[:-1])), "int"
        if name == "date_part":
            return self.part(node.expressions[0].this, self.expression(node.expressions[1], scope)[0]), "int"
        raise self.no(f"`{name.upper()}`")

    def _as_text(self, sql: str, kind: str) -> str:
        """The text of a value that is hashed. Floats are rounded down to multiples of 2**-20: engines print them
        differently."""
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
            return f"COUNT(DISTINCT {self.expression(item, scope)[0]})", "int"
        return f"COUNT({self.expression(inner, scope)[0]})", "int"

    def _sum(self, node: Any, scope: Scope) -> Typed:
        a, kind = self.expression(node.this, scope)
        if kind not in ("int", "huge"):
            raise self.no("sums of floats")
        small = (self._size(node.this, scope) or (math.inf,))[0] < 2.0**24
        return self.sum(a, small=small), "huge"

    def _extreme(self, function: str, node: Any, scope: Scope) -> Typed:
        a, kind = self.expression(node.this, scope)
        return f"{function}({a})", kind

    def _filter(self, node: Any, scope: Scope) -> Typed:
        a, kind = self.expression(node.this, scope)
        return f"{a} FILTER (WHERE {self.expression(node.expression.this, scope)[0]})", kind

    def _window(self, node: Any, scope: Scope) -> Typed:
        function = {"RowNumber": "row_number()", "DenseRank": "dense_rank()"}.get(type(node.this).__name__)
        if function is None:
            raise self.no("this window")
        parts = [self.expression(item, scope)[0] for item in node.args.get("partition_by") or ()]
        order = node.args["order"].expressions if node.args.get("order") else []
        by = [self.ordered(*self.expression(item.this, scope)) for item in order]
        return f"{function} OVER (PARTITION BY {', '.join(parts)}{self.window_order(by)})", "int"


def _with(method: Callable[..., Typed], word: str) -> Callable[[Expressions, Any, Scope], Typed]:
    return lambda writer, node, scope: method(writer, word, node, scope)


_RULES: dict[str, Callable[[Expressions, Any, Scope], Typed]] = {
    "Column": lambda writer, node, scope: writer._column(node, scope),  # dialects have their own
    "Literal": Expressions._literal,
    "Boolean": lambda _writer, node, _scope: ("TRUE" if node.this else "FALSE", "flag"),
    "Null": lambda _writer, _node, _scope: ("NULL", "null"),
    "Paren": lambda writer, node, scope: writer.expression(node.this, scope),
    "Cast": Expressions._cast,
    "TryCast": Expressions._cast,
    "Add": _with(Expressions._calculate, "+"),
    "Sub": _with(Expressions._calculate, "-"),
    "Mul": _with(Expressions._calculate, "*"),
    "Div": _with(Expressions._calculate, "/"),
    "Mod": Expressions._modulo,
    "IntDiv": Expressions._whole_division,
    "BitwiseRightShift": Expressions._shift,
    "Neg": Expressions._negative,
    "And": _with(Expressions._logic, "AND"),
    "Or": _with(Expressions._logic, "OR"),
    "Not": lambda writer, node, scope: (f"(NOT {writer.expression(node.this, scope)[0]})", "flag"),
    "Is": Expressions._is,
    "In": Expressions._in,
    "Like": Expressions._like,
    "ILike": Expressions._like,
    "Case": Expressions._case,
    "Coalesce": _with(Expressions._several, "COALESCE"),
    "Greatest": _with(Expressions._several, "GREATEST"),
    "Least": _with(Expressions._several, "LEAST"),
    "Nullif": Expressions._nullif,
    **{name.capitalize(): _with(Expressions._function, name)
       for name in ("floor", "ceil", "trunc", "sqrt", "abs", "lower", "upper", "length")},
    "Round": Expressions._round,
    "Trim": Expressions._trim,
    "RegexpExtract": Expressions._shaped,
    "IsNan": _with(Expressions._function, "isnan"),
    "Substring": Expressions._substring,
    "Anonymous": Expressions._anonymous,
    "Count": Expressions._count,
    "Sum": Expressions._sum,
    "Min": _with(Expressions._extreme, "MIN"),
    "Max": _with(Expressions._extreme, "MAX"),
    "Filter": Expressions._filter,
    "Window": Expressions._window,
}  # fmt: skip
