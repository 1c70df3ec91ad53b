"""Workloads: answer many counting queries together by the matrix mechanism.

The matrix mechanism (Li, Miklau, Hay, McGregor, Rastogi 2015, doi:10.1007/s00778-015-0398-x). All queries are sums
over the cells of a public domain, rows of a matrix W. Some other set of sums A is measured with noise, the cells are
estimated by least squares, and the queries are answered from the estimate. What A costs depends on how many of its
sums one person is in; how exact the answers are, on how well A covers W. Three kinds of A are compared by their exact
expected error, before anything is spent: every cell by itself, the queries themselves, and a tree of ranges.

Every row is in one cell: besides its declared values a column has a cell for NULL and cells for what the owner did not
declare (below and above the bounds of a number; any other value of a list). Cells that no query tells apart are one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, pure
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
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
    all_of,
    constant,
    equal,
)
from sfumato.engines.statements import Join, Select, Source, Values
from sfumato.errors import AnswerFailed, BadParameter, QueryRefused
from sfumato.query.execute.executor import additive_totals
from sfumato.query.execute.sqlgen import additive_sql
from sfumato.query.plan.aggregates import Count
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.outputs import Measured
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.relational import Filter, PlanNode, Scan, columns_of
from sfumato.query.plan.scalar import Scalar
from sfumato.query.results.postprocess import NoisyValue
from sfumato.query.sql.parse import GroupKey, Query, parse_query
from sfumato.schema import Kind
from sfumato.secret import SecretValue

if TYPE_CHECKING:
    from sfumato.query.session import Session

__all__ = ["Workload", "WorkloadAnswer", "answer_workload", "plan_workload"]

Matrix = npt.NDArray[np.float64]
_MOST_CELLS = 1024
_MOST_GROUPS = 50_000
"""Combinations of values of the columns that conditions use."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Counting queries as a matrix, and the measurement chosen for them."""

    text: str
    """The queries, one per line."""
    query: Query
    """The histogram over all cells that is measured."""
    bounds: NoisePlan
    """How contributions to the histogram are bounded."""
    cell_of: npt.NDArray[np.int64]
    """The cell of each group of the histogram."""
    matrix: Matrix
    """One row per query, one column per cell."""
    name: str
    """Which measurement was chosen: "cells", "queries" or a tree of ranges."""
    measured: Matrix
    solver: Matrix
    """Least-squares matrix from measured sums to answers."""
    mechanism: Mechanism
    sensitivity: Fraction
    """L1 distance, or squared L2 distance, over all measured sums."""
    cost: PrivacyLoss
    errors: dict[str, float]
    """Root mean square error per query that each kind of measurement would have."""

    def error(self) -> float:
        return self.errors[self.name]


@dataclass(frozen=True, kw_only=True)
class WorkloadAnswer:
    """Noisy counts, one per query, consistent with each other because they come from one estimate."""

    values: tuple[NoisyValue, ...]
    strategy: str
    error: float
    """Root mean square error per query."""
    alternatives: dict[str, float]
    loss: PrivacyLoss
    cached: bool

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        values = [{"value": cell.value, "low": cell.low, "high": cell.high} for cell in self.values]
        return {"values": values, "strategy": self.strategy, "root_mean_square_error": self.error,
                "alternatives": self.alternatives, "loss": self.loss.to_dict(), "cached": self.cached}  # fmt: skip


def plan_workload(session: Session, queries: Sequence[str], cost: PrivacyLoss, **limits: Any) -> Workload:
    """Parse the queries, map them to cells, and choose the measurement. This costs nothing."""
    if not queries:
        raise BadParameter("a workload requires at least one query.")
    parsed = [parse_query(sql, session.catalog) for sql in queries]
    scans = [_scan(query) for query in parsed]
    if len({scan for scan, _ in scans}) != 1:
        raise QueryRefused("All queries of a workload must be about the same table.")
    conditions = [condition for _, condition in scans]
    columns = _columns(session, scans[0][0], conditions)
    keys = tuple(GroupKey(scalar=column.code, values=tuple(range(len(column.values)))) for column in columns)
    base = replace(parsed[0], rows=scans[0][0], keys=keys, aggregates=(Count(),), outputs=())
    matrix, cell_of = _merged(_over_cells(columns, conditions))
    bounds = plan_query(base, pure(1), **limits)
    options = {"cells": np.eye(matrix.shape[1]), "questions": np.unique(matrix[matrix.any(axis=1)], axis=0)}
    if len(columns) == 1 and matrix.shape[1] > 2:
        for branches in (2, 4, 16):
            options[f"tree of ranges, {branches} to 1"] = _tree(matrix.shape[1], branches)
    options = {name: measured for name, measured in options.items() if measured.size}
    if not options:
        raise QueryRefused("No query of the workload can count any row.")
    plans = {name: _noise(measured, bounds, cost) for name, measured in options.items()}
    solvers = {name: _solver(matrix, measured, name) for name, measured in options.items()}
    errors = {
        name: float(np.sqrt((solver**2).sum() * _mean_square(plans[name][0]) / len(matrix)))
        for name, solver in solvers.items()
    }
    best = min(errors, key=lambda name: errors[name])
    mechanism, sensitivity = plans[best]
    return Workload(
        text="\n".join(queries), query=base, bounds=bounds, cell_of=cell_of, matrix=matrix, name=best,
        measured=options[best], solver=solvers[best], mechanism=mechanism, sensitivity=sensitivity,
        cost=replace(cost, curve=mechanism.loss_at(sensitivity).composable()), errors=errors,
    )  # fmt: skip


