"""Workloads: answer many counting queries together by the matrix mechanism.

The matrix mechanism (Li, Miklau, Hay, McGregor, Rastogi 2015, doi:10.1007/s00778-015-0398-x). All queries are sums
over the cells of a public domain, rows of a matrix W. Some other set of sums A is measured with noise, the cells are
estimated by least squares, and the queries are answered from the estimate. What A costs depends on how many of its
sums one person is in; how exact the answers are, on how well A covers W. Three kinds of A are compared by their exact
expected error, before anything is spent: every cell by itself, the queries themselves, and a tree of ranges.

Every row is in one cell: besides its declared values a column has cells for NULL, for each constant that a query
compares it with, and for what lies between two of these. Undeclared values therefore count as they do in a single
query. Cells that no query tells apart are one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, pure, sequential
from sfumato.dp.mechanism import Mechanism
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.receipt import Receipt
from sfumato.engines.engine import Running, failed
from sfumato.engines.expressions import (
    Expression,
    all_of,
)
from sfumato.errors import AnswerFailed, BadParameter, QueryRefused
from sfumato.query.execute.executor import NoisyTable, additive_totals
from sfumato.query.execute.fitting import fitting_sql
from sfumato.query.execute.sqlgen import additive_sql
from sfumato.query.plan.aggregates import Count
from sfumato.query.plan.fitting import can_be_cut, with_fitting
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.outputs import Measured
from sfumato.query.plan.planner import plan_query
from sfumato.query.plan.query import GroupKey, Query
from sfumato.query.plan.relational import Filter, Scan
from sfumato.query.results.kept import Limits, kept_share, limits_of
from sfumato.query.results.postprocess import NoisyValue
from sfumato.query.sql.parse import parse_query
from sfumato.query.workload_cells import cell_columns, conditions_over_cells, merged_cells
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue

if TYPE_CHECKING:
    from sfumato.query.session import Session

Matrix = npt.NDArray[np.float64]


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
    """Which measurement was chosen: "cells", "questions" or a tree of ranges."""
    branches: int
    """Of a tree of ranges: how many ranges of one level are one of the next; 0 for others."""
    measured: Matrix
    solver: Matrix
    """Least-squares matrix from measured sums to answers."""
    mechanism: Mechanism
    sensitivity: Fraction
    """L1 distance, or squared L2 distance, over all measured sums."""
    cost: PrivacyLoss
    fitting: NoisePlan | None
    """The bounds with the measurement of whom they cut; None where they cut nobody or it was left out."""
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
    kept: NoisyValue | None = None
    """Noisy share of people of whom the contribution limits cut nothing; None where it was not measured."""
    limits: Limits | None = None
    """Whether it was shown that the limits fit nearly all people; None where they cannot cut anybody."""
    certificate: dict[str, Any] | None = None
    """How the loss follows from what is measured, for ``sfumato.verify``."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        values = [{"value": cell.value, "low": cell.low, "high": cell.high} for cell in self.values]
        return {"values": values, "strategy": self.strategy, "root_mean_square_error": self.error,
                "alternatives": self.alternatives, "loss": self.loss.to_dict(), "cached": self.cached,
                "kept": None if self.kept is None else asdict(self.kept), "limits": self.limits,
                "certificate": self.certificate}  # fmt: skip


