"""Bind window functions over private rows: ROW_NUMBER, LAG and LEAD with PARTITION BY the privacy unit."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from sfumato.dataset import Kind
from sfumato.engines.expressions import ColumnRef
from sfumato.query.plan.scalar import Scalar
from sfumato.query.plan.unit_nodes import UnitWindow
from sfumato.query.sql.expressions import ExpressionCompiler
from sfumato.query.sql.refusal import called

_HINT = "Use ROW_NUMBER() OVER (PARTITION BY unit ORDER BY column)."


def unit_window(node: exp.Expr, reader: ExpressionCompiler) -> tuple[UnitWindow, Scalar]:
    """A window function over the rows of one unit, and its value's public bounds."""
    strange = [
        name for name, value in node.args.items() if value and name not in ("this", "partition_by", "order", "over")
    ]
    if strange:
        raise reader.refuse(node, "Frames and named windows are not supported over private rows.", _HINT)
    partition = [reader.read(item) for item in node.args.get("partition_by") or ()]
    if not any(scalar.unit for scalar in partition):
        raise reader.refuse(node, "A window function over private rows is partitioned by the privacy unit.", _HINT)
    order = node.args.get("order")
    if order is None:
        raise reader.refuse(node, "A window function over private rows needs an order.", _HINT)
    by = []
    for item in order.expressions:
        if item.args.get("nulls_first"):
            raise reader.refuse(item, "Missing values come last in ORDER BY.", "Leave out NULLS FIRST.")
        by.append((reader.read(item.this), bool(item.args.get("desc"))))
    further = tuple(scalar for scalar in partition if not scalar.unit)
    call = node.this
    if isinstance(call, exp.RowNumber):
        window = UnitWindow(value=None, partition=further, order=tuple(by))
        return window, Scalar(node=ColumnRef("", "int"), kind=Kind.INTEGER, low=Fraction(1))
    if not isinstance(call, exp.Lag | exp.Lead):
        raise reader.refuse(
            node,
            f"`{called(call, reader.text)}` is not supported over private rows.",
            "Supported: ROW_NUMBER, LAG and LEAD; or GROUP BY the unit in a subquery.",
        )
    if call.args.get("default") is not None:
        raise reader.refuse(node, f"{called(call, reader.text)} takes no default here.", "Use COALESCE.")
    offset = reader.read(call.args["offset"]).constant if call.args.get("offset") is not None else Fraction(1)
    if offset not in range(1, 1_000):
        raise reader.refuse(node, "The offset must be a constant from 1 to 999.")
    value = reader.read(call.this)
    sign = 1 if isinstance(call, exp.Lag) else -1
    window = UnitWindow(value=value, partition=further, order=tuple(by), offset=sign * int(offset))
    return window, value.plain(value.node)
