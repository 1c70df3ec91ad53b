"""From a strategy and a receipt to noisy numbers: run, put in order, add noise. Nothing exact leaves this module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import isnan, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.dp.receipt import Receipt
from sfumato.engines.engine import Running
from sfumato.query.execute.sqlgen import Listed, additive, bounded, cells, distinct, group_columns, written_out
from sfumato.query.plan.aggregates import Cells, Count, Distinct, Sum
from sfumato.query.plan.noise import Draw, Strategy
from sfumato.secret import SecretValue

__all__ = ["Released", "add_up", "check", "compute", "statements"]

Key = tuple[Any, ...]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Released:
    """Noisy numbers by group: safe to keep and to show."""

    keys: tuple[Key, ...]
    values: dict[int, tuple[float | int, ...]]
    """Per measurement, one number per key."""


def check(strategy: Strategy, engine: Running) -> None:
    """Refuse, before anything is spent, what this engine cannot compute exactly, and noise too large to be drawn.
    Looks at no data."""
    for draw in strategy.draws:
        draw.mechanism.check_drawable()
    for sql in statements(strategy, 0, engine.listed):
        engine.check(sql)


def statements(strategy: Strategy, secret: int, listed: Listed = written_out) -> Iterator[str]:
    """Everything that ``compute`` will run."""
    measured = strategy.question.measurements
    if strategy.selection is not None or any(isinstance(m, Count | Sum) for m in measured):
        yield additive(strategy, secret, listed)
    for i, measurement in enumerate(measured):
        if isinstance(measurement, Distinct):
            yield distinct(strategy, measurement, secret, listed)
        elif isinstance(measurement, Cells) and strategy.of(i).measurement == i:
            yield cells(strategy, measurement, secret, listed)


def add_up(strategy: Strategy, engine: Running, secret: int) -> SecretValue[list[tuple[Any, ...]]]:
    """The exact, bounded counts and sums, in the faster of the ways that the engine has."""
    pieces = bounded(strategy, secret, engine.listed) if engine.folds else None
    found = None if pieces is None else engine.fold(pieces)
    return engine.run(additive(strategy, secret, engine.listed)) if found is None else found


def compute(strategy: Strategy, engine: Running, receipt: Receipt) -> Released:
    """Answer with noise; all groups' noise is drawn in batches whose size is public or itself private."""
    question = strategy.question
    receipts = _receipts(strategy, receipt)
    secret = int.from_bytes(os.urandom(7), "little")
    width = len(group_columns(question))
    groups = tuple(product(*(key.values or () for key in question.keys))) if question.public_keys else None

    def key_of(row: Key) -> Key:
        return _plain(row[:width]) if groups is None or not width else groups[row[0]]

    added = [i for i, m in enumerate(question.measurements) if isinstance(m, Count | Sum)]
    table: dict[Key, Key] = {}
    if added or strategy.selection is not None:
        rows = add_up(strategy, engine, secret).open(receipt)
        table = {key_of(row): tuple(row[width:]) for row in rows}
    if strategy.naming is not None:
        keys = _known(strategy, table)
    else:
        keys = groups if groups is not None else _named(strategy, table, receipts)
    values: dict[int, tuple[float | int, ...]] = {}
    place = 0
    for i in added:
        draw = strategy.of(i)
        if draw.measurement != i:
            continue  # a share, released with the first
        blank = (0,) * draw.parts
        lying = (table[key][place : place + draw.parts] if key in table else blank for key in keys)
        exact = np.array([int(value) for row in lying for value in row], dtype=object)
        place += draw.parts
        noisy = _noisy(draw, SecretValue(exact), receipts[i])
        for part, index in enumerate(draw.covers):
            values[index] = noisy[part :: draw.parts]
    if strategy.naming is not None:
        keys = _keep_named(strategy.naming, keys, values)
    for i, measurement in enumerate(question.measurements):
        if isinstance(measurement, Distinct):
            rows = engine.run(distinct(strategy, measurement, secret, engine.listed)).open(receipt)
            found = {key_of(row): int(row[width]) for row in rows}
            exact = np.array([found.get(key, 0) for key in keys], dtype=object)
            values[i] = _noisy(strategy.of(i), SecretValue(exact), receipts[i])
        elif isinstance(measurement, Cells) and strategy.of(i).measurement == i:
            rows = engine.run(cells(strategy, measurement, secret, engine.listed)).open(receipt)
            where = None if not width else _places(rows, width, keys, numbered=groups is not None)
            chosen = _quantiles(strategy, i, _histograms(rows, width, where, len(keys)), receipts[i])
            values |= dict(zip(strategy.of(i).covers, chosen, strict=True))
    return Released(keys=keys, values=values)