def plan_workload(
    session: Session, queries: Sequence[str], cost: PrivacyLoss, *, fit: Number = 0, **limits: Any
) -> Workload:
    """Parse the queries, map them to cells, and choose the measurement. This costs nothing.

    ``fit`` is the share of the cost at which it is measured how many units the limits cut, where they can cut any.
    """
    if not queries:
        raise BadParameter("a workload requires at least one query.")
    parsed = [parse_query(sql, session.catalog) for sql in queries]
    scans = [_scan(query) for query in parsed]
    if len({scan for scan, _ in scans}) != 1:
        raise QueryRefused("All queries of a workload must be about the same table.")
    conditions = [condition for _, condition in scans]
    columns = cell_columns(session, scans[0][0], conditions)
    keys = tuple(GroupKey(scalar=column.code, values=tuple(range(len(column.values)))) for column in columns)
    base = replace(parsed[0], rows=scans[0][0], keys=keys, aggregates=(Count(),), outputs=())
    matrix, cell_of = merged_cells(conditions_over_cells(columns, conditions))
    bounds, whole, share = plan_query(base, pure(1), **limits), cost, rational(fit)
    if not 0 <= share < 1:
        raise BadParameter("the share `fit` of the cost is at least 0 and below 1.")
    fitting = with_fitting(bounds, cost, share) if share > 0 and can_be_cut(base, bounds.groups) else None
    if fitting is not None:
        cost = replace(cost, size=cost.size * (1 - share))
    options = {"cells": np.eye(matrix.shape[1]), "questions": np.unique(matrix[matrix.any(axis=1)], axis=0)}
    trees: dict[str, int] = {}
    if len(columns) == 1 and matrix.shape[1] > 2:
        trees = {f"tree of ranges, {branches} to 1": branches for branches in (2, 4, 16)}
        options |= {name: _tree(matrix.shape[1], branches) for name, branches in trees.items()}
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
    losses = [mechanism.loss_at(sensitivity), *([] if fitting is None else [fitting.measurements[-1].loss])]
    return Workload(
        text="\n".join(queries), query=base, bounds=bounds, cell_of=cell_of, matrix=matrix, name=best,
        branches=trees.get(best, 0),
        measured=options[best], solver=solvers[best], mechanism=mechanism, sensitivity=sensitivity,
        cost=replace(whole, curve=sequential(losses).composable()), errors=errors, fitting=fitting,
    )  # fmt: skip


def answer_workload(session: Session, workload: Workload) -> WorkloadAnswer:
    """Reserve, measure, add noise, estimate, answer."""
    parts = [session.key_of(replace(workload.fitting or workload.bounds, cost=workload.cost)), workload.name]
    # Both: other queries may have the same matrix over other cells.
    parts += [hashlib.sha256(numbers.tobytes()).hexdigest() for numbers in (workload.matrix, workload.cell_of)]
    key = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
    kept = session.recall(key)
    cached = kept is not None
    if kept is None:
        session._engine.connect()
        session._engine.check(additive_sql(workload.bounds, 0, session._engine.listed))
        receipt = session.charge(workload.cost, key, workload.text, {key: workload})
        try:
            secret = int.from_bytes(os.urandom(7), "little")
            rows = additive_totals(workload.bounds, session._engine, secret).open(receipt)
            cells = np.zeros(workload.matrix.shape[1], dtype=np.int64)
            for row in rows:
                cells[workload.cell_of[int(row[0])] if workload.query.keys else 0] += int(row[-2])
            exact = SecretValue(workload.measured.astype(np.int64) @ cells)
            noisy = workload.mechanism.release_at(exact, receipt=receipt, distance=workload.sensitivity).tolist()
            if workload.fitting is not None:
                noisy += _fitting(workload.fitting, session.running, receipt)
        except AnswerFailed:
            raise
        except Exception:
            raise failed() from None
        kept = session.ledger.remember(key, json.dumps([int(value) for value in noisy]))
    solver, numbers = workload.solver, json.loads(kept)
    share = None
    if workload.fitting is not None:
        place = workload.fitting.measurements[-1].aggregate or 0
        share = kept_share(workload.fitting, NoisyTable(keys=(), values={place: tuple(numbers[-2:])}))
        numbers = numbers[:-2]
    values = solver @ np.array(numbers, dtype=np.float64)
    # Floats: an estimate of a whole number may be off by a rounding error, and so be just outside.
    reach = _intervals(solver, workload.mechanism) + 1e-9 * np.maximum(1.0, np.abs(values))
    limits = limits_of(workload.bounds, share)
    cells_out = tuple(
        NoisyValue(value=float(v), low=float(v - r), high=float(v + r)) if limits in (None, "fit") else
        NoisyValue(value=float(v))
        for v, r in zip(values, reach, strict=True)
    )  # fmt: skip
    return WorkloadAnswer(
        values=cells_out, strategy=workload.name, error=workload.error(), alternatives=workload.errors,
        loss=workload.cost, cached=cached, kept=share, limits=limits,
        certificate=session.certificate(key),
    )  # fmt: skip


def _fitting(plan: NoisePlan, engine: Running, receipt: Receipt) -> list[int]:
    """The noisy numbers of units that the limits fit and cut."""
    [row] = engine.run(fitting_sql(plan, engine.listed)).open(receipt)
    measurement = plan.measurements[-1]
    exact = SecretValue(np.array([int(number) for number in row], dtype=object))
    noisy = measurement.mechanism.release_at(exact, receipt=receipt, distance=measurement.sensitivity)
    return [int(number) for number in noisy]


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
