"""The intruder who runs the published method himself, sees how it moves values, and links by likelihood."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from numba import njit, prange
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, View
from sfumato.attacks.best_row import FAR, PIECE, best_of, share_of, start
from sfumato.attacks.likelihood import PORTION, Likelihood, fill
from sfumato.attacks.remasking import proxy, runnable_steps
from sfumato.deadline import batches
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["Simulation"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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
    simulates: ClassVar[bool] = True
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
        learned = Likelihood.learn(view, proxy(view), steps, rng, progress, rounds=self.rounds, cells=self.cells)
        table, joint = learned.table, learned.joint
        known, seen = learned.places(view.targets), learned.places(view.release.table.frame)
        seeds = rng.child("ties").generator.integers(1, 2**62, size=len(known), dtype=np.int64)
        row, share = np.zeros(len(known), dtype=np.int64), np.zeros(len(known))
        done = 0
        for part in batches(progress, "linking by likelihood", len(known), max(1, PORTION // seen.size)):
            row[part], share[part] = _link(
                table, joint.scores, joint.columns, joint.excess, known[part], seen, seeds[part], joint.most + FAR
            )
            done = part.stop
        detail = {
            "rounds": learned.rounds,
            "steps": [step.part_name() for step in steps],
            "columns": learned.bits,
            "moved together": learned.tied,
        }
        return Guesses.of_rows(row[:done], share[:done], detail, tried=done)


@njit(cache=True, parallel=True)
def _link(
    table: npt.NDArray[np.float32],
    moves: npt.NDArray[np.float32],
    tied: Ints,
    excess: npt.NDArray[np.float32],
    known: Ints,
    seen: Ints,
    seeds: Ints,
    far: float,
) -> tuple[Ints, Floats]:  # pragma: no cover - compiled
    rows = len(seen)
    found = np.zeros(len(known), dtype=np.int64)
    share = np.zeros(len(known))
    for index in prange(len(known)):
        held = start(seeds[index])
        scores = np.empty(PIECE)
        for first in range(0, rows, PIECE):
            count = min(PIECE, rows - first)
            fill(scores, table, moves, tied, excess, known[index], seen, first, count, held[0] - far)
            held = best_of(held, scores, count, first)
        found[index] = held[3]
        share[index] = share_of(held)
    return found, share