def answer_workload(session: Session, workload: Workload) -> WorkloadAnswer:
    """Reserve, measure, add noise, estimate, answer."""
    parts = [session.key_of(replace(workload.bounds, cost=workload.cost)), workload.name]
    parts.append(hashlib.sha256(workload.matrix.tobytes()).hexdigest())
    key = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
    kept = session.recall(key)
    cached = kept is not None
    if kept is None:
        session._engine.connect()
        session._engine.check(additive_sql(workload.bounds, 0, session._engine.listed))
        receipt = session.reserve(workload.cost, key, workload.text)
        try:
            secret = int.from_bytes(os.urandom(7), "little")
            rows = additive_totals(workload.bounds, session._engine, secret).open(receipt)
            cells = np.zeros(workload.matrix.shape[1], dtype=np.int64)
            for row in rows:
                cells[workload.cell_of[int(row[0])] if workload.query.keys else 0] += int(row[-2])
            exact = SecretValue(workload.measured.astype(np.int64) @ cells)
            noisy = workload.mechanism.release_at(exact, receipt=receipt, distance=workload.sensitivity)
        except AnswerFailed:
            raise
        except Exception:
            raise AnswerFailed("The query could not be computed. Its cost stays charged.") from None
        kept = session.ledger.remember(key, json.dumps([int(value) for value in noisy]))
    solver = workload.solver
    values = solver @ np.array(json.loads(kept), dtype=np.float64)
    # Floats: an estimate of a whole number may be off by a rounding error, and so be just outside.
    reach = _intervals(solver, workload.mechanism) + 1e-9 * np.maximum(1.0, np.abs(values))
    cells_out = tuple(
        NoisyValue(value=float(v), low=float(v - r), high=float(v + r)) for v, r in zip(values, reach, strict=True)
    )
    return WorkloadAnswer(
        values=cells_out, strategy=workload.name, error=workload.error(), alternatives=workload.errors,
        loss=workload.cost, cached=cached,
    )  # fmt: skip


def _scan(query: Query) -> tuple[Scan, Expression]:
    """Table and condition of one counting query."""
    conditions, rows = [], query.rows
    while isinstance(rows, Filter):
        conditions.append(rows.condition.node)
        rows = rows.child
    bare = len(query.outputs) == 1 and isinstance(query.outputs[0][1], Measured) and query.aggregates == (Count(),)
    more = query.keys or query.steps or query.target is not None
    if not isinstance(rows, Scan) or not bare or more:
        raise QueryRefused(
            "A workload consists of plain counts: SELECT COUNT(*) FROM table WHERE condition.",
            fix="Use ask() for other queries.",
        )
    return rows, all_of(*conditions)


@dataclass(frozen=True, kw_only=True)
class _Column:
    """A column that conditions use: which of ``values`` a row has, as a whole number, and the values themselves."""

    scalar: Scalar
    code: Scalar
    values: tuple[Any, ...]
    """Declared values, values that stand for those that were not declared, and None."""


def _columns(session: Session, scan: PlanNode, conditions: list[Expression]) -> list[_Column]:
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


def _bounded_column(scalar: Scalar, values: tuple[Any, ...]) -> _Column:
    """A whole number within bounds, or true and false: what lies below and above the bounds has a value of its own."""
    x, last = scalar.node, len(values)
    if scalar.kind is Kind.BOOLEAN:
        return _column(scalar, [(x, 1)], constant(0), (False, True, None))
    low, high = values[0], values[-1]
    above = Arithmetic("+", Arithmetic("-", x, constant(low)), constant(1))
    tests = [(Compare("<", x, constant(low)), 0), (Compare(">", x, constant(high)), last + 1)]
    beyond = max(low - 1, -(1 << 63)), min(high + 1, (1 << 63) - 1)
    return _column(scalar, tests, above, (beyond[0], *values, beyond[1], None))


