"""The intruder who runs the published method himself, sees how it moves values, and links by likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit, prange
from pydantic import Field

from tacit.attack.attack import Discloses, Guesses, Linking, View
from tacit.attack.best_row import PIECE, best_of, share_of, start
from tacit.attack.canonical import canonical
from tacit.attack.features import numbers
from tacit.attack.rerun import mask_again, proxy, runnable_steps
from tacit.errors import NotApplicable
from tacit.progress import SILENT, Progress, portions, silenced
from tacit.rng import Rng
from tacit.schema import Kind

__all__ = ["Simulation"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_TIED = 0.1
"""Moves of two columns that correlate by no more than this are taken as independent."""
_MOVES = 200_000
"""From about so many simulated rows correlations are taken."""
_PORTION = 50_000_000
"""So many values are compared, in a fraction of a second, before the clock is looked at."""


class Simulation(Linking):
    """Somebody who knows the method simulates the masking, learns how far values move, and links by likelihood.

    The intruder masks a file like the original (the people he knows, if they are many, else the release itself) again
    and again with the published steps, and counts from which rank, or category, to which values move. A released row's
    score for a person is the sum over columns of how much more likely the row's value is for this person than for
    anybody. No window is assumed, so variants built to defeat window attacks are met too; whatever can be run can be
    attacked.

    Where columns were seen to move together (correlated noise, groups of several columns), how far each moved compared
    with what is usual from its place is taken as jointly normal with the correlations seen (a Gaussian copula), and the
    score counts what the moves of several columns say together. Dependence of other shapes, such as records of which
    either all or no columns were swapped, is not met: there the likelihood is a product over columns.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    pairwise: ClassVar[bool] = True
    exploits: ClassVar[frozenset[str]] = frozenset(
        {"rank-swap", "noise", "microaggregate", "pram", "round", "swap", "shift-dates", "top-bottom-code", "recode"}
    )
    examples: ClassVar = ({"rounds": 50},)
    reference: ClassVar[str] = (
        "After the transparency principle: Torra, V. (2017). Data Privacy: Foundations, New Developments and the Big "
        "Data Challenge. doi:10.1007/978-3-319-57358-8"
    )

    rounds: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How often the masking is simulated; enough for 400,000 moves per column when left out, at most 400 times."""
    cells: Annotated[int, Field(ge=8, le=2000)] = 400
    """Ranks are counted in this many cells."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        steps = runnable_steps(view)
        columns = [_Scale.of(view, name, self.cells) for name in view.knows]
        usable = [column for column in columns if column is not None]
        if not usable:
            raise NotApplicable("No known column can be compared with the release.", columns=view.knows)
        stand_in = proxy(view)
        rounds = self.rounds or int(np.clip(-(-400_000 // stand_in.rows), 1, 400))
        counts = [np.zeros((column.size, column.size)) for column in usable]
        moves: list[tuple[Ints, Ints]] = []
        with progress.task("simulating the masking", rounds) as tick:
            for number in range(rounds):
                masked, origin = mask_again(stand_in, steps, rng.child("round", number), silenced(progress))
                before = stand_in.table.frame[origin]
                pairs = [column.moved(before, masked) for column in usable]
                for count, (left, right) in zip(counts, pairs, strict=True):
                    np.add.at(count, (left, right), 1.0)
                if number < max(1, _MOVES // stand_in.rows):
                    moves.append((np.column_stack([left for left, _ in pairs]), np.column_stack([r for _, r in pairs])))
                tick(1)
        joint = _Joint.of(usable, counts, moves)
        tables = [_advantage(count) for count in counts]
        width = max(column.size for column in usable)
        table = np.zeros((len(usable), width, width), dtype=np.float32)
        for index, one in enumerate(tables):
            table[index, : one.shape[0], : one.shape[1]] = one
        known = np.column_stack([column.place(view.targets.get_column(column.name)) for column in usable])
        seen = np.column_stack([column.place(view.release.table.column(column.name)) for column in usable])
        seeds = rng.child("ties").generator.integers(1, 2**62, size=len(known), dtype=np.int64)
        row, share = np.zeros(len(known), dtype=np.int64), np.zeros(len(known))
        done = 0
        for part in portions(progress, "linking by likelihood", len(known), max(1, _PORTION // seen.size)):
            row[part], share[part] = _link(
                table, joint.scores, joint.columns, joint.excess, known[part], seen, seeds[part]
            )
            done = part.stop
        detail = {
            "rounds": rounds,
            "steps": [step.part_name() for step in steps],
            "columns": {column.name: float(gain) for column, gain in zip(usable, map(_bits, counts), strict=True)},
            "moved together": [usable[place].name for place in joint.columns],
        }
        return Guesses.of_rows(row[:done], share[:done], detail, tried=done)


class _Scale:
    """One column as cells: ranks in the release for numbers, the values themselves for categories."""

    def __init__(self, name: str, size: int, edges: Floats | None, values: Mapping[str, int] | None) -> None:
        self.name, self.size, self.edges, self.values = name, size, edges, values

    @classmethod
    def of(cls, view: View, name: str, cells: int) -> _Scale | None:
        known, released = view.targets.get_column(name), view.release.table.column(name)
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


class _Joint:
    """Columns that move together: how unusual each move is as a normal score, and what their correlation adds."""

    def __init__(self, columns: Ints, scores: npt.NDArray[np.float32], excess: npt.NDArray[np.float32]) -> None:
        self.columns, self.scores, self.excess = columns, scores, excess

    @classmethod
    def of(cls, scales: list[_Scale], counts: list[Floats], moves: list[tuple[Ints, Ints]]) -> _Joint:
        none = cls(np.empty(0, np.int64), np.zeros((0, 1, 1), np.float32), np.zeros((0, 0), np.float32))
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
        return cls(chosen.astype(np.int64), scores, excess.astype(np.float32))


def _normal_scores(counts: Floats) -> Floats:
    """For each move its place among the moves from the same cell, as a quantile of the normal distribution."""
    from scipy.special import ndtri

    total = counts.sum(axis=1, keepdims=True)
    below = np.cumsum(counts, axis=1) - counts / 2
    share = np.divide(below, total, out=np.full_like(counts, 0.5), where=total > 0)
    found: Floats = ndtri(np.clip(share, 0.001, 0.999))
    return found


def _advantage(counts: Floats) -> Floats:
    """Log of how much more likely a cell is after this cell than after any, with a floor for moves never seen."""
    total = counts.sum()
    before, after = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    expected = before * after / max(total, 1.0)
    # A pinch of independence keeps moves that were never simulated possible, but costly.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(expected > 0, (counts + 0.02 * expected) / (expected * 1.02), 1.0)
    return np.log(np.maximum(ratio, 1e-3))


def _bits(counts: Floats) -> float:
    """What one look at this column tells about a person, in bits (mutual information of before and after)."""
    share = counts / max(counts.sum(), 1.0)
    outer = share.sum(axis=1, keepdims=True) * share.sum(axis=0, keepdims=True)
    held = share > 0
    return float((share[held] * np.log2(share[held] / outer[held])).sum())


@njit(cache=True, parallel=True)
def _link(
    table: npt.NDArray[np.float32],
    moves: npt.NDArray[np.float32],
    tied: Ints,
    excess: npt.NDArray[np.float32],
    known: Ints,
    seen: Ints,
    seeds: Ints,
) -> tuple[Ints, Floats]:  # pragma: no cover - compiled
    rows, width = seen.shape
    together = len(tied)
    found = np.zeros(len(known), dtype=np.int64)
    share = np.zeros(len(known))
    for index in prange(len(known)):
        held = start(seeds[index])
        scores = np.empty(PIECE)
        moved = np.empty(together)
        for first in range(0, rows, PIECE):
            count = min(PIECE, rows - first)
            for place in range(count):
                score = 0.0
                for axis in range(width):
                    score += table[axis, known[index, axis], seen[first + place, axis]]
                if together > 0:
                    for left in range(together):
                        moved[left] = moves[left, known[index, tied[left]], seen[first + place, tied[left]]]
                    for left in range(together):
                        for right in range(together):
                            score -= 0.5 * moved[left] * excess[left, right] * moved[right]
                scores[place] = score
            held = best_of(held, scores, count, first)
        found[index] = held[3]
        share[index] = share_of(held)
    return found, share
