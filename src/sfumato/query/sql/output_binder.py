"""Bind what a SELECT does with noisy rows: output expressions, window functions, QUALIFY, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.query.plan.outputs import Output, Value
from sfumato.query.plan.row_steps import (
    Collapse,
    Compute,
    Frame,
    Keep,
    OrderItem,
    RowStep,
    Sort,
    Take,
    WindowCall,
    WindowColumn,
)
from sfumato.query.sql.expressions import ExpressionCompiler
from sfumato.query.sql.postprocess_rules import POST_RULES
from sfumato.query.sql.refusal import called, refuse

_MAX_OUTPUT_NODES = 4_000
_MAX_WINDOWS = 50
_RANKS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist", exp.Ntile: "ntile",
}  # fmt: skip
_SHIFTS: dict[type[exp.Expr], str] = {exp.Lag: "lag", exp.Lead: "lead"}
_TOTALS: dict[type[exp.Expr], str] = {
    exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.Count: "count", exp.Median: "median",
    exp.FirstValue: "first_value", exp.LastValue: "last_value",
}  # fmt: skip
_NUMERIC = ("sum", "avg", "median")
_SUPPORTED = (
    "Supported: + - * / %, comparisons, AND, OR, NOT, IN, BETWEEN, CASE, IF, COALESCE, NULLIF, LEAST, GREATEST, ABS, "
    "SIGN, ROUND, FLOOR, CEIL, SQRT, POWER, EXP, LN, LOG, CAST, ||, CLIP, and window functions."
)


class OutputBinder(ABC):
    """Binds the outputs of one SELECT over noisy rows. Subclasses say what names and aggregates mean there."""

    def __init__(self, text: str, reader: ExpressionCompiler, windows: int = 0) -> None:
        self.text = text
        self.reader = reader
        self.aliases: dict[str, exp.Expr] = {}
        self.families: list[str] = []
        """Families of the keys of GROUP BY."""
        self.windows = windows
        """Number of window functions so far."""
        self._computed: list[RowStep] = []
        self._nodes = 0

    def refuse(self, node: exp.Expr | None, reason: str, fix: str = "") -> Exception:
        return refuse(node, self.text, reason, fix)

    @abstractmethod
    def leaf(self, node: exp.Expr) -> Output | None:
        """An aggregate, a key or a column of the noisy rows; None for other expressions."""

    @abstractmethod
    def unknown(self, node: exp.Expr) -> Exception:
        """The refusal of an expression that no rule binds."""

    def named(self, items: Sequence[exp.Expr]) -> None:
        """Take note of the aliases of SELECT, which HAVING, ORDER BY and other items may use."""
        self.aliases = {item.alias.lower(): item.unalias() for item in items if item.alias}

    def output(self, node: exp.Expr) -> Output:
        if node is None:
            raise QueryRefused("A function of the query lacks an argument.")
        self._count(node, 1)
        if isinstance(node, exp.Paren):
            return self.output(node.this)
        if isinstance(node, exp.Window):
            return self._window(node)
        # A column of the rows comes before an alias, as in standard SQL: the alias may be about that very column.
        leaf = self.leaf(node) if isinstance(node, exp.Column) else None
        inner = self._aliased(node) if leaf is None else None
        if inner is not None:
            return self.output(inner)
        leaf = self.leaf(node) if leaf is None else leaf
        if leaf is not None:
            self._count(node, leaf.nodes - 1)
            return leaf
        if isinstance(node, exp.Literal | exp.Boolean):
            constant = self.reader.read(node).constant
            if isinstance(constant, Fraction):
                constant = int(constant) if constant.denominator == 1 and abs(constant) < 1 << 53 else float(constant)
            return Value(constant)
        if isinstance(node, exp.Null):
            return Value(None)
        rule = POST_RULES.get(type(node))
        if rule is None:
            raise self.unknown(node)
        return self._typed(node, rule(self, node))

    def _count(self, node: exp.Expr, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > _MAX_OUTPUT_NODES:
            raise self.refuse(
                node,
                "The output expressions are too large.",
                "An alias or a column of a subquery counts as the expression it stands for.",
            )

    def _typed(self, node: exp.Expr, output: Output) -> Output:
        try:
            output.family(self.families)
        except TypeError as clash:
            raise self.refuse(node, f"Values of different kinds are combined here: {clash}.") from None
        return output

    def _aliased(self, node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Column) or node.table or node.name.lower() not in self.aliases:
            return None
        inner = self.aliases[node.name.lower()]
        same = inner is node or (isinstance(inner, exp.Column) and inner.name.lower() == node.name.lower())
        return None if same else inner

    def not_applicable(self, node: exp.Expr) -> Exception:
        return self.refuse(node, f"`{called(node, self.text)}` cannot be applied to noisy values.", _SUPPORTED)

    def condition(self, node: exp.Expr) -> Output:
        condition = self.output(node)
        if condition.family(self.families) not in ("boolean", ""):
            raise self.refuse(node, "A condition is required here.")
        return condition

    # --- the clauses behind SELECT ------------------------------------------------------------------------------------

    def last_steps(self, tree: exp.Expr, outputs: Sequence[tuple[str, Output]]) -> tuple[RowStep, ...]:
        """Window functions of the outputs, QUALIFY, DISTINCT, ORDER BY and LIMIT, in the order of evaluation."""
        qualify, order = tree.args.get("qualify"), tree.args.get("order")
        held = None if qualify is None else self.condition(qualify.this)
        by = tuple(self._ordered(item, outputs) for item in order.expressions) if order is not None else ()
        steps = list(self._computed)
        if held is not None:
            steps.append(Keep(held))
        distinct = tree.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                raise self.refuse(distinct, "DISTINCT ON is not supported.", "Use QUALIFY ROW_NUMBER() OVER (...) = 1.")
            steps.append(Collapse(tuple(output for _, output in outputs)))
        if by:
            steps.append(Sort(by))
        limit, offset = (self._whole(tree.args.get(word)) for word in ("limit", "offset"))
        if limit is not None or offset is not None:
            steps.append(Take(limit, offset or 0))
        return tuple(steps)

    def _whole(self, node: exp.Expr | None) -> int | None:
        if node is None:
            return None
        inner = node.expression
        if not isinstance(inner, exp.Literal) or inner.is_string or not inner.this.isdigit() or node.args.get("offset"):
            raise self.refuse(node, f"{node.key.upper()} must be a whole number constant.")
        return int(inner.this)

    def _ordered(self, node: exp.Expr, outputs: Sequence[tuple[str, Output]] = ()) -> OrderItem:
        if node.args.get("nulls_first"):
            raise self.refuse(node, "Missing values come last in ORDER BY.", "Leave out NULLS FIRST.")
        inner, descending = node.this, bool(node.args.get("desc"))
        if outputs and isinstance(inner, exp.Literal) and not inner.is_string:
            if inner.this.isdigit() and 1 <= int(inner.this) <= len(outputs):
                return outputs[int(inner.this) - 1][1], descending
            raise self.refuse(node, "SELECT has no column with this number.")
        if isinstance(inner, exp.Column) and not inner.table:
            same = [output for name, output in outputs if name.lower() == inner.name.lower()]
            if same:
                return same[0], descending
        return self.output(inner), descending

    # --- window functions ---------------------------------------------------------------------------------------------

    def computed(self, call: WindowCall, kind: str, steps: list[RowStep]) -> WindowColumn:
        """The column of a window function, with the step that computes it added to ``steps``."""
        for step in steps:
            if isinstance(step, Compute) and step.call == call:
                return WindowColumn(step.index, kind)
        if self.windows >= _MAX_WINDOWS:
            raise self.refuse(None, f"A query has at most {_MAX_WINDOWS} window functions.")
        self.windows += 1
        steps.append(Compute(self.windows, call))
        return WindowColumn(self.windows, kind)

    def _window(self, node: exp.Expr) -> Output:
        strange = [name for name, value in node.args.items()
                   if value and name not in ("this", "partition_by", "order", "spec", "over")]  # fmt: skip
        if strange:
            raise self.refuse(node, "Named windows and FILTER are not supported in OVER.", "Write OVER (ORDER BY ...).")
        partition = tuple(self.output(item) for item in node.args.get("partition_by") or ())
        order = node.args.get("order")
        by = tuple(self._ordered(item) for item in order.expressions) if order is not None else ()
        call, kind = self.window_call(node.this)
        spec = node.args.get("spec")
        frame = self._frame(spec, node) if spec is not None else None
        if frame is None and by and call.function in _TOTALS.values():
            frame = Frame()
        if call.function in _RANKS.values() and not by:
            raise self.refuse(node, "A rank needs an order.", "Use OVER (ORDER BY column).")
        made = WindowCall(function=call.function, args=call.args, offset=call.offset, partition=partition, order=by,
                          frame=frame)  # fmt: skip
        return self.computed(made, kind, self._computed)

    def window_call(self, node: exp.Expr) -> tuple[WindowCall, str]:
        """A window function without its window, and the family of its result."""
        kind = type(node)
        if kind in _RANKS:
            size = 1
            if kind is exp.Ntile:
                size = self._constant(node.this, node)
            return WindowCall(function=_RANKS[kind], offset=max(size, 1)), "number"
        if kind in _SHIFTS:
            value = self.output(node.this)
            offset = node.args.get("offset")
            default = node.args.get("default")
            args = (value,) if default is None else (value, self.output(default))
            family = self._typed(node, _Same(args)).family(self.families)
            step = 1 if offset is None else self._constant(offset, node)
            return WindowCall(function=_SHIFTS[kind], args=args, offset=step), family
        if kind in _TOTALS:
            return self._total(node, _TOTALS[kind])
        raise self.refuse(
            node,
            f"`{called(node, self.text)}` is not a supported window function.",
            "Supported: ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, FIRST_VALUE, "
            "LAST_VALUE, SUM, AVG, MIN, MAX, COUNT, MEDIAN.",
        )

    def _total(self, node: exp.Expr, function: str) -> tuple[WindowCall, str]:
        inner = node.this
        if node.args.get("expressions") or isinstance(inner, exp.Distinct):
            raise self.refuse(node, f"{called(node, self.text)} takes one value here, without DISTINCT.")
        if function == "count" and (inner is None or isinstance(inner, exp.Star)):
            return WindowCall(function="count"), "number"
        if inner is None:
            raise self.refuse(node, f"{called(node, self.text)} needs the column that it is about.")
        value = self.output(inner)
        family = value.family(self.families)
        if function in _NUMERIC and family not in ("number", ""):
            raise self.refuse(node, f"{called(node, self.text)} needs a number, not a {family}.")
        return WindowCall(function=function, args=(value,)), "number" if function == "count" else family

    def _constant(self, node: object, place: exp.Expr) -> int:
        if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit() or int(node.this) > 10**6:
            raise self.refuse(place, "This function needs a whole number constant.")
        return int(node.this)

    def _frame(self, spec: exp.Expr, node: exp.Expr) -> Frame:
        rows = str(spec.args.get("kind")).upper() == "ROWS"
        start = self._edge(spec.args.get("start"), spec.args.get("start_side"), node)
        end = self._edge(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), node)
        if spec.args.get("exclude") or str(spec.args.get("kind")).upper() == "GROUPS":
            raise self.refuse(node, "A frame is ROWS or RANGE, without EXCLUDE.")
        if not rows and not (start in (None, 0) and end in (None, 0)):
            raise self.refuse(node, "RANGE accepts UNBOUNDED and CURRENT ROW.", "Use ROWS BETWEEN 2 PRECEDING AND ...")
        return Frame(start=start, end=end, rows=rows)

    def _edge(self, edge: exp.Expr | str | None, side: str | None, node: exp.Expr) -> int | None:
        if edge == "UNBOUNDED":
            return None
        if edge == "CURRENT ROW":
            return 0
        size = self._constant(edge, node)
        return -size if str(side).upper() == "PRECEDING" else size


class _Same(Output):
    """Values that must be of one family, for the check of that."""

    def __init__(self, args: tuple[Output, ...]) -> None:
        self._args = args

    def family(self, keys: Sequence[str]) -> str:
        found = {name for name in (arg.family(keys) for arg in self._args) if name}
        if len(found) > 1:
            raise TypeError(" and ".join(sorted(found)))
        return found.pop() if found else ""
