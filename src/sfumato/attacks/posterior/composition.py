"""Channels of columns that several steps changed, composed from the channels of the steps.

Likelihood ratios compose like matrices. With values y between two steps, drawn as the first step releases them,

    P(z | x) / P(z) = mean over y of P(y | x) / P(y) times P(z | y) / P(z).

The adversary draws them by running the published steps on the known people. Steps without randomness come first or in
between: known people are replaced by their result at the beginning, and later all values with the same result are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats, Ints
from sfumato.attacks.posterior.scores import ChannelTerms, RowEvidence, Singles
from sfumato.data.row_codes import value_codes
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.deadline import check_deadline
from sfumato.errors import SfumatoError
from sfumato.masking.base import Context, Step, method_of
from sfumato.masking.channel import PublicKnowledge, as_numbers
from sfumato.progress import Progress
from sfumato.rng import Rng

_CELLS = 600
"""Values of a column that stand for all: those known, and those released."""
_NODES = 800
"""Values between two steps in one round."""
_DRAWN = 2400
"""Values between two steps in all rounds, if there are fewer people than nodes."""
_MOST_PEOPLE = 20_000
"""People on whom the steps are run."""
_FEW = 5
"""A released value with fewer values before a step without randomness counts as unchanged by it."""
_ANOTHER = 0.005
"""Share of independence, for released values that no drawn one led to."""


@dataclass(frozen=True, kw_only=True)
class PublishedStep:
    """A step of the manifest, and its method with the published parameters for the known columns."""

    entry: Mapping[str, Any]
    part: Step

    @classmethod
    def of(cls, entry: Mapping[str, Any], columns: Sequence[str]) -> PublishedStep | None:
        """None if the step cannot be run on these columns alone."""
        method = method_of(entry)
        for names in method.joint_columns(entry):
            if set(names) & set(columns) and not set(names) <= set(columns):
                return None
        try:
            return cls(entry=entry, part=method.build(method.restricted(entry, columns)))
        except SfumatoError:
            return None

    def run(self, frame: pl.DataFrame, rng: Rng) -> pl.DataFrame | None:
        schema = Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns})
        try:
            change = self.part.apply(Data(table=Table(frame=frame), schema=schema), Context(rng=rng))
        except SfumatoError:
            return None
        return change.table.frame if change.rows is None else None

    def certain(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        """The only result of a step on this table; None if it is random."""
        first, second = (self.run(frame, Rng(seed)) for seed in (1, 2))
        return first if first is not None and second is not None and first.equals(second) else None

    def changes(self, name: str) -> bool:
        return bool(type(self.part).changed_columns(self.entry, (name,)))


def without_certain_start(
    steps: Sequence[PublishedStep], people: pl.DataFrame
) -> tuple[Sequence[PublishedStep], pl.DataFrame]:
    """The steps from the first random one on, and the known people as they came to it."""
    while steps and people.height <= _MOST_PEOPLE:
        result = steps[0].certain(people)
        if result is None:
            break
        steps, people = steps[1:], result
    return steps, people


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """Some rows of a column that stand for all of its values, and which one stands for a value."""

    rows: Ints
    values: Floats | None
    labels: Mapping[object, int]

    @classmethod
    def of(cls, series: pl.Series) -> _Cells | None:
        if series.dtype.is_numeric() or series.dtype.is_temporal():
            numbers = as_numbers(series)
            order = np.argsort(numbers, kind="stable")[: int(np.isfinite(numbers).sum())]
            if not len(order):
                return None
            distinct = order[np.flatnonzero(np.diff(numbers[order], prepend=-np.inf))]
            kept = distinct[
                np.unique(np.linspace(0, len(distinct) - 1, min(_CELLS, len(distinct))).round().astype(int))
            ]
            missing = np.flatnonzero(~np.isfinite(numbers))[:1]
            return cls(rows=np.append(kept, missing), values=numbers[kept], labels={})
        codes = value_codes(series)[0]
        first = np.unique(codes, return_index=True)[1]
        if len(first) > _CELLS:
            return None
        return cls(rows=first, values=None, labels={value: n for n, value in enumerate(series.gather(first).to_list())})

    def place(self, series: pl.Series) -> Ints:
        """The number of the row that stands for each value; one more than the last where none does."""
        if self.values is None:
            return np.array([self.labels.get(value, len(self.rows)) for value in series.to_list()], dtype=np.int64)
        numbers = as_numbers(series)
        near = np.searchsorted((self.values[1:] + self.values[:-1]) / 2, np.nan_to_num(numbers))
        return np.where(np.isfinite(numbers), near, len(self.values)).astype(np.int64)


def composed(
    steps: Sequence[PublishedStep],
    people: pl.DataFrame,
    target_rows: Ints,
    released: pl.DataFrame,
    names: Sequence[str],
    progress: Progress,
) -> Iterator[tuple[str, tuple[Ints, Ints, Singles]]]:
    """For each of these columns whose steps all state a channel: the numbers of the known and of the released values,
    and the logarithm of the likelihood ratio of each pair."""
    some = people
    if people.height > _MOST_PEOPLE:
        some = people[np.sort(Rng(0).child("people").generator.choice(people.height, _MOST_PEOPLE, replace=False))]
    runs: list[list[pl.DataFrame]] = []
    for number in range(int(np.clip(_DRAWN // some.height, 1, 8))):
        frames = [some]
        for place, step in enumerate(steps[:-1]):
            check_deadline(progress)
            after = step.run(frames[-1], Rng(0).child("between", number, place))
            if after is None:
                return
            frames.append(after)
        runs.append(frames)
    for name in names:
        known, seen = _Cells.of(some[name]), _Cells.of(released[name])
        if known is None or seen is None:
            continue
        code, other = known.place(people[name][target_rows]), seen.place(released[name])
        ratios = [_ratios(steps, frames, name, released, known.rows, seen) for frames in runs]
        if any(ratio is None for ratio in ratios):
            continue
        check_deadline(progress)
        total = np.mean([ratio for ratio in ratios if ratio is not None], axis=0)
        share = np.bincount(other, minlength=total.shape[1])[: total.shape[1]] / len(other)
        total = (total + _ANOTHER) / np.maximum((total + _ANOTHER) @ share, 1e-12)[:, None]
        table = np.zeros((len(total) + 1, total.shape[1] + 1), dtype=np.float32)
        table[:-1, :-1] = np.log(total)
        yield name, (code, other, table)


def _ratios(
    steps: Sequence[PublishedStep],
    frames: Sequence[pl.DataFrame],
    name: str,
    released: pl.DataFrame,
    rows: Ints,
    seen: _Cells,
) -> Floats | None:
    """P(released | known) / P(released) for some known and released values, by one run of the steps."""
    places = [place for place, step in enumerate(steps) if step.changes(name)]
    last = places[-1]
    ends = seen.rows
    # The people in the columns of `total`, after the steps so far; the people themselves before the first one.
    total: Floats | None = None
    for place in places:
        step, before = steps[place], frames[place].select(name)
        single = PublishedStep.of(step.entry, (name,))
        result = None if single is None else single.certain(before)
        if result is not None:
            if total is None:
                return None
            reached = seen.place(result[name]) if place == last else value_codes(result[name])[0].astype(np.int64)
            means, count = _means(total[:, : before.height], reached)
            if place != last:
                total = means[:, reached]
                continue
            # The values of the release itself stand behind those of the people.
            direct, few = total[:, before.height :], np.zeros(len(ends), dtype=bool)
            found = np.zeros(direct.shape)
            size = min(len(ends), means.shape[1])
            found[:, :size] = means[:, :size]
            few[:] = np.append(count[:size], np.zeros(len(ends) - size)) < _FEW
            found[:, few] = direct[:, few]
            return found
        after = released.select(name) if place == last else frames[place + 1].select(name)
        if place != last and places[places.index(place) + 1] == last:
            after = after.vstack(released[ends].select(pl.col(name).cast(after.schema[name], strict=False)))
        nodes = rows if total is None else np.arange(before.height)
        if total is not None and len(nodes) > _NODES:
            nodes = Rng(0).child("nodes", place).generator.choice(nodes, _NODES, replace=False)
        ratio = _channel_ratios(step, name, before, nodes, after)
        if ratio is None:
            return None
        if place == last:
            ratio = ratio[:, ends]
        total = ratio if total is None else total[:, nodes] @ ratio / len(nodes)
    return total


def _channel_ratios(
    step: PublishedStep, name: str, before: pl.DataFrame, rows: Ints, after: pl.DataFrame
) -> Floats | None:
    knowledge = PublicKnowledge(targets=before[rows], people=before, target_rows=rows, released=after, complete=True)
    terms = ChannelTerms(after.height)
    for channel in type(step.part).channels(step.entry, knowledge):
        terms.add(channel)
    if terms.empty:
        return None
    evidence = RowEvidence(
        targets=len(rows),
        rows=after.height,
        columns=(name,),
        bonus=terms.bonus,
        equal=tuple(terms.equal),
        tables=tuple(terms.tables),
        points=tuple(terms.points),
    )
    return np.exp(np.minimum(evidence.block(slice(None)), 50.0)).astype(np.float64)


def _means(total: Floats, reached: npt.NDArray[np.int64]) -> tuple[Floats, Ints]:
    """The mean over the columns with each number, and their counts."""
    count = np.bincount(reached)
    order = np.argsort(reached, kind="stable")
    sums = np.zeros((len(total), len(count)))
    held = np.flatnonzero(count)
    starts = np.concatenate([[0], np.cumsum(count[held])[:-1]])
    sums[:, held] = np.add.reduceat(total[:, order], starts, axis=1)
    return sums / np.maximum(count, 1), count
