"""Answer ROLLUP, CUBE and GROUPING SETS from one measurement."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.dp.receipt import Receipt
from sfumato.engines.engine import failed
from sfumato.errors import AnswerFailed
from sfumato.query.execute.executor import NoisyTable, check_plan, exact_vectors, public_groups
from sfumato.query.plan.grouping_sets import CubePlan, GroupingSetPlan, MarginalDraw
from sfumato.query.plan.marginals import KeySet
from sfumato.query.results.answer import Answer
from sfumato.secret import SecretValue
from sfumato.wording import counted

if TYPE_CHECKING:
    from sfumato.query.session import Session

Numbers = list[list[float | int]]
"""The noisy numbers of each draw, and of whom the limits cut."""


def sets_note(plan: CubePlan) -> str:
    """How the sets are measured, for EXPLAIN."""
    measured = len({draw.keys for draw in plan.draws})
    return (
        f"The {len(plan.sets)} grouping sets are estimated together from {counted(measured, 'noisy table')} of "
        f"{counted(len(plan.cells.query.keys), 'key')}: totals are the sums of their groups. Missing and undeclared "
        "values of a key have a group that is part of totals and is not shown."
    )


def answer_sets(session: Session, plan: CubePlan, text: str) -> list[Answer]:
    """One answer for each set: look up, reserve, measure, estimate."""
    key = _key(session, plan)
    stored = session.recall(key)
    cached = stored is not None
    if stored is None:
        for draw in plan.draws:
            draw.measurement.mechanism.check_drawable()
        check_plan(plan.cells, session.running)
        receipt = session.charge(plan.cost, key, text, {key: plan})
        stored = session.ledger.remember(key, json.dumps(_measured(session, plan, receipt)))
    numbers: Numbers = json.loads(stored)
    return [
        session.answer(shown, _table(plan, shown, places, numbers), key=key, cached=cached)
        for shown, places in zip(plan.sets, plan.places, strict=True)
    ]


def _key(session: Session, plan: CubePlan) -> str:
    facts = repr([plan.cost, [(draw.keys, draw.measurement.mechanism) for draw in plan.draws]])
    keys = [repr(key.scalar.node) for key in plan.cells.query.keys]  # in this order: draws name them by place
    return hashlib.sha256("\x1f".join([session.key_of(plan.cells), *keys, facts]).encode()).hexdigest()


def _measured(session: Session, plan: CubePlan, receipt: Receipt) -> Numbers:
    try:
        noise, *fitting = receipt.split(*plan.parts)
        exact = exact_vectors(plan.cells, session.running, receipt).open(receipt)
        tables = _by_aggregate(plan, exact)
        numbers = [_noisy(draw, tables, plan.marginals.sizes, noise) for draw in plan.draws]
        for own in fitting:  # the last vector: of whom the limits cut
            measurement = plan.sets[0].measurements[-1]
            counts = SecretValue(exact[-1])
            found = measurement.mechanism.release_at(counts, receipt=own, distance=measurement.sensitivity)
            numbers.append(found.tolist())
        return numbers
    except AnswerFailed:
        raise
    except Exception:
        raise failed() from None


def _by_aggregate(plan: CubePlan, exact: list[Any]) -> dict[int, Any]:
    """The exact numbers of the cells by the aggregate that a measurement starts with: one axis a key, then parts."""
    own = [draw.measurement for draw in plan.draws if draw.keys == plan.draws[0].keys]
    return {
        measurement.aggregate or 0: vector.reshape(*plan.marginals.sizes, measurement.parts)
        for measurement, vector in zip(own, exact, strict=False)
    }


def _noisy(draw: MarginalDraw, tables: dict[int, Any], sizes: tuple[int, ...], receipt: Receipt) -> list[float | int]:
    table = tables[draw.measurement.aggregate or 0]
    others = tuple(axis for axis in range(len(sizes)) if axis not in draw.keys)
    exact = SecretValue(table.sum(axis=others).reshape(-1) if others else table.reshape(-1))
    measurement = draw.measurement
    noisy = measurement.mechanism.release_at(exact, receipt=receipt, distance=measurement.sensitivity)
    return list(noisy.tolist())


def _table(plan: CubePlan, shown: GroupingSetPlan, places: KeySet, numbers: Numbers) -> NoisyTable:
    """The estimated numbers of one set, for the groups that it reports."""
    sizes, reported = plan.marginals.sizes, tuple(sorted(places))
    by_index: dict[int, dict[KeySet, Any]] = {}
    for draw, flat in zip(plan.draws, numbers, strict=False):
        shape = [sizes[key] for key in draw.keys]
        parts = draw.measurement.parts
        for part, index in enumerate(draw.measurement.covers):
            by_index.setdefault(index, {})[draw.keys] = np.array(flat[part::parts], dtype=np.float64).reshape(shape)
    keys = public_groups(shown.query)
    assert keys is not None
    codes = [{value: code for code, value in enumerate(key.values or ())} for key in shown.query.keys]
    order = [places.index(place) for place in reported]
    at = [tuple(codes[axis][key[axis]] for axis in order) for key in keys]
    values: dict[int, tuple[float | int, ...]] = {}
    for index, noisy in by_index.items():
        estimate = plan.marginals.estimate(noisy, reported)
        values[index] = tuple(float(estimate[cell]) for cell in at)
    if len(numbers) > len(plan.draws):
        assert shown.query.fitting is not None
        values[shown.query.fitting] = tuple(numbers[-1])
    return NoisyTable(keys=keys, values=values)
