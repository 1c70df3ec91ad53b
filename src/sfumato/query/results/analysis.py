"""Privacy analysis of a plan as text, for reviewers: the tree of rows, then every measured number with its bounds.

Each node states what it does to the rows of one unit; each measurement states its sensitivity, its mechanism and its
loss, by both computations. The text depends on the query and the public catalog only.
"""

from __future__ import annotations

from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.expressions import Expression
from sfumato.query.plan.first_rows import FirstRows
from sfumato.query.plan.loss_check import second_loss
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.relational import Filter, GroupByUnit, PlanNode, Project, PublicJoin, Scan, UnionAll, UnitJoin
from sfumato.query.plan.unit_nodes import SemiJoin, WindowByUnit

_WIDEST = 100


def analysis(plan: NoisePlan) -> str:
    """The analysis of a plan, one line per node and per measurement."""
    query = plan.query
    lines = [
        f"Cost {plan.cost}; contributions: {plan.bounding}, rows {plan.rows}, groups {plan.groups}",
        *(_measurement(plan, place) for place in range(len(plan.measurements))),
    ]
    for i, key in enumerate(query.keys):
        values = "private" if key.values is None else f"{len(key.values)} public values"
        lines.append(f"Key k{i}: {_written(key.scalar.node)}: {values}")
    if query.possible is not None:
        lines.append(f"Groups: {len(query.possible)} of {query.combinations} combinations can have rows")
    return "\n".join([*lines, *_tree(query.rows, 0)])


def _measurement(plan: NoisePlan, place: int) -> str:
    measurement = plan.measurements[place]
    if measurement.aggregate is None:
        what = "Partition selection"
    else:
        aggregate = plan.query.aggregates[measurement.aggregate]
        parts = f" x {measurement.parts}" if measurement.parts > 1 else ""
        moved = aggregate.sensitivity(plan.rows)
        what = f"{aggregate.described(_written)}{parts}; one unit in one group moves it by {moved}"
    first, second = measurement.loss, second_loss(plan, measurement)
    return (
        f"{what}; distance {measurement.sensitivity}; {measurement.mechanism.part_name()}; "
        f"loss {first}, computed again {second}"
    )


def _tree(node: PlanNode, depth: int) -> list[str]:
    rows = f"copies of a row <= {node.copies}" if node.by_row else (
        f"unit rows x <= {node.max_row_multiplicity}, tables combined {node.unbounded_joins}"
    )  # fmt: skip
    line = f"{'  ' * depth}{_node(node)}  [{rows}]"
    return [line, *(part for child in node.children() for part in _tree(child, depth + 1))]


def _node(node: PlanNode) -> str:
    match node:
        case Scan(table=table, unit_column=unit):
            return f"Scan {table}, unit {unit or 'each row'}"
        case Filter(condition=condition):
            return f"Filter {_written(condition.node)}"
        case Project(items=items):
            return f"Project {', '.join(f'{name} = {_written(scalar.node)}' for name, scalar in items)}"
        case PublicJoin(table=table, outer=outer):
            return f"PublicJoin {table}{' (outer)' if outer else ''}: at most one match"
        case UnitJoin(outer=outer):
            return f"UnitJoin{' (outer)' if outer else ''}: pairs of rows of one unit"
        case FirstRows(most=most):
            return f"FirstRows: at most {most} rows of one unit"
        case SemiJoin(anti=anti):
            return f"SemiJoin: rows whose unit {'has no row' if anti else 'has a row'} in the second node"
        case WindowByUnit(items=items):
            names = ", ".join(name for name, _ in items)
            return f"WindowByUnit: {names} from the rows of one unit, ties broken by all columns"
        case UnionAll():
            return "UnionAll"
        case GroupByUnit(keys=keys, items=items):
            return f"GroupByUnit, {len(keys)} further keys: {', '.join(f'{n} = {_written(e)}' for n, e in items)}"
    raise AssertionError("no words for this node")


def _written(node: Expression) -> str:
    text = DuckdbGenerator().expression(node)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."
