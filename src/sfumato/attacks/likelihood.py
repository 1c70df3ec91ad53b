"""Likelihood of perturbations under a published masking, estimated by rerunning it.

For each column, transitions from rank or category to rank or category are counted. The score of a row for a person is
the log-likelihood ratio summed over columns: how much more likely the released value is for this person than for
anybody. Perturbations of different columns are taken as independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.features import numbers
from sfumato.attacks.normalize import canonical
from sfumato.attacks.remasking import coarsened
from sfumato.attacks.shared_simulations import MaskingRounds, masking_rounds
from sfumato.dataset import Data, Kind
from sfumato.deadline import quiet, split_deadline
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.masking.base import Step
from sfumato.progress import Progress

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_SYNTHETIC_FILES = 60
"""Maximum number of synthetic files on which a deterministic method is simulated."""
_SMOOTHING = 20
"""Transitions are smoothed over this fraction (one over it) of all cells on either side."""


@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """The likelihood of perturbations, column by column."""

    scales: tuple[Scale, ...]
    counts: tuple[Floats, ...]
    rounds: int
    emptied: frozenset[str] = frozenset()
    """Columns in which a published step may have suppressed cells, so that a blank is no evidence."""

    @classmethod
    def learn(
        cls,
        view: View,
        similar: Data,
        steps: Sequence[Step],
        progress: Progress,
        *,
        cells: int,
    ) -> Likelihood:
        """Mask a file similar to the original repeatedly and count the transitions of the known columns."""
        scales = [
            Scale.of(view.targets.get_column(name), view.release.table.column(name), cells) for name in view.knows
        ]
        usable = tuple(scale for scale in scales if scale is not None)
        if not usable:
            raise NotApplicable("No known column can be compared with the release.", columns=view.knows)
        # Without steps all rounds are the same.
        planned = int(np.clip(-(-400_000 // similar.rows), 1, 400)) if steps else 1
        # Half of the time is for simulation, the rest for linking.
        half = split_deadline(progress, 2)
        seen = _perturbations(usable, masking_rounds(similar, steps), half, planned)
        return cls(scales=usable, counts=seen.counts, rounds=seen.rounds, emptied=coarsened(view))

    @property
    def table(self) -> Singles:
        """The score of each pair of cells, per column."""
        width = max(scale.size for scale in self.scales)
        table = np.zeros((len(self.scales), width, width), dtype=np.float32)
        for index, count in enumerate(self.counts):
            table[index, : len(count), : len(count)] = _advantage(count)
            if self.scales[index].name in self.emptied:
                table[index, :, len(count) - 1] = 0.0
        return table

    def places(self, frame: pl.DataFrame) -> Ints:
        """The cell of each value in the compared columns, one row per person."""
        return np.column_stack([scale.place(frame.get_column(scale.name)) for scale in self.scales])


@dataclass(frozen=True, kw_only=True)
class Perturbations:
    """Transitions of values in some rounds of simulated masking."""

    counts: tuple[Floats, ...]
    """Per column, the transition counts from cell to cell."""
    rounds: int
    deterministic: bool = False
    """Whether two rounds gave the same result, so that no more were run."""


def _perturbations(scales: Sequence[Scale], simulated: MaskingRounds, progress: Progress, rounds: int) -> Perturbations:
    """Transitions in all rounds, counted once for all attacks that compare the same cells."""
    key = sha256("".join(f"{scale.name}\x00{scale.size}\x00{scale.cells_key()}" for scale in scales).encode())
    name = f"{rounds} {key.hexdigest()}"
    counted = simulated.counted.get(name)
    if isinstance(counted, Perturbations):
        return counted
    seen = simulate_perturbations(scales, simulated, progress, rounds)
    complete = seen.rounds == rounds
    if seen.deterministic and rounds > seen.rounds:
        more = min(_SYNTHETIC_FILES, rounds - seen.rounds)
        wanted = seen.rounds + more
        seen = _on_synthetic_files(scales, seen, simulated, progress, more)
        complete = seen.rounds == wanted
    if complete:
        simulated.counted[name] = seen
    return seen


def simulate_perturbations(
    scales: Sequence[Scale], simulated: MaskingRounds, progress: Progress, rounds: int
) -> Perturbations:
    """Mask a file ``rounds`` times, or as often as time allows, and count the transitions of values.

    The rounds are those of every other attack that simulates the same masking of the same file.
    """
    counts = tuple(np.zeros((scale.size, scale.size)) for scale in scales)
    first: list[list[tuple[Ints, Ints]]] = []
    frame = simulated.data.table.frame
    originals = [scale.place(frame[scale.name]) for scale in scales]
    done = 0
    try:
        with progress.task("simulating the masking", rounds) as tick:
            for number in range(rounds):
                masked, origin = simulated.round(number, quiet(progress))
                pairs = [
                    _moved(scale, frame, masked, original, origin)
                    for scale, original in zip(scales, originals, strict=True)
                ]
                for count, (left, right) in zip(counts, pairs, strict=True):
                    count += np.bincount(left * len(count) + right, minlength=count.size).reshape(count.shape)
                if number < 2:
                    first.append(pairs)
                done += 1
                if done == 2 and all(map(np.array_equal, *first)):
                    return Perturbations(counts=counts, rounds=2, deterministic=True)
                tick(1)
    except OutOfTime:
        if done == 0:
            raise
    return Perturbations(counts=counts, rounds=done)


def _moved(scale: Scale, frame: pl.DataFrame, masked: pl.DataFrame, cells: Ints, origin: Ints) -> tuple[Ints, Ints]:
    """The cells of one column before and after a round of masking."""
    before = cells[origin]
    unchanged = scale.name in masked.columns and masked[scale.name].equals(frame[scale.name][origin])
    return before, before if unchanged else scale.released_cells(masked)


def _on_synthetic_files(
    scales: Sequence[Scale], seen: Perturbations, simulated: MaskingRounds, progress: Progress, rounds: int
) -> Perturbations:
    """Simulate a deterministic method on synthetic files similar to the given one, a different one each round.

    On the file itself the result is always the same. It is exact if the file is the original and nearly useless if it
    differs a little, so it has a weight of one tenth.
    """
    totals = [np.zeros_like(count) for count in seen.counts]
    done = 0
    with suppress(OutOfTime):
        for number in range(rounds):
            more = simulate_perturbations(scales, simulated.varied(number), progress, 1)
            for total, count in zip(totals, more.counts, strict=True):
                total += count
            done += 1
    if done == 0:
        return seen
    usual = [
        _smoothed(total) if scale.edges is not None else total for scale, total in zip(scales, totals, strict=True)
    ]
    blended = tuple(
        0.1 * _shares(count) + 0.9 * _shares(total) for count, total in zip(seen.counts, usual, strict=True)
    )
    return Perturbations(counts=blended, rounds=seen.rounds + done)


def _shares(counts: Floats) -> Floats:
    """Counts as shares of their sum; no shares where no simulated row is that of a person."""
    return counts / max(float(counts.sum()), 1.0)


class Scale:
    """A column divided into cells: intervals of ranks in the release for numbers, values for categories."""

    def __init__(self, name: str, size: int, edges: Floats | None, values: Mapping[str, int] | None) -> None:
        self.name, self.size, self.edges, self.values = name, size, edges, values

    @classmethod
    def of(cls, known: pl.Series, released: pl.Series, cells: int) -> Scale | None:
        """The scale of a column's known and released values; None if they are constant or too many."""
        name = released.name
        if Kind.of(known.dtype) is not Kind.CATEGORY and Kind.of(released.dtype) is not Kind.CATEGORY:
            level = numbers(released)
            ordered = np.sort(level[np.isfinite(level)]) if level is not None else np.empty(0)
            if len(ordered) == 0 or ordered[0] == ordered[-1]:
                return None
            count = min(cells, len(ordered))
            edges = ordered[(np.arange(1, count) * len(ordered)) // count]
            return cls(name, count + 1, edges, None)
        labels = pl.concat([canonical(known), canonical(released)]).unique().drop_nulls().sort().to_list()
        if not 1 < len(labels) < cells:
            return None
        return cls(name, len(labels) + 1, None, {label: code for code, label in enumerate(labels)})

    def cells_key(self) -> str:
        """The division in words: equal for scales that place every value in the same cell."""
        return repr(self.values) if self.edges is None else self.edges.tobytes().hex()

    def place(self, series: pl.Series) -> Ints:
        """The cell of each value; the last cell is for missing and unknown values."""
        if self.edges is not None:
            level = numbers(series)
            assert level is not None
            place = np.searchsorted(self.edges, np.nan_to_num(level), side="right")
            return np.where(np.isfinite(level), place, self.size - 1).astype(np.int64)
        assert self.values is not None
        # A short column is placed in each of hundreds of rounds: a dictionary is ten times as fast as a query.
        labels = canonical(series).to_list()
        return np.array([self.values.get(label, self.size - 1) for label in labels], dtype=np.int64)

    def released_cells(self, frame: pl.DataFrame) -> Ints:
        """The cell of each row of a masked file; a removed column is missing."""
        if self.name in frame.columns:
            return self.place(frame[self.name])
        return np.full(frame.height, self.size - 1, dtype=np.int64)


def _smoothed(counts: Floats) -> Floats:
    """Transition counts averaged over nearby cells, for transitions of the same distance."""
    size = len(counts) - 1  # the last cell is for missing values
    cell = np.arange(size)
    distance = cell[None, :] - cell[:, None] + size
    slanted = np.zeros((size, 2 * size))
    slanted[cell[:, None], distance] = counts[:size, :size]
    width = max(1, size // _SMOOTHING)
    total = np.vstack([np.zeros((1, 2 * size)), np.cumsum(slanted, axis=0)])
    first, last = np.maximum(cell - width, 0), np.minimum(cell + width + 1, size)
    usual = (total[last] - total[first]) / (last - first)[:, None]
    smoothed = counts.copy()
    smoothed[:size, :size] = usual[cell[:, None], distance]
    return smoothed


def _advantage(counts: Floats) -> Floats:
    """Log-likelihood ratio of a transition against independence, with a floor for transitions never simulated."""
    total = counts.sum()
    before, after = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    expected = before * after / (total if total > 0 else 1.0)
    # A small share of independence keeps transitions possible that were never simulated.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(expected > 0, (counts + 0.02 * expected) / (expected * 1.02), 1.0)
    return np.log(np.maximum(ratio, 1e-3))