def _plain(key: Key) -> Key:
    """A private key as any of its equals: whose zero or NaN, with what sign, an engine shows for all is not private."""
    return tuple([(part + 0.0 if part == part else nan) if isinstance(part, float) else part for part in key])


def _receipts(strategy: Strategy, receipt: Receipt) -> dict[int | None, Receipt]:
    """Every draw's own receipt, out of the parts that were reserved."""
    parts = receipt.split(*strategy.parts)
    return {draw.measurement: parts[draw.reservation] for draw in strategy.draws}


def _named(strategy: Strategy, table: dict[Key, Key], receipts: dict[int | None, Receipt]) -> tuple[Key, ...]:
    """The private keys that may be named, in their order."""
    draw = strategy.selection
    assert draw is not None
    known = _known(strategy, table)
    units = SecretValue(np.array([int(table[key][-1]) for key in known], dtype=np.int64))
    kept = draw.mechanism.release_at(units, receipt=receipts[None], distance=draw.sensitivity) if known else []
    named = [key for key, keep in zip(known, kept, strict=True) if keep]
    return tuple(sorted(named))


def _known(strategy: Strategy, table: dict[Key, Key]) -> tuple[Key, ...]:
    """All keys that anybody has, private ones included."""
    public = [None if key.values is None else set(key.values) for key in strategy.question.keys]
    known = [key for key in table if all(p is None or part in p for p, part in zip(public, key, strict=True))]
    return tuple(sorted(known, key=lambda key: [str(part) for part in key]))


def _keep_named(naming: Draw, keys: tuple[Key, ...], values: dict[int, tuple[float | int, ...]]) -> tuple[Key, ...]:
    """Leave out, of keys and values, the keys that the noisy count withholds (NaN), and put the rest in order."""
    shown = values[naming.covers[0]]
    places = sorted((i for i in range(len(keys)) if not isnan(shown[i])), key=lambda i: keys[i])
    noise = naming.mechanism.noise
    whole = noise is not None and noise.grid == 1
    for index, column in values.items():
        kept = [column[i] for i in places]
        values[index] = tuple(int(v) for v in kept) if whole and index in naming.covers else tuple(kept)
    return tuple(keys[i] for i in places)


def _noisy(draw: Draw, exact: SecretValue[Any], receipt: Receipt) -> tuple[float | int, ...]:
    return tuple(draw.mechanism.release_at(exact, receipt=receipt, distance=draw.sensitivity).tolist())


def _places(rows: list[Key], width: int, keys: tuple[Key, ...], *, numbered: bool) -> Ints:
    """Each row's group by its place among the keys; -1 for keys that are not named."""
    if numbered:
        return np.fromiter((int(row[0]) for row in rows), np.int64, len(rows))
    places = {key: place for place, key in enumerate(keys)}
    return np.fromiter((places.get(tuple(row[:width]), -1) for row in rows), np.int64, len(rows))


def _histograms(rows: list[Key], width: int, where: Ints | None, groups: int) -> list[tuple[Ints, Ints]]:
    """For each group its cells, ascending, and their counts."""
    cells_at = np.fromiter((int(row[width]) for row in rows), np.int64, len(rows))
    counts = np.fromiter((int(row[width + 1]) for row in rows), np.int64, len(rows))
    if where is None:
        order = np.argsort(cells_at)
        return [(cells_at[order], counts[order])]
    order = np.lexsort((cells_at, where))
    ends = np.searchsorted(where[order], np.arange(groups + 1))
    pieces = [order[ends[place] : ends[place + 1]] for place in range(groups)]
    return [(cells_at[piece], counts[piece]) for piece in pieces]


def _quantiles(
    strategy: Strategy, index: int, histograms: list[tuple[Ints, Ints]], receipt: Receipt
) -> list[tuple[float | int, ...]]:
    """For each quantile that is chosen from these numbers, one value per group."""
    draw = strategy.of(index)
    each = draw.mechanism.loss_at(draw.sensitivity)
    paid = receipt.parallel(each, parts=len(histograms), touched=strategy.groups)
    found: list[list[float | int]] = [[] for _ in draw.covers]
    for histogram, own in zip(histograms, paid, strict=True):
        value = draw.mechanism.release_at(SecretValue(histogram), receipt=own, distance=draw.sensitivity)
        for column, one in zip(found, value if draw.parts > 1 else (value,), strict=True):
            column.append(int(one) if one.denominator == 1 else float(one))
    return [tuple(column) for column in found]
