"""How a published masking moves values, learned by running it again, and what that says of a person and a row.

For each column it is counted from which rank, or category, to which values move. The score of a row for a person is the
sum over columns of how much more likely the row's value is for this person than for anybody: the logarithm of a
likelihood ratio. Where columns were seen to move together, a Gaussian copula of how unusual each move is counts them
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit

from sfumato.attacks.base import View
from sfumato.attacks.features import numbers
from sfumato.attacks.normalize import canonical
from sfumato.attacks.remasking import coarsened, interpolate_records, mask_again
from sfumato.deadline import quiet, split_deadline
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.masking.base import Step
from sfumato.progress import Progress
from sfumato.rng import Rng
from sfumato.schema import Dataset, Kind

__all__ = ["PORTION", "Likelihood", "Moves", "Scale", "fill", "moves_of"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_TIED = 0.1
"""Moves of two columns that correlate by no more than this are taken as independent."""
_MOVES = 200_000
"""From about so many simulated rows correlations are taken."""
_VARIED = 60
"""So many files are made up at most to learn how a method without randomness moves values."""
_AROUND = 20
"""Moves from one in so many of all cells on either side are like those from a cell."""
PORTION = 50_000_000
"""So many values are compared, in a fraction of a second, before the clock is looked at."""


@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """What moves are likely, per column and together."""

    scales: tuple[Scale, ...]
    counts: tuple[Floats, ...]
    joint: Joint
    rounds: int
    emptied: frozenset[str] = frozenset()
    """Columns of which a published step may have emptied cells: there a blank says nothing."""

    @classmethod
    def learn(
        cls,
        view: View,
        stand_in: Dataset,
        steps: Sequence[Step],
        rng: Rng,
        progress: Progress,
        *,
        rounds: int | None,
        cells: int,
    ) -> Likelihood:
        """Mask a file like the original again and again, and count how the columns that the intruder knows move."""
        scales = [
            Scale.of(view.targets.get_column(name), view.release.table.column(name), cells) for name in view.knows
        ]
        usable = tuple(scale for scale in scales if scale is not None)
        if not usable:
            raise NotApplicable("No known column can be compared with the release.", columns=view.knows)
        # Without steps every round is the same.
        wanted = (rounds or int(np.clip(-(-400_000 // stand_in.rows), 1, 400))) if steps else 1
        # With little time few rounds are better than none, and the rest of it is for linking.
        half = split_deadline(progress, 2)
        seen = moves_of(usable, stand_in, steps, rng, half, wanted)
        if seen.settled and wanted > seen.rounds:
            seen = _varied_moves(usable, seen, stand_in, steps, rng, half, min(_VARIED, wanted - seen.rounds))
        joint = Joint.of(usable, seen.counts, list(seen.together))
        return cls(scales=usable, counts=seen.counts, joint=joint, rounds=seen.rounds, emptied=coarsened(view))

    @property
    def table(self) -> Singles:
        """For each column and each pair of cells the score."""
        width = max(scale.size for scale in self.scales)
        table = np.zeros((len(self.scales), width, width), dtype=np.float32)
        for index, count in enumerate(self.counts):
            table[index, : len(count), : len(count)] = _advantage(count)
            if self.scales[index].name in self.emptied:
                table[index, :, len(count) - 1] = 0.0
        return table

    @property
    def bits(self) -> dict[str, float]:
        """What one look at each column tells about a person."""
        return {scale.name: _bits(count) for scale, count in zip(self.scales, self.counts, strict=True)}

    @property
    def tied(self) -> list[str]:
        """The columns that were seen to move together."""
        return [self.scales[place].name for place in self.joint.columns]

    def places(self, frame: pl.DataFrame) -> Ints:
        """The cell of each value of the columns that are compared."""
        return np.column_stack([scale.place(frame.get_column(scale.name)) for scale in self.scales])


@dataclass(frozen=True, kw_only=True)
class Moves:
    """How values moved in some rounds of masking."""

    counts: tuple[Floats, ...]
    """Per column, how often values went from which cell to which."""
    together: tuple[tuple[Ints, Ints], ...]
    """Cells before and after of some rounds' rows in all columns."""
    rounds: int
    settled: bool = False
    """Whether the method did the same twice: it has no randomness, and was not asked again."""


