"""Record linkage by simulation of the published masking method."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.best_row import FAR, PIECE, best_of, share_of, start
from sfumato.attacks.likelihood import PORTION, Cells, Likelihood, fill
from sfumato.attacks.remasking import WEAK_MASKING, proxy, runnable_steps
from sfumato.deadline import batches
from sfumato.kernels import kernel
from sfumato.masking.base import Step
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.threads import map_slices

__all__ = ["Simulation"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Simulation(Linking):
    """An attacker who knows the method simulates it, estimates how it perturbs values, and links by likelihood.

    The attacker masks a file similar to the original (the people they know, if these are many, else the release itself)
    repeatedly with the published steps, and counts from which rank or category to which values move. The score of a
    released row for a person is the sum over columns of the log-likelihood ratio: how much more likely the released
    value is for this person than for anybody. No window is assumed, so variants that defeat window attacks are covered;
    every method that can be rerun can be attacked.

    If perturbations of columns are correlated (correlated noise, groups of several columns), they are modelled as
    jointly normal with the observed correlations (a Gaussian copula). Other dependence is not modelled, such as records
    of which either all or no columns were swapped: there the likelihood is a product over columns.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.METHOD
    weak_masking: ClassVar = WEAK_MASKING
    pairwise: ClassVar[bool] = True
    examples: ClassVar = ({"rounds": 50},)
    reference: ClassVar[str] = (
        "After the transparency principle: Torra, V. (2017). Data Privacy: Foundations, New Developments and the Big "
        "Data Challenge. doi:10.1007/978-3-319-57358-8"
    )

    rounds: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Number of simulations of the masking; if omitted, enough for 400,000 perturbed values per column, at most 400."""
    cells: Annotated[int, Field(ge=8, le=2000)] = 400
    """Number of rank intervals in which perturbations are counted."""

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method.simulable

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        steps = runnable_steps(view)
        learned = Likelihood.learn(view, proxy(view), steps, progress, rounds=self.rounds, cells=self.cells)
        table, joint = learned.table, learned.joint
        known, seen = learned.places(view.targets), learned.seen(view.release.table.frame)
        seeds = rng.child("ties").generator.integers(1, 2**62, size=len(known), dtype=np.int64)
        row, share = np.zeros(len(known), dtype=np.int64), np.zeros(len(known))
        done = 0

        def link(some: slice) -> None:
            row[some], share[some] = _link(
                table, joint.scores, joint.columns, joint.excess, known[some], seen, seeds[some], joint.most + FAR
            )

        for part in batches(progress, "linking by likelihood", len(known), max(1, PORTION // seen.size)):
            map_slices(link, part)
            done = part.stop
        detail = {
            "rounds": learned.rounds,
            "steps": [step.part_name() for step in steps],
            "columns": learned.bits,
            "moved together": learned.tied,
        }
        return Guesses.of_rows(row[:done], share[:done], detail, tried=done)


@kernel(nogil=True)
def _link(
    table: npt.NDArray[np.float32],
    normal: npt.NDArray[np.float32],
    tied: Ints,
    excess: npt.NDArray[np.float32],
    known: Ints,
    seen: Cells,
    seeds: Ints,
    far: float,
) -> tuple[Ints, Floats]:  # pragma: no cover - compiled
    rows = seen.shape[1]
    row = np.zeros(len(known), dtype=np.int64)
    share = np.zeros(len(known))
    for index in range(len(known)):
        state = start(seeds[index])
        scores = np.empty(PIECE)
        for first in range(0, rows, PIECE):
            count = min(PIECE, rows - first)
            fill(scores, table, normal, tied, excess, known[index], seen, first, count, state[0] - far)
            state = best_of(state, scores, count, first)
        row[index] = state[3]
        share[index] = share_of(state)
    return row, share
