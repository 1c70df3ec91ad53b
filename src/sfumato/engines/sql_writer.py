"""SQL writer: translates prepared statements from DuckDB's dialect into that of another engine, with equal results.

A plain transpilation is not enough: engines differ in rounding, text order, overflow and failures. The writer knows
every node that prepared statements contain and the type of every value. It refuses unknown nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.engines.expressions import UNREADABLE, Columns, Expressions, Scope, Typed
from sfumato.engines.interval_analysis import Sized
from sfumato.errors import QueryRefused

__all__ = ["Columns", "Writer"]

_CLAUSES = {"expressions", "from_", "joins", "where", "group", "with_", "distinct", "order"}


class Writer(Expressions):
    """Writer of one dialect. Subclasses write values and functions; this class assembles statements."""

    def __init__(self, tables: Mapping[str, Columns], names: Mapping[str, str] | None = None) -> None:
        self._tables = tables
        self._names = names or {}
        self._aliases = 0

    def write(self, sql: str) -> str:
        """The statement in this dialect. Raises QueryRefused if it cannot be translated."""
        import sqlglot

        try:
            trees = sqlglot.parse(sql, read="duckdb")
        except sqlglot.errors.SqlglotError:
            raise self.no("this statement") from None
        if len(trees) != 1 or trees[0] is None:
            raise self.no("this statement")
        self._aliases = 0
        written, columns = self._query(trees[0], {})
        if UNREADABLE in columns.values():
            raise self.no("with a column whose stored type is not the declared one")
        return written

    # --- statements -----------------------------------------------------------------------------------------------

    def _query(self, node: Any, views: Mapping[str, Columns]) -> tuple[str, Columns]:
        match type(node).__name__:
            case "Subquery" | "Paren":
                return self._query(node.this, views)
            case "Union" if not node.args.get("distinct"):
                one, columns = self._query(node.this, views)
                two, others = self._query(node.expression, views)
                kinds = [self.merged([a, b]) for a, b in zip(columns.values(), others.values(), strict=True)]
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
                text += f" ON {self.expression(join.args['on'], scope)[0]}"
        items, columns = self._items(node.expressions, scope)
        if UNREADABLE in columns.values() and (node.args.get("group") or node.args.get("distinct")):
            raise self.no("with a column whose stored type is not the declared one")
        sql = f"SELECT {'DISTINCT ' if node.args.get('distinct') else ''}{', '.join(items)}"
        sql += f" FROM {text}" if text else ""
        if node.args.get("where"):
            sql += f" WHERE {self.expression(node.args['where'].this, scope)[0]}"
        if node.args.get("group"):
            sql += f" GROUP BY {', '.join(self.expression(item, scope)[0] for item in node.args['group'].expressions)}"
        if node.args.get("order"):
            by = [self.ordered(*self.expression(item.this, scope)) for item in node.args["order"].expressions]
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
            columns[title] = Sized.of(kind, self._size(item.unalias(), scope) if kind == "int" else None)
        return items, columns

    def _item(self, node: Any, scope: Scope) -> Typed:
        """One column of a SELECT. A stored column that cannot be read as declared fails only where it is used."""
        if type(node).__name__ == "Column" and self.kind_of(node, scope) == UNREADABLE:
            return "NULL", UNREADABLE
        try:
            return self.expression(node, scope)
        except QueryRefused:
            if type(node).__name__ == "TryCast" and type(node.this).__name__ == "Column" and len(scope) == 1:
                return "NULL", UNREADABLE
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
                rows = [[self.expression(item, []) for item in row.expressions] for row in node.expressions]
                names = [column.name for column in node.args["alias"].columns]
                kinds = [self.merged([row[i][1] for row in rows]) for i in range(len(names))]
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
