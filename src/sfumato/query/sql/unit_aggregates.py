"""Aggregates over one unit's own rows, in subqueries that group by the unit."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sfumato.query.plan.aggregates import bounds_problem, present, sum_aggregate
from sfumato.query.plan.scalar import Scalar
from sfumato.query.sql.expressions import ExpressionCompiler
from sfumato.schema import Kind

__all__ = ["UNIT_AGGREGATES"]

Rule = Callable[[ExpressionCompiler, Any], tuple[str, Scalar]]
"""Returns the aggregate's SQL, and the public bounds of its value."""


def _unit_count(reader: ExpressionCompiler, node: Any) -> tuple[str, Scalar]:
    inner = node.this
    if type(inner).__name__ == "Star":
        sql = "COUNT(*)"
    elif type(inner).__name__ == "Distinct" and len(inner.expressions) == 1:
        sql = f"COUNT(DISTINCT {reader.read(inner.expressions[0]).sql})"
    else:
        sql = f"COUNT({reader.read(inner).sql})"
    return sql, Scalar(sql="", kind=Kind.INTEGER, low=Fraction(0))


def _unit_extreme(function: str) -> Rule:
    def rule(reader: ExpressionCompiler, node: Any) -> tuple[str, Scalar]:
        scalar = reader.number(node.this)
        x = scalar.as_double()
        known = Scalar(sql="", kind=Kind.NUMBER, low=scalar.low, high=scalar.high)
        # Zeros lose their sign: which of two equal zeros is the extreme would depend on the order of rows.
        zero = "CAST(0.0 AS DOUBLE)"
        return f"{function}(CASE WHEN {x} = {zero} THEN {zero} WHEN NOT isnan({x}) THEN {x} END)", known

    return rule


def _unit_sum(mean: bool) -> Rule:
    """Sums are of integer steps, exact in any order: a float sum could change with rows of *other* units."""

    def rule(reader: ExpressionCompiler, node: Any) -> tuple[str, Scalar]:
        scalar = reader.number(node.this)
        reason = bounds_problem(scalar)
        if reason:
            raise reader.refuse(node, reason, "Use CLIP(x, low, high) inside the aggregate.")
        measured = sum_aggregate(scalar, "TRUE")
        total = f"CAST(SUM({measured.steps}) AS DOUBLE) * CAST({float(measured.grid)!r} AS DOUBLE)"
        if not mean:
            return f"({total})", Scalar(sql="", kind=Kind.NUMBER)
        known = Scalar(sql="", kind=Kind.NUMBER, low=scalar.low, high=scalar.high)
        return f"({total}) / NULLIF(COUNT(*) FILTER (WHERE {present(scalar)}), 0)", known

    return rule


UNIT_AGGREGATES: dict[str, Rule] = {
    "Count": _unit_count,
    "Sum": _unit_sum(mean=False),
    "Avg": _unit_sum(mean=True),
    "Min": _unit_extreme("min"),
    "Max": _unit_extreme("max"),
}