def _listed_column(scalar: Scalar, values: tuple[Any, ...]) -> _Column:
    """A list of values: all others count as one further value, above those of the list."""
    tests = [(equal(scalar.node, constant(value)), place) for place, value in enumerate(values)]
    return _column(scalar, tests, constant(len(values)), (*values, _above(max(values)), None))


def _column(
    scalar: Scalar, tests: Sequence[tuple[Expression, int]], default: Expression, values: tuple[Any, ...]
) -> _Column:
    """The place of a row's value among ``values``: the first test that holds; a missing value has the last place."""
    places = tuple((test, constant(place)) for test, place in tests)
    code = Case(((IsNull(scalar.node), constant(len(values) - 1)), *places), default)
    return _Column(scalar=scalar, code=Scalar(node=code, kind=Kind.INTEGER), values=values)


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
        case _:
            return value + timedelta(days=1) if value.year < 9999 else value


def _declared(session: Session, scan: PlanNode) -> list[tuple[str, Scalar]]:
    """Declared columns of the scanned table with their internal names."""
    from sfumato.query.sql.bind import Binder

    assert isinstance(scan, Scan)
    relation = Binder(session.catalog, "")._scan(session.catalog.private[scan.table], scan.table)
    return [(name, scalar) for _, name, scalar in relation.columns.items]


def _over_cells(columns: list[_Column], conditions: list[Expression]) -> npt.NDArray[np.uint8]:
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


def _merged(matrix: npt.NDArray[np.uint8]) -> tuple[Matrix, npt.NDArray[np.int64]]:
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


def _tree(cells: int, branches: int) -> Matrix:
    """All ranges of a tree over the cells, from the single cells up to a handful that cover all.

    Wide trees are shallow, and depth is what costs: around 16 branches is best for plain epsilon (Qardaji, Yang, Li
    2013, doi:10.14778/2556549.2556576).
    """
    rows, width = [], 1
    while True:
        for start in range(0, cells, width):
            row = np.zeros(cells)
            row[start : start + width] = 1
            rows.append(row)
        width *= branches
        if width >= cells:
            return np.array(rows)


def _noise(measured: Matrix, bounds: NoisePlan, cost: PrivacyLoss) -> tuple[Mechanism, Fraction]:
    """The smaller of the noises that the cost allows for one unit's ``groups`` cells with ``rows`` rows each."""
    weight = bounds.groups * bounds.rows
    deep = int(np.abs(measured).sum(axis=0).max())
    squared = Fraction(weight * weight * int((measured**2).sum(axis=0).max()))
    candidates: list[tuple[Mechanism, Fraction]] = []
    if cost.measure is PrivacyMeasure.EPSILON:
        candidates.append((Laplace.for_epsilon(cost.size, sensitivity=weight * deep), Fraction(weight * deep)))
        if cost.delta > 0:
            candidates.append((RoundedGaussian.or_discrete(cost.size, cost.delta, squared=squared), squared))
    else:
        candidates.append((RoundedGaussian.smallest(squared, rho=cost.size, grid=Fraction(1)), squared))
    return min(candidates, key=lambda pair: _mean_square(pair[0]))


def _mean_square(mechanism: Mechanism) -> float:
    assert mechanism.mean_square is not None
    return mechanism.mean_square


def _solver(matrix: Matrix, measured: Matrix, name: str) -> Matrix:
    """The matrix that gives the queries' least-squares answers from the measured sums."""
    if name == "cells":
        return matrix
    if name == "questions":
        # Each query is one of the measured sums (or an empty one), and is answered by it.
        return np.asarray((matrix[:, None, :] == measured[None, :, :]).all(axis=2), dtype=np.float64)
    return np.asarray(matrix @ np.linalg.solve(measured.T @ measured, measured.T))


def _intervals(solver: Matrix, mechanism: Mechanism) -> Matrix:
    """Half widths at 95 %: exact for Gaussian noise, by simulation of the (public) noise for Laplace."""
    noise = mechanism.noise
    assert noise is not None
    if noise.variance:
        return np.asarray(1.96 * np.sqrt((solver**2).sum(axis=1) * _mean_square(mechanism)))
    stop, size, rng = -np.expm1(-float(noise.grid / noise.scale)), (5_000, solver.shape[1]), np.random.default_rng(0)
    draws = float(noise.grid) * (rng.geometric(stop, size) - rng.geometric(stop, size))
    return np.asarray(np.quantile(np.abs(draws @ solver.T), 0.95, axis=0, method="higher"))
