"""Cells of a workload: the combinations of public values that its conditions tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.dataset import Kind
from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.expressions import (
    NOTHING,
    TRUE,
    Arithmetic,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Compare,
    Constant,
    Expression,
    IsNull,
    constant,
    equal,
)
from sfumato.engines.statements import Join, Select, Source, Values
from sfumato.errors import QueryRefused
from sfumato.query.plan.relational import PlanNode, Scan, columns_of
from sfumato.query.plan.scalar import Scalar

if TYPE_CHECKING:
    from sfumato.query.session import Session

__all__ = ["CellColumn", "cell_columns", "conditions_over_cells", "merged_cells"]

Matrix = npt.NDArray[np.float64]
_MOST_CELLS = 1024
_MOST_GROUPS = 50_000
"""Combinations of values of the columns that conditions use."""


@dataclass(frozen=True, kw_only=True)
class CellColumn:
    """A column that conditions use: which of ``values`` a row has, as a whole number, and the values themselves."""

    scalar: Scalar
    code: Scalar
    values: tuple[Any, ...]
    """Declared values, values that stand for those that were not declared, and None."""


def cell_columns(session: Session, scan: PlanNode, conditions: list[Expression]) -> list[CellColumn]:
    """The columns used in the conditions; each needs publicly known values."""
    used = columns_of(conditions)
    columns, cells = [], 1
    for name, scalar in _declared(session, scan):
        if not columns_of([scalar.node]) & used:
            continue
        values = scalar.keys()
        if values is None:
            raise QueryRefused(
                f"Workload conditions need columns with declared values, and `{name}` has none.",
                fix="Declare its values, or use ask() for this query.",
            )
        columns.append(_bounded_column(scalar, values) if scalar.values is None else _listed_column(scalar, values))
        cells *= len(columns[-1].values)
    if cells > _MOST_GROUPS:
        raise QueryRefused(f"The workload's columns have {cells:,} combinations; at most {_MOST_GROUPS:,} are handled.")
    return columns


def _bounded_column(scalar: Scalar, values: tuple[Any, ...]) -> CellColumn:
    """A whole number within bounds, or true and false: what lies below and above the bounds has a value of its own."""
    x, last = scalar.node, len(values)
    if scalar.kind is Kind.BOOLEAN:
        return _column(scalar, [(x, 1)], constant(0), (False, True, None))
    low, high = values[0], values[-1]
    above = Arithmetic("+", Arithmetic("-", x, constant(low)), constant(1))
    tests = [(Compare("<", x, constant(low)), 0), (Compare(">", x, constant(high)), last + 1)]
    beyond = max(low - 1, -(1 << 63)), min(high + 1, (1 << 63) - 1)
    return _column(scalar, tests, above, (beyond[0], *values, beyond[1], None))


def _listed_column(scalar: Scalar, values: tuple[Any, ...]) -> CellColumn:
    """A list of values: all others count as one further value, above those of the list."""
    tests = [(equal(scalar.node, constant(value)), place) for place, value in enumerate(values)]
    return _column(scalar, tests, constant(len(values)), (*values, _above(max(values)), None))


def _column(
    scalar: Scalar, tests: Sequence[tuple[Expression, int]], default: Expression, values: tuple[Any, ...]
) -> CellColumn:
    """The place of a row's value among ``values``: the first test that holds; a missing value has the last place."""
    places = tuple((test, constant(place)) for test, place in tests)
    code = Case(((IsNull(scalar.node), constant(len(values) - 1)), *places), default)
    return CellColumn(scalar=scalar, code=Scalar(node=code, kind=Kind.INTEGER), values=values)


def _above(value: Any) -> Any:
    match value:
        case str():
            return value + chr(0x10FFFF)
        case bool():
            return None
        case int():
            return min(value + 1, (1 << 63) - 1)
        case float():
            return value + max(1.0, abs(value))
        case date():  # a moment too
            return value + timedelta(days=1) if value.year < 9999 else value
        case _:
            raise AssertionError("a list has values of these kinds only")


def _declared(session: Session, scan: PlanNode) -> list[tuple[str, Scalar]]:
    """Declared columns of the scanned table with their internal names."""
    from sfumato.query.sql.bind import Binder

    assert isinstance(scan, Scan)
    relation = Binder(session.catalog, "")._scan(session.catalog.private[scan.table], scan.table)
    return [(name, scalar) for _, name, scalar in relation.columns.items]


def conditions_over_cells(columns: list[CellColumn], conditions: list[Expression]) -> npt.NDArray[np.uint8]:
    """The combinations of values that meet each condition, evaluated on public values only."""
    if not columns:
        return np.ones((len(conditions), 1), dtype=np.uint8)
    import duckdb

    source: Source | None = None
    for i, column in enumerate(columns):
        [name] = columns_of([column.scalar.node])
        rows = tuple((constant(place), _constant(value)) for place, value in enumerate(column.values))
        values = Values(rows, f"t{i}", (f"place{i}", name))
        source = values if source is None else Join(source, values, TRUE)
    assert source is not None
    tests = tuple((f"q{i}", Coalesce((Cast(test, "int"), constant(0)))) for i, test in enumerate(conditions))
    order = tuple(ColumnRef(f"place{i}", "int") for i in range(len(columns)))
    with duckdb.connect(":memory:") as connection:
        found = connection.execute(DuckdbGenerator().write(Select(tests, source, order_by=order))).fetchnumpy()
    return np.array([found[f"q{i}"] for i in range(len(conditions))], dtype=np.uint8)


def _constant(value: Any) -> Constant:
    return NOTHING if value is None else constant(value)


def merged_cells(matrix: npt.NDArray[np.uint8]) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Columns of a matrix, each once, in the order of their first place; and the new column of each old one."""
    _, first, inverse = np.unique(matrix, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    if len(order) > _MOST_CELLS:
        raise QueryRefused(
            f"The queries tell {len(order):,} sets of rows apart; at most {_MOST_CELLS:,} are handled.",
            fix="Use fewer queries, or ask() for some of them.",
        )
    return matrix[:, first[order]].astype(np.float64), place[inverse.ravel()]
