"""MIN, MAX, quantiles and MODE among several parties: only the selected value becomes known.

Report noisy max over public candidates. The utilities of the candidates add up over the parties, or are distances of
such sums. They are shared (:mod:`.shared_computation`) with the parties' shares of discrete Laplace noise, and the
largest is found in shares: the analyst opens its index, nobody any utility. The loss is that of report noisy max (Dwork
and Roth 2014, Claim 3.9), also towards parties who know their own shares of the noise: they change the utilities by
constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.arrays import Ints
from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.mechanisms.quantile import Quantile
from sfumato.dp.noise_shares import laplace_shares
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import round_scale_up
from sfumato.engines.engine import Running
from sfumato.errors import PartyFailed
from sfumato.parties.prime_field import Elements, add, from_signed, subtract, to_signed
from sfumato.parties.shared_computation import SharedComputation, recombined
from sfumato.query.execute.executor import (
    NoisyTable,
    exact_histograms,
    exact_vectors,
    public_groups,
    shared_measurements,
    shared_size,
    split_parts,
)
from sfumato.query.plan.aggregates import BinCounts
from sfumato.query.plan.noise import NoisePlan
from sfumato.secret import SecretValue

MOST_CANDIDATES = 1024
"""Of one quantile; finer grids are rounded to that many values."""
_LARGEST = 1 << 52
Histograms = list[tuple[Ints, Ints]]
Prepared = tuple[list[Ints], list[Ints]]


@dataclass(frozen=True, kw_only=True)
class SharedChoice:
    """One quantile or mode of each group."""

    aggregate: int
    source: int
    """The aggregate whose histogram is used: quantiles of one column have the same."""
    candidates: int
    stride: int = 1
    """Cells of the histogram per candidate."""
    shift: int = 0
    """Cells by which a row is moved up before it is rounded down to a candidate."""
    noise: Fraction
    """Scale in steps of the utility."""
    quantile: tuple[int, int, int] | None = None
    """Steps of the utility per row, times the rank, and steps of the margin; None for a mode."""

    @classmethod
    def of_quantile(
        cls, mechanism: Quantile, *, aggregate: int, source: int, noise: Fraction, stride: int = 1, shift: int = 0
    ) -> SharedChoice:
        """A quantile with noise of that scale in rows."""
        scale = mechanism.rank.denominator * mechanism.margin.denominator
        inward = int(mechanism.margin * scale) * (1 if mechanism.rank else -1)
        return cls(
            aggregate=aggregate, source=source, candidates=mechanism.cells, stride=stride, shift=shift,
            noise=round_scale_up(noise * scale),
            quantile=(scale, int(mechanism.rank * scale), inward),
        )  # fmt: skip

    def counts(self, histograms: Histograms) -> Ints:
        """Rows of each group and candidate."""
        counts = np.zeros((len(histograms), self.candidates), np.int64)
        for row, (cells, numbers) in zip(counts, histograms, strict=True):
            np.add.at(row, (cells + self.shift) // self.stride, numbers)
        return counts

    def run(self, computation: SharedComputation, counts: Ints, noise_shares: int) -> Elements:
        """Shares of the index that is selected in each group."""
        noise = laplace_shares(self.noise, noise_shares, counts.size).reshape(counts.shape)
        if self.quantile is None:
            return _largest(computation, computation.total(from_signed(_clipped(counts) + noise)))
        scale, ranked, inward = self.quantile
        up, total = np.cumsum(counts, axis=1), counts.sum(axis=1, keepdims=True)
        # The distance of the rows below a candidate from what they should be; rows at it count on either side.
        own = np.stack([_clipped((up - counts) * scale - total * ranked), _clipped(up * scale - total * ranked), noise])
        least, most, drawn = computation.total(from_signed(own))
        aim = from_signed(inward)
        over, under = add(least, aim), subtract(from_signed(np.zeros_like(counts)), add(most, aim))
        both = np.concatenate([over.ravel(), under.ravel()])
        positive = computation.negative(subtract(from_signed(np.zeros(len(both), np.int64)), both))
        beyond = computation.product(positive, both).reshape(2, *counts.shape)
        return _largest(computation, subtract(drawn, add(beyond[0], beyond[1])))


@dataclass(frozen=True, kw_only=True)
class Selections:
    """What all parties compute for a query with public keys, from public facts: sums, and choices of each group."""

    choices: tuple[SharedChoice, ...]
    scales: tuple[tuple[Fraction, int], ...]
    """Of each measurement that is a sum: the scale of its noise in steps, and how many numbers it has."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the analyst should know about the answer."""
        most = max(choice.candidates for choice in self.choices)
        return (f"Values are selected by report noisy max among up to {most:,} candidates of each group.",)

    def exact(self, plan: NoisePlan, engine: Running, receipt: Receipt) -> SecretValue[Any]:
        """What :meth:`prepared` takes."""
        sums = exact_vectors(plan, engine, receipt).open(receipt) if self.scales else []
        histograms = exact_histograms(plan, engine, receipt, {choice.source for choice in self.choices}).open(receipt)
        return SecretValue((sums, histograms))

    def prepared(self, exact: tuple[list[Ints], dict[int, Histograms]], *, salt: bytes) -> Prepared:
        """One party's own numbers: all that takes a time that depends on its data."""
        sums, histograms = exact
        whole = [_clipped(own.astype(np.int64)) for own in sums]
        return whole, [choice.counts(histograms[choice.source]) for choice in self.choices]

    def run(self, computation: SharedComputation, prepared: Prepared, *, noise_shares: int) -> bytes:
        """One party's side: from what it prepared to its shares of the result, for the analyst."""
        sums, counts = prepared
        parts = [np.zeros(0, np.uint64)]
        for (scale, size), own in zip(self.scales, sums, strict=True):
            parts.append(computation.total(from_signed(own + laplace_shares(scale, noise_shares, size))))
        parts += [choice.run(computation, own, noise_shares) for choice, own in zip(self.choices, counts, strict=True)]
        return np.concatenate(parts).astype("<u8").tobytes()

    def table(self, plan: NoisePlan, shares: Sequence[bytes]) -> NoisyTable:
        """The analyst's side."""
        keys = public_groups(plan.query)
        assert keys is not None
        numbers = to_signed(recombined(shares)).tolist()
        if len(numbers) != sum(size for _, size in self.scales) + len(self.choices) * len(keys):
            raise PartyFailed("The parties' shares of the result do not fit together.")
        values: dict[int, tuple[float | int, ...]] = {}
        for measurement in shared_measurements(plan):
            size = shared_size(plan, measurement)
            own, numbers = numbers[:size], numbers[size:]
            values |= split_parts(measurement, in_units(own, measurement.mechanism))
        for choice in self.choices:
            own, numbers = numbers[: len(keys)], numbers[len(keys) :]
            if any(not 0 <= index < choice.candidates for index in own):
                raise PartyFailed("The parties' shares of the result do not fit together.")
            aggregate = plan.query.aggregates[choice.aggregate]
            if isinstance(aggregate, BinCounts):
                step = aggregate.grid * choice.stride
                high = aggregate.low + (aggregate.cells - 1) * aggregate.grid
                chosen = [min(aggregate.low + index * step, high) for index in own]
                values[choice.aggregate] = tuple(int(v) if v.denominator == 1 else float(v) for v in chosen)
            else:
                values[choice.aggregate] = tuple(own)
        return NoisyTable(keys=keys, values=values)


