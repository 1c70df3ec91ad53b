"""Execute a noise plan: run its SQL, add noise, return noisy numbers. No exact number leaves this module."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import product
from math import isnan, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.dp.receipt import Receipt
from sfumato.engines.contribution_bounding import FIT
from sfumato.engines.engine import Running
from sfumato.engines.statements import Query as Statement
from sfumato.errors import AnswerFailed
from sfumato.query.execute.fitting import fitting_sql
from sfumato.query.execute.grouped_rows import ValueTables, group_columns, inline_values
from sfumato.query.execute.key_text import key_from_json, key_to_json
from sfumato.query.execute.row_sampling import bin_counts_sql, distinct_count_sql
from sfumato.query.execute.sqlgen import additive_sql, bounding_pieces, tells_fitting, with_fitting_row
from sfumato.query.plan.aggregates import Added, DistinctCount, FittingUnits, Selected
from sfumato.query.plan.noise import Measurement, NoisePlan
from sfumato.query.plan.query import Query
from sfumato.secret import SecretValue

Key = tuple[Any, ...]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class NoisyTable:
    """Noisy numbers by group. They may be stored and released."""

    keys: tuple[Key, ...]
    values: dict[int, tuple[float | int, ...]]
    """Per aggregate, one number per key; of units that the limits fit and cut, two numbers in all."""

    def to_json(self) -> str:
        """The table as JSON text, for storage with the ledger."""
        keys = [key_to_json(key) for key in self.keys]
        return json.dumps({"keys": keys, "values": {str(i): list(v) for i, v in self.values.items()}})

    @classmethod
    def from_json(cls, text: str) -> NoisyTable:
        """The inverse of :meth:`to_json`."""
        data = json.loads(text)
        keys = tuple(key_from_json(key) for key in data["keys"])
        return cls(keys=keys, values={int(i): tuple(v) for i, v in data["values"].items()})


def check_plan(plan: NoisePlan, engine: Running) -> None:
    """Refuse a plan that the engine cannot compute exactly, or whose noise is too large to draw.

    It reads no data, and nothing is spent yet.
    """
    for measurement in plan.measurements:
        measurement.mechanism.check_drawable()
    engine.connect()
    for statement in statements(plan, 0, engine.listed):
        engine.check(statement)


def statements(plan: NoisePlan, secret: int, listed: ValueTables = inline_values) -> Iterator[Statement]:
    """All statements of a plan."""
    measured = plan.query.aggregates
    if plan.partition_selection is not None or any(isinstance(m, Added) for m in measured):
        yield additive_sql(plan, secret, listed)
    for i, aggregate in enumerate(measured):
        if isinstance(aggregate, DistinctCount):
            yield distinct_count_sql(plan, aggregate, secret, listed)
        elif isinstance(aggregate, Selected):
            if plan.of(i).aggregate == i:
                yield bin_counts_sql(plan, aggregate, secret, listed)
        elif isinstance(aggregate, FittingUnits):
            yield fitting_sql(plan, listed)
        elif not isinstance(aggregate, Added):
            raise AnswerFailed("The query has an aggregate without a statement; no data was read.")


def additive_totals(plan: NoisePlan, engine: Running, secret: int) -> SecretValue[list[tuple[Any, ...]]]:
    """The exact counts and sums after contribution bounding, by the engine's fold where it has one, else by SQL.

    Where the plan measures them and groups are public, the row ``FIT`` has the units that the limits fit and cut.
    """
    numbered = plan.query.keys and plan.query.public_keys
    pieces = bounding_pieces(plan, secret, engine.listed) if engine.folds and numbered else None
    folded = None if pieces is None else engine.fold(pieces)
    return stated_totals(plan, engine, secret, passes=engine.passes) if folded is None else folded


def stated_totals(
    plan: NoisePlan, engine: Running, secret: int, *, passes: bool
) -> SecretValue[list[tuple[object, ...]]]:
    """The same by SQL; for ``passes`` see ``additive_sql``."""
    rows = engine.run(additive_sql(plan, secret, engine.listed, passes=passes))
    return rows.map(with_fitting_row) if tells_fitting(plan) else rows


def execute_plan(plan: NoisePlan, engine: Running, receipt: Receipt) -> NoisyTable:
    """Answer a query with noise. Noise is drawn in batches whose size is public or differentially private."""
    query = plan.query
    receipts = _receipts(plan, receipt)
    secret = int.from_bytes(os.urandom(7), "little")
    width, every = len(group_columns(query)), _combinations(query)

    def key_of(row: Key) -> Key:
        return _key_of(row, width, every)

    table: dict[Key, Key] = {}
    fitting: Key | None = None
    if additive_measurements(plan) or plan.partition_selection is not None:
        table, fitting = _totals_by_key(plan, engine, secret, receipt)
    if plan.top_keys is not None:
        keys = _top(plan, table, public_groups(query) or _known(plan, table), receipts)
    elif plan.threshold_selection is not None:
        keys = _known(plan, table)
    else:
        groups = public_groups(query)
        keys = groups if groups is not None else _named(plan, table, receipts)
    values: dict[int, tuple[float | int, ...]] = {}
    for measurement, exact in _vectors(plan, table, keys):
        noisy = _noisy(measurement, SecretValue(exact), receipts[measurement.aggregate])
        values |= split_parts(measurement, noisy)
    if plan.threshold_selection is not None:
        keys = _keep_named(plan.threshold_selection, keys, values)
    for i, aggregate in enumerate(query.aggregates):
        if isinstance(aggregate, DistinctCount):
            rows = engine.run(distinct_count_sql(plan, aggregate, secret, engine.listed)).open(receipt)
            counts = {key_of(row): int(row[width]) for row in rows}
            exact = np.array([counts.get(key, 0) for key in keys], dtype=object)
            values[i] = _noisy(plan.of(i), SecretValue(exact), receipts[i])
        elif isinstance(aggregate, Selected) and plan.of(i).aggregate == i:
            statement = bin_counts_sql(plan, aggregate, secret, engine.listed)
            histograms = _histograms(statement, plan, engine, receipt, keys)
            chosen = _select(plan, i, histograms, receipts[i])
            values |= dict(zip(plan.of(i).covers, chosen, strict=True))
        elif isinstance(aggregate, FittingUnits):
            if fitting is None:
                [fitting] = engine.run(fitting_sql(plan, engine.listed)).open(receipt)
            exact = np.array([int(number) for number in fitting], dtype=object)
            values[i] = _noisy(plan.of(i), SecretValue(exact), receipts[i])
    return NoisyTable(keys=keys, values=values)


def additive_measurements(plan: NoisePlan) -> list[Measurement]:
    """The measurements of counts and sums, in the order of their columns; the shares of a number are one."""
    query = plan.query
    added = [i for i, m in enumerate(query.aggregates) if isinstance(m, Added)]
    return [plan.of(i) for i in added if plan.measures(i) and plan.of(i).aggregate == i]


def shared_measurements(plan: NoisePlan) -> list[Measurement]:
    """The measurements whose exact numbers add up over tables: counts and sums, and the units that the limits fit."""
    return [*additive_measurements(plan), *([] if plan.fitting is None else [plan.fitting])]


def shared_size(plan: NoisePlan, measurement: Measurement) -> int:
    """How many numbers a shared measurement of a plan with public keys has."""
    if plan.is_fitting(measurement):
        return 2
    return len(public_groups(plan.query) or ()) * measurement.parts


def exact_vectors(plan: NoisePlan, engine: Running, receipt: Receipt) -> SecretValue[list[Ints]]:
    """The exact integers behind each shared measurement of a plan with public keys: key by key, part by part."""
    keys = public_groups(plan.query)
    assert keys is not None
    table: dict[Key, Key] = {}
    fitting: Key | None = None
    if additive_measurements(plan):
        table, fitting = _totals_by_key(plan, engine, int.from_bytes(os.urandom(7), "little"), receipt)
    vectors = [exact for _, exact in _vectors(plan, table, keys)]
    if len(shared_measurements(plan)) > len(vectors):
        if fitting is None:
            [fitting] = engine.run(fitting_sql(plan, engine.listed)).open(receipt)
        vectors.append(np.array([int(number) for number in fitting], dtype=object))
    return SecretValue(vectors)


def exact_totals_by_key(
    plan: NoisePlan, engine: Running, receipt: Receipt
) -> SecretValue[tuple[dict[Key, list[int]], list[int]]]:
    """The exact integers of each private key that occurs, measurement by measurement; and of units that limits fit."""
    table, _ = _totals_by_key(plan, engine, int.from_bytes(os.urandom(7), "little"), receipt)
    width = sum(measurement.parts for measurement in additive_measurements(plan))
    totals = {key: [int(value) for value in table[key][:width]] for key in _known(plan, table)}
    fitting: list[int] = []
    if plan.fitting is not None:
        [row] = engine.run(fitting_sql(plan, engine.listed)).open(receipt)
        fitting = [int(number) for number in row]
    return SecretValue((totals, fitting))


def exact_histograms(
    plan: NoisePlan, engine: Running, receipt: Receipt, aggregates: Collection[int]
) -> SecretValue[dict[int, list[tuple[Ints, Ints]]]]:
    """Cells and counts of each public group, for some aggregates that values are selected from."""
    keys, secret = public_groups(plan.query), int.from_bytes(os.urandom(7), "little")
    assert keys is not None
    found = {}
    for index in sorted(aggregates):
        aggregate = plan.query.aggregates[index]
        assert isinstance(aggregate, Selected)
        found[index] = _histograms(bin_counts_sql(plan, aggregate, secret, engine.listed), plan, engine, receipt, keys)
    return SecretValue(found)


def split_parts(measurement: Measurement, noisy: tuple[float | int, ...]) -> dict[int, tuple[float | int, ...]]:
    """The noisy numbers of a measurement by aggregate, one number per key."""
    return {index: noisy[part :: measurement.parts] for part, index in enumerate(measurement.covers)}


def public_groups(query: Query) -> tuple[Key, ...] | None:
    """The keys of all groups in the answer; None where keys are private."""
    every = _combinations(query)
    return every if every is None or query.possible is None else tuple(every[number] for number in query.possible)


def _combinations(query: Query) -> tuple[Key, ...] | None:
    return tuple(product(*(key.values or () for key in query.keys))) if query.public_keys else None


def _key_of(row: Key, width: int, every: tuple[Key, ...] | None) -> Key:
    return _plain(row[:width]) if every is None or not width else every[row[0]]


def _totals_by_key(
    plan: NoisePlan, engine: Running, secret: int, receipt: Receipt
) -> tuple[dict[Key, Key], Key | None]:
    """The totals of each group, and the numbers of fitting units where the statement counted them too."""
    width, every = len(group_columns(plan.query)), _combinations(plan.query)
    rows = additive_totals(plan, engine, secret).open(receipt)
    fitting: Key | None = None
    if every is not None and width:
        fitting = next((row[1:3] for row in rows if row[0] == FIT), None)
        rows = [row for row in rows if row[0] != FIT]
    return {_key_of(row, width, every): tuple(row[width:]) for row in rows}, fitting


def _vectors(plan: NoisePlan, table: dict[Key, Key], keys: tuple[Key, ...]) -> Iterator[tuple[Measurement, Ints]]:
    place = 0
    for measurement in additive_measurements(plan):
        blank, end = (0,) * measurement.parts, place + measurement.parts
        lying = (table[key][place:end] if key in table else blank for key in keys)
        yield measurement, np.array([int(value) for row in lying for value in row], dtype=object)
        place = end


def _plain(key: Key) -> Key:
    """Normalize a private key: which of several equal zeros or NaNs an engine returns would depend on the rows."""
    return tuple([(part + 0.0 if part == part else nan) if isinstance(part, float) else part for part in key])


def _receipts(plan: NoisePlan, receipt: Receipt) -> dict[int | None, Receipt]:
    """The receipt of each draw, from the reserved parts."""
    parts = receipt.split(*plan.parts)
    return {measurement.aggregate: parts[measurement.reservation] for measurement in plan.measurements}


def _named(plan: NoisePlan, table: dict[Key, Key], receipts: dict[int | None, Receipt]) -> tuple[Key, ...]:
    """Partition selection: the private keys that may be released, sorted."""
    measurement = plan.partition_selection
    assert measurement is not None
    known = _known(plan, table)
    units = SecretValue(np.array([int(table[key][-1]) for key in known], dtype=np.int64))
    kept = (
        measurement.mechanism.release_at(units, receipt=receipts[None], distance=measurement.sensitivity)
        if known
        else []
    )
    named = [key for key, keep in zip(known, kept, strict=True) if keep]
    return tuple(sorted(named))


def _top(
    plan: NoisePlan, table: dict[Key, Key], known: tuple[Key, ...], receipts: dict[int | None, Receipt]
) -> tuple[Key, ...]:
    """The keys with the largest counts, in the order in which they are selected."""
    measurement = plan.partition_selection
    assert measurement is not None
    counts = SecretValue(np.array([int(table[key][0]) if key in table else 0 for key in known], dtype=np.int64))
    chosen = measurement.mechanism.release_at(counts, receipt=receipts[None], distance=measurement.sensitivity)
    return tuple(known[place] for place in chosen)


def _known(plan: NoisePlan, table: dict[Key, Key]) -> tuple[Key, ...]:
    """All keys in the data, private ones included."""
    public = [None if key.values is None else set(key.values) for key in plan.query.keys]
    known = [key for key in table if all(p is None or part in p for p, part in zip(public, key, strict=True))]
    return tuple(sorted(known, key=lambda key: [str(part) for part in key]))


def _keep_named(
    threshold_selection: Measurement, keys: tuple[Key, ...], values: dict[int, tuple[float | int, ...]]
) -> tuple[Key, ...]:
    """Threshold selection: remove keys whose noisy count is withheld (NaN) from keys and values; sort the rest."""
    noisy_counts = values[threshold_selection.covers[0]]
    places = sorted((i for i in range(len(keys)) if not isnan(noisy_counts[i])), key=lambda i: keys[i])
    noise = threshold_selection.mechanism.noise
    whole = noise is not None and noise.grid == 1
    for index, column in values.items():
        kept = [column[i] for i in places]
        values[index] = tuple(int(v) for v in kept) if whole and index in threshold_selection.covers else tuple(kept)
    return tuple(keys[i] for i in places)


def _noisy(measurement: Measurement, exact: SecretValue[Any], receipt: Receipt) -> tuple[float | int, ...]:
    return tuple(measurement.mechanism.release_at(exact, receipt=receipt, distance=measurement.sensitivity).tolist())


def _histograms(
    statement: Statement, plan: NoisePlan, engine: Running, receipt: Receipt, keys: tuple[Key, ...]
) -> list[tuple[Ints, Ints]]:
    """Histogram of each group: its cells, ascending, and their counts. Groups that are not released are left out."""
    width, every = len(group_columns(plan.query)), _combinations(plan.query)
    places = {key: place for place, key in enumerate(keys)}
    if every is None and width:
        rows = engine.run(statement).open(receipt)
        where = np.fromiter((places.get(tuple(row[:width]), -1) for row in rows), np.int64, len(rows))
        cells, counts = (np.fromiter((int(row[width + i]) for row in rows), np.int64, len(rows)) for i in (0, 1))
    else:
        columns = engine.whole_columns(statement).open(receipt) or [np.zeros(0, np.int64)] * (width + 2)
        cells, counts = columns[-2], columns[-1]
        number = np.array([places.get(key, -1) for key in every or ()], np.int64)
        where = number[columns[0]] if width else np.zeros(len(cells), np.int64)
    order = np.lexsort((cells, where))
    ends = np.searchsorted(where[order], np.arange(len(keys) + 1))
    pieces = [order[ends[place] : ends[place + 1]] for place in range(len(keys))]
    return [(cells[piece], counts[piece]) for piece in pieces]


def _select(
    plan: NoisePlan, index: int, histograms: list[tuple[Ints, Ints]], receipt: Receipt
) -> list[tuple[float | int, ...]]:
    """One selection per group: the quantiles of these counts, or the index of the mode."""
    measurement, aggregate = plan.of(index), plan.query.aggregates[index]
    assert isinstance(aggregate, Selected)
    inputs = [aggregate.counts(*histogram) for histogram in histograms]
    each = measurement.mechanism.loss_at(measurement.sensitivity)
    paid = receipt.parallel(each, parts=len(histograms), touched=plan.groups)
    columns: list[list[float | int]] = [[] for _ in measurement.covers]
    for exact, own in zip(inputs, paid, strict=True):
        value = measurement.mechanism.release_at(SecretValue(exact), receipt=own, distance=measurement.sensitivity)
        for column, one in zip(columns, value if measurement.parts > 1 else (value,), strict=True):
            column.append(int(one) if one.denominator == 1 else float(one))
    return [tuple(column) for column in columns]