def moves_of(
    scales: Sequence[Scale], stand_in: Dataset, steps: Sequence[Step], rng: Rng, progress: Progress, rounds: int
) -> Moves:
    """Mask a file so many times, or as often as time allows, and see how values move."""
    counts = tuple(np.zeros((scale.size, scale.size)) for scale in scales)
    together: list[tuple[Ints, Ints]] = []
    made = 0
    try:
        with progress.task("simulating the masking", rounds) as tick:
            for number in range(rounds):
                masked, origin = mask_again(stand_in, list(steps), rng.child("round", number), quiet(progress))
                before = stand_in.table.frame[origin]
                pairs = [scale.moved(before, masked) for scale in scales]
                for count, (left, right) in zip(counts, pairs, strict=True):
                    count += np.bincount(left * len(count) + right, minlength=count.size).reshape(count.shape)
                if number < max(2, _MOVES // stand_in.rows):
                    together.append((np.column_stack([a for a, _ in pairs]), np.column_stack([b for _, b in pairs])))
                made += 1
                if made == 2 and all(map(np.array_equal, *together)):
                    return Moves(counts=counts, together=tuple(together), rounds=2, settled=True)
                tick(1)
    except OutOfTime:
        if made == 0:
            raise
    return Moves(counts=counts, together=tuple(together), rounds=made)


def _varied_moves(
    scales: Sequence[Scale],
    seen: Moves,
    stand_in: Dataset,
    steps: Sequence[Step],
    rng: Rng,
    progress: Progress,
    rounds: int,
) -> Moves:
    """For a method without randomness: mostly how it moves people like those of the file, a different set each time.

    On the file itself it does the same always. That is the truth where the file is the original, and nearly worthless
    where it is not quite: so it counts for a tenth.
    """
    found = [np.zeros_like(count) for count in seen.counts]
    together: tuple[tuple[Ints, Ints], ...] = ()
    made = 0
    with suppress(OutOfTime):
        for number in range(rounds):
            own = rng.child("varied", number)
            frame = interpolate_records(stand_in.table.frame, stand_in.rows, own)
            others = Dataset(table=stand_in.table.with_frame(frame), schema=stand_in.schema)
            more = moves_of(scales, others, steps, own, progress, 1)
            together += more.together
            for total, count in zip(found, more.counts, strict=True):
                total += count
            made += 1
    if made == 0:
        return seen
    usual = [_around(total) if scale.edges is not None else total for scale, total in zip(scales, found, strict=True)]
    blended = tuple(
        0.1 * count / count.sum() + 0.9 * total / total.sum() for count, total in zip(seen.counts, usual, strict=True)
    )
    return Moves(counts=blended, together=together, rounds=seen.rounds + made)


class Scale:
    """One column as cells: ranks in the release for numbers, the values themselves for categories."""

    def __init__(self, name: str, size: int, edges: Floats | None, values: Mapping[str, int] | None) -> None:
        self.name, self.size, self.edges, self.values = name, size, edges, values

    @classmethod
    def of(cls, known: pl.Series, released: pl.Series, cells: int) -> Scale | None:
        """The scale on which a column's known and released values are compared; None when they say nothing."""
        name = released.name
        if Kind.of(known.dtype) is not Kind.CATEGORY and Kind.of(released.dtype) is not Kind.CATEGORY:
            level = numbers(released)
            held = np.sort(level[np.isfinite(level)]) if level is not None else np.empty(0)
            if len(held) == 0 or held[0] == held[-1]:
                return None
            count = min(cells, len(held))
            edges = held[(np.arange(1, count) * len(held)) // count]
            return cls(name, count + 1, edges, None)
        labels = pl.concat([canonical(known), canonical(released)]).unique().drop_nulls().sort().to_list()
        if not 1 < len(labels) < cells:
            return None
        return cls(name, len(labels) + 1, None, {label: code for code, label in enumerate(labels)})

    def place(self, series: pl.Series) -> Ints:
        """The cell of each value; the last cell is "missing or never seen"."""
        if self.edges is not None:
            level = numbers(series)
            assert level is not None
            place = np.searchsorted(self.edges, np.nan_to_num(level), side="right")
            return np.where(np.isfinite(level), place, self.size - 1).astype(np.int64)
        assert self.values is not None
        codes = canonical(series).replace_strict(self.values, default=self.size - 1, return_dtype=pl.Int64)
        return codes.fill_null(self.size - 1).to_numpy()

    def moved(self, before: pl.DataFrame, after: pl.DataFrame) -> tuple[Ints, Ints]:
        """From which cell to which each row went; a column that the masking dropped went missing."""
        left = self.place(before[self.name])
        gone = np.full(len(left), self.size - 1, dtype=np.int64)
        return left, self.place(after[self.name]) if self.name in after.columns else gone


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Columns that move together: how unusual each move is as a normal score, and what their correlation adds."""

    columns: Ints
    """Places of the columns among the scales."""
    scores: Singles
    excess: Singles
    """Inverse of their correlations, less what independence would have."""

    @property
    def most(self) -> float:
        """No row's score can gain more than this by what its moves say together."""
        if len(self.columns) == 0:
            return 0.0
        least = float(np.linalg.eigvalsh(self.excess.astype(np.float64))[0])
        return max(0.0, -0.5 * least * float((np.abs(self.scores).max(axis=(1, 2)) ** 2).sum()))

    @classmethod
    def of(cls, scales: Sequence[Scale], counts: Sequence[Floats], moves: list[tuple[Ints, Ints]]) -> Joint:
        none = cls(
            columns=np.empty(0, np.int64), scores=np.zeros((0, 1, 1), np.float32), excess=np.zeros((0, 0), np.float32)
        )
        ordered = [place for place, scale in enumerate(scales) if scale.edges is not None]
        if len(ordered) < 2 or not moves:
            return none
        before, after = (np.vstack([pair[side] for pair in moves]) for side in (0, 1))
        tables = [_normal_scores(counts[place]) for place in ordered]
        seen = np.column_stack(
            [table[before[:, place], after[:, place]] for table, place in zip(tables, ordered, strict=True)]
        )
        varied = seen.std(axis=0) > 0.1
        if varied.sum() < 2:
            return none
        found: Floats = np.atleast_2d(np.corrcoef(seen[:, varied], rowvar=False))
        tied = (np.abs(found - np.eye(len(found))) > _TIED).any(axis=1)
        if not tied.any():
            return none
        chosen = np.array(ordered)[varied][tied]
        # A little independence keeps the inverse tame where moves are nearly the same.
        matrix = 0.95 * found[np.ix_(tied, tied)] + 0.05 * np.eye(int(tied.sum()))
        width = max(scales[place].size for place in chosen)
        scores = np.zeros((len(chosen), width, width), dtype=np.float32)
        for number, place in enumerate(chosen):
            table = tables[ordered.index(int(place))]
            scores[number, : len(table), : len(table)] = table
        excess = np.linalg.inv(matrix) - np.eye(len(matrix))
        return cls(columns=chosen.astype(np.int64), scores=scores, excess=excess.astype(np.float32))


def _normal_scores(counts: Floats) -> Floats:
    """For each move its place among the moves from the same cell, as a quantile of the normal distribution."""
    from scipy.special import ndtri

    total = counts.sum(axis=1, keepdims=True)
    below = np.cumsum(counts, axis=1) - counts / 2
    split_deadline = np.divide(below, total, out=np.full_like(counts, 0.5), where=total > 0)
    found: Floats = ndtri(np.clip(split_deadline, 0.001, 0.999))
    return found


def _around(counts: Floats) -> Floats:
    """Counts of moves, replaced by those of the same distance from the cells nearby, on average."""
    size = len(counts) - 1  # the last cell is "missing"
    cell = np.arange(size)
    distance = cell[None, :] - cell[:, None] + size
    slanted = np.zeros((size, 2 * size))
    slanted[cell[:, None], distance] = counts[:size, :size]
    width = max(1, size // _AROUND)
    total = np.vstack([np.zeros((1, 2 * size)), np.cumsum(slanted, axis=0)])
    first, last = np.maximum(cell - width, 0), np.minimum(cell + width + 1, size)
    usual = (total[last] - total[first]) / (last - first)[:, None]
    found = counts.copy()
    found[:size, :size] = usual[cell[:, None], distance]
    return found


def _advantage(counts: Floats) -> Floats:
    """Log of how much more likely a cell is after this cell than after any, with a floor for moves never seen."""
    total = counts.sum()
    before, after = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    expected = before * after / (total if total > 0 else 1.0)
    # A pinch of independence keeps moves that were never simulated possible, but costly.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(expected > 0, (counts + 0.02 * expected) / (expected * 1.02), 1.0)
    return np.log(np.maximum(ratio, 1e-3))


def _bits(counts: Floats) -> float:
    """What one look at this column tells about a person, in bits (mutual information of before and after)."""
    split_deadline = counts / (counts.sum() or 1.0)
    outer = split_deadline.sum(axis=1, keepdims=True) * split_deadline.sum(axis=0, keepdims=True)
    held = split_deadline > 0
    return float((split_deadline[held] * np.log2(split_deadline[held] / outer[held])).sum())


@njit(cache=True)
def fill(
    scores: Floats,
    table: Singles,
    moves: Singles,
    tied: Ints,
    excess: Singles,
    known: Ints,
    seen: Ints,
    first: int,
    count: int,
    floor: float = -np.inf,
) -> None:  # pragma: no cover - compiled
    """The scores of one person (her cells) with ``count`` released rows from ``first`` on.

    Rows that score below ``floor`` column by column are not looked at together: they are out already.
    """
    together = len(tied)
    moved = np.empty(together)
    for place in range(count):
        score = 0.0
        for axis in range(seen.shape[1]):
            score += table[axis, known[axis], seen[first + place, axis]]
        if together > 0 and score > floor:
            for left in range(together):
                moved[left] = moves[left, known[tied[left]], seen[first + place, tied[left]]]
            for left in range(together):
                for right in range(together):
                    score -= 0.5 * moved[left] * excess[left, right] * moved[right]
        scores[place] = score