def in_units(steps: Sequence[int], mechanism: object) -> tuple[float | int, ...]:
    """Noisy steps in the answer's own unit."""
    assert isinstance(mechanism, Laplace)
    return tuple(steps) if mechanism.grid == 1 else tuple(float(value * Fraction(mechanism.grid)) for value in steps)


def _clipped(values: Ints) -> Ints:
    """Numbers of one party, so that no sum leaves the range of comparisons."""
    return np.clip(values, -_LARGEST, _LARGEST)


def _largest(computation: SharedComputation, values: Elements) -> Elements:
    """Shares of the index of the largest number of each row, by a tournament; the first of equal ones."""
    index = np.broadcast_to(np.arange(values.shape[1], dtype=np.uint64), values.shape)
    while values.shape[1] > 1:
        even = values.shape[1] // 2 * 2
        left, right = np.s_[:, 0:even:2], np.s_[:, 1:even:2]
        shape = values[left].shape
        later = computation.negative(subtract(values[left], values[right]).ravel()).reshape(shape)
        apart = np.stack([subtract(values[right], values[left]), subtract(index[right], index[left])])
        moved = computation.product(np.stack([later, later]), apart)
        values = np.concatenate([add(values[left], moved[0]), values[:, even:]], axis=1)
        index = np.concatenate([add(index[left], moved[1]), index[:, even:]], axis=1)
    return index[:, 0].copy()
