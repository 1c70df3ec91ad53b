"""Bind a SELECT over the noisy rows of another: ``SELECT ... FROM (SELECT ward, COUNT(*) AS n ...) WHERE n > 9``.

Names stand for the outputs of the inner query, so that an expression over them is one over noisy numbers, with the
interval that it would have in the inner SELECT. Aggregates of noisy rows are window functions over their group.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.query.plan.outputs import Output
from sfumato.query.plan.row_steps import Collapse, Keep, RowStep
from sfumato.query.sql.aggregate_calls import AggregateCompiler
from sfumato.query.sql.expressions import ExpressionCompiler
from sfumato.query.sql.histograms import is_histogram
from sfumato.query.sql.output_binder import OutputBinder
from sfumato.wording import did_you_mean

_ALLOWED = {"expressions", "from_", "where", "group", "having", "qualify", "distinct", "order", "limit", "offset",
            "with_"}  # fmt: skip


class ReleasedRows:
    """The noisy rows of a query: named outputs, and the steps that made the rows."""

    def __init__(
        self, outputs: Sequence[tuple[str, Output]], steps: Sequence[RowStep], families: list[str], windows: int,
        joined: Sequence[tuple[str, str, Output]] = (),
    ) -> None:  # fmt: skip
        self.outputs = tuple(outputs)
        self.steps = tuple(steps)
        self.families = families
        self.windows = windows
        self.joined = tuple(joined)
        """Columns of further tables in FROM, each with the alias of its table."""

    def find(self, table: str, own: str, name: str) -> list[Output]:
        """The outputs of a name, of one table or of all. ``own`` is the alias of the first table."""
        mine = [output for known, output in self.outputs if known.lower() == name.lower() and table in ("", own)]
        others = [o for a, known, o in self.joined if known.lower() == name.lower() and table in ("", a)]
        return mine + others


class _ReleasedBinder(OutputBinder):
    def __init__(self, text: str, reader: ExpressionCompiler, inner: ReleasedRows, alias: str) -> None:
        super().__init__(text, reader, inner.windows)
        self.families = inner.families
        self._inner = inner
        self._alias = alias.lower()
        self._grouping: tuple[Output, ...] | None = None
        self._totals: list[RowStep] = []
        self._inside = False
        """Whether the argument of an aggregate is bound, which is about single rows."""

    def leaf(self, node: exp.Expr) -> Output | None:
        if AggregateCompiler.is_aggregate(node):
            return self._aggregate(node)
        grouped = self._grouping is not None and not self._inside
        if grouped and (key := self._key(node)) is not None:
            return key
        if not isinstance(node, exp.Column) or self._aliased(node) is not None:
            return None
        output = self._column(node)
        if grouped:
            raise self.refuse(
                node,
                f"`{node.name}` is neither an aggregate nor in GROUP BY.",
                "Use an aggregate, or add it to GROUP BY.",
            )
        return output

    def unknown(self, node: exp.Expr) -> Exception:
        return self.not_applicable(node)

    def _aliased(self, node: exp.Expr) -> exp.Expr | None:
        """Columns of the inner query come before aliases of this one."""
        inner = isinstance(node, exp.Column) and self._inner.find(node.text("table").lower(), self._alias, node.name)
        return None if inner else super()._aliased(node)

    def _column(self, node: exp.Expr) -> Output:
        table = node.text("table").lower()
        if table not in ("", self._alias, *(alias for alias, _, _ in self._inner.joined)):
            raise self.refuse(node, f"There is no table `{node.text('table')}` here.")
        found = self._inner.find(table, self._alias, node.name)
        if not found:
            names = [name for name, _ in self._inner.outputs]
            raise self.refuse(node, f"There is no column `{node.name}` here.", did_you_mean(node.name, names))
        if len(found) > 1:
            raise self.refuse(node, f"More than one column is called `{node.name}`.", "Use different aliases.")
        return found[0]

    def _key(self, node: exp.Expr) -> Output | None:
        assert self._grouping is not None
        self._inside = True
        try:
            output = self.output(node) if not isinstance(node, exp.Literal) else None
        except QueryRefused:
            return None
        finally:
            self._inside = False
        return output if output in self._grouping else None

    def _aggregate(self, node: exp.Expr) -> Output:
        if self._grouping is None or self._inside:
            raise self.refuse(node, "An aggregate cannot be used here.", "Use it in SELECT, HAVING or ORDER BY.")
        self._inside = True
        try:
            call, kind = self.window_call(node)
        finally:
            self._inside = False
        made = type(call)(function=call.function, args=call.args, partition=self._grouping)
        return self.computed(made, kind, self._totals)

    def bind(self, tree: exp.Expr) -> ReleasedRows:
        strange = [name for name, value in tree.args.items() if value and name not in _ALLOWED]
        if strange:
            word = {"joins": "JOIN"}.get(strange[0], strange[0].rstrip("_").replace("_", " ").upper())
            raise self.refuse(
                tree,
                f"{word} is not supported for a query about aggregates.",
                "Join tables inside the aggregate query, or use COUNT(*) FILTER (WHERE ...) in one query.",
            )
        steps: list[RowStep] = []
        where, having, group = (tree.args.get(word) for word in ("where", "having", "group"))
        items = self._expanded(tree.expressions)
        if where is not None:
            steps.append(Keep(self.condition(where.this)))
        self.named([item for item in items if not isinstance(item, tuple)])
        if group is not None:
            if any(value for name, value in group.args.items() if value and name != "expressions"):
                raise self.refuse(group, "GROUP BY accepts columns and expressions here.")
            self._grouping = tuple(self.output(self._numbered(item, items)) for item in group.expressions)
        elif having is not None or any(has_aggregate(item) for item in items if not isinstance(item, tuple)):
            self._grouping = ()
        held = None if having is None else self.condition(having.this)
        outputs = tuple(
            item if isinstance(item, tuple) else (title(item), self.output(item.unalias())) for item in items
        )
        last = self.last_steps(tree, outputs)
        if self._grouping is not None:
            steps += [*self._totals, Collapse(self._grouping)]
        if held is not None:
            steps.append(Keep(held))
        return ReleasedRows(outputs, (*self._inner.steps, *steps, *last), self.families, self.windows)

    def _expanded(self, items: Sequence[exp.Expr]) -> list[exp.Expr | tuple[str, Output]]:
        found: list[exp.Expr | tuple[str, Output]] = []
        for item in items:
            if isinstance(item, exp.Star | exp.Column) and item.is_star:
                if any(value for name, value in item.args.items() if value and name not in ("this", "table")):
                    raise self.refuse(item, "Only a plain * is supported.")
                table = item.table.lower() if isinstance(item, exp.Column) else ""
                found += self._inner.outputs if table in ("", self._alias) else ()
                found += [(n, o) for a, n, o in self._inner.joined if table == a or (not table and a.isidentifier())]
            else:
                found.append(item)
        return found

    def _numbered(self, node: exp.Expr, items: Sequence[exp.Expr | tuple[str, Output]]) -> exp.Expr:
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            place = int(node.this)
            item = items[place - 1] if 1 <= place <= len(items) else None
            if isinstance(item, exp.Expr):
                return item.unalias()
            raise self.refuse(node, "SELECT has no column with this number.")
        return node


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate that is no window function."""
    return any(
        (AggregateCompiler.is_aggregate(child) or is_histogram(child)) and not isinstance(child.parent, exp.Window)
        for child in node.walk()
    )


def title(item: exp.Expr) -> str:
    """The name of an item of SELECT."""
    if item.alias:
        return str(item.alias)
    return str(item.name) if isinstance(item, exp.Column) else str(item.sql(dialect="duckdb"))[:80]


def bind_released(tree: exp.Expr, inner: ReleasedRows, alias: str, reader: ExpressionCompiler) -> ReleasedRows:
    """The rows of a SELECT over noisy rows. ``alias`` names these in the query."""
    return _ReleasedBinder(reader.text, reader, inner, alias).bind(tree)
