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

_PORTION = 50_000_000
"""So many values are compared, in a fraction of a second, before the clock is looked at."""


class Simulation(Linking):
    """Somebody who knows the method simulates the masking, learns how far values move, and links by likelihood.

    The intruder masks a file like the original (the people he knows, if they are many, else the release itself) again
    and again with the published steps, and counts from which rank, or category, to which values move. A released row's
    score for a person is the sum over columns of how much more likely the row's value is for this person than for
    anybody. No window is assumed, so variants built to defeat window attacks are met too; whatever can be run can be
    attacked.

    Columns are treated as masked independently: for methods that mask several together, the score is an approximation.
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
        rounds = self.rounds or int(np.clip(400_000 // stand_in.rows, 3, 400))
        counts = [np.zeros((column.size, column.size)) for column in usable]
        with progress.task("simulating the masking", rounds) as tick:
            for number in range(rounds):
                masked, origin = mask_again(stand_in, steps, rng.child("round", number), silenced(progress))
                for column, count in zip(usable, counts, strict=True):
                    column.count(count, stand_in.table.frame[origin], masked)
                tick(1)
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
            row[part], share[part] = _link(table, known[part], seen, seeds[part])
            done = part.stop
        detail = {
            "rounds": rounds,
            "steps": [step.part_name() for step in steps],
            "columns": {column.name: float(gain) for column, gain in zip(usable, map(_bits, counts), strict=True)},
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

    def count(self, counts: Floats, before: pl.DataFrame, after: pl.DataFrame) -> None:
        if self.name in after.columns:
            np.add.at(counts, (self.place(before[self.name]), self.place(after[self.name])), 1.0)


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
    table: npt.NDArray[np.float32], known: Ints, seen: Ints, seeds: Ints
) -> tuple[Ints, Floats]:  # pragma: no cover - compiled
    rows, width = seen.shape
    found = np.zeros(len(known), dtype=np.int64)
    share = np.zeros(len(known))
    for index in prange(len(known)):
        held = start(seeds[index])
        scores = np.empty(PIECE)
        for first in range(0, rows, PIECE):
            count = min(PIECE, rows - first)
            for place in range(count):
                score = 0.0
                for axis in range(width):
                    score += table[axis, known[index, axis], seen[first + place, axis]]
                scores[place] = score
            held = best_of(held, scores, count, first)
        found[index] = held[3]
        share[index] = share_of(held)
    return found, share
