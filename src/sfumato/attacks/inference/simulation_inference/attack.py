"""Attribute inference by simulation of the published masking method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Guesses, Inference, Stage, View
from sfumato.attacks.best_row import FAR, PIECE
from sfumato.attacks.features import points
from sfumato.attacks.inference._class_votes import tolerance_windows, votes_within
from sfumato.attacks.inference.simulation_inference.noise_inversion import Channel
from sfumato.attacks.likelihood import PORTION, Cells, Likelihood, fill
from sfumato.attacks.nearest_neighbours import BoxTree
from sfumato.attacks.remasking import WEAK_MASKING, companions, proxy, steps_on
from sfumato.deadline import batches
from sfumato.errors import NotApplicable
from sfumato.kernels import kernel
from sfumato.masking.base import Step
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.threads import map_slices

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

__all__ = ["SimulationInference"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_MEMBERSHIP_PRIOR = 0.95
"""The attacker's prior probability that a target is in the release."""
_NEIGHBOURS = 20
"""Number of neighbours whose sensitive values form the local prior of a target."""
_VOTES = 4_000_000
"""Number of votes in memory at a time."""


class SimulationInference(Inference):
    """An attacker who knows the method simulates it and weights the sensitive values of all rows by their likelihood.

    As in ``simulation``, the published steps are rerun on a file similar to the original to estimate how values are
    perturbed. No row has to be identified: every released row votes for its sensitive value with the probability that
    the row belongs to the person. If the sensitive column was perturbed itself (noise, PRAM, swapping,
    microaggregation), it is simulated too, and each row votes for the values that may have been masked to the released
    one (Bayes' rule, with a prior estimated from the release). The guess is the value with the most votes; for numbers
    with a ``tolerance``, the value within the tolerance of most votes. A target that matches no row is guessed from the
    prior.

    Perturbations of the sensitive column are assumed to be independent of those of the other columns.
    """

    stage: ClassVar[Stage] = Stage.INFERENCE
    order_in_stage: ClassVar[int] = 2
    weak_masking: ClassVar = WEAK_MASKING
    main: ClassVar[str] = "secret"
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

    @classmethod
    def suits(cls, scenario: AttackScenario, secret: str) -> bool:
        """Whether a published step that can be simulated changed a known column or the sensitive one."""
        columns = {*scenario.known, secret}
        return any(
            cls.exploits(method) and columns & set(step.get("columns", columns))
            for method, step in zip(scenario.methods, scenario.steps, strict=True)
        )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        steps = steps_on(view, (*view.knows, *companions(view)), perturbed=view.knows)
        if not steps and not steps_on(view, (*view.knows, view.secret), perturbed=(view.secret,)):
            raise NotApplicable("No published step changes values, so there is nothing to simulate.")
        amount = self.tolerance > 0 and view.release.table.column(view.secret).dtype.is_numeric()
        channel = Channel.of(view, progress, amount=amount)
        learned = Likelihood.learn(view, proxy(view), steps, progress, rounds=self.rounds, cells=self.cells)
        table, joint = learned.table, learned.joint
        known, seen = learned.places(view.targets), learned.seen(view.release.table.frame)
        windows = tolerance_windows(channel.values, self.tolerance)
        best, share = np.zeros(len(known), dtype=np.int64), np.zeros(len(known))
        prior = _priors(view, channel, progress)
        done = 0
        size = max(1, min(PORTION // seen.size, _VOTES // len(channel.values)))

        def weigh(some: slice) -> tuple[Floats, Floats]:
            return _votes(
                table,
                joint.scores,
                joint.columns,
                joint.excess,
                known[some],
                seen,
                channel.codes,
                len(channel.values),
                joint.most + FAR,
            )

        for part in batches(progress, "weighing by likelihood", len(known), size):
            votes, top = (np.concatenate(arrays) for arrays in zip(*map_slices(weigh, part), strict=True))
            best[part], share[part] = _decided(votes, top, channel, prior(part), windows, seen.shape[1])
            done = part.stop
        return Guesses(
            value=channel.values.gather(best[:done]).alias(view.secret),
            made=np.ones(done, dtype=np.bool_),
            confidence=share[:done],
            detail={
                "rounds": learned.rounds,
                "steps": [step.part_name() for step in steps],
                "columns": learned.bits,
                "moved together": learned.tied,
                "secret perturbed": channel.forward is not None,
            },
            tried=done,
        )


def _priors(view: View, channel: Channel, progress: Progress) -> Callable[[slice], Floats]:
    """The prior probabilities of the sensitive values for the targets of a slice.

    If the sensitive column was perturbed, half of the prior comes from the neighbours' values, which helps to separate
    the value from the noise. Otherwise it is the frequency in the release.
    """
    if channel.forward is None:
        return lambda part: np.broadcast_to(channel.prior, (part.stop - part.start, len(channel.prior)))
    present = np.flatnonzero(channel.codes >= 0)
    features = points(view, own=False, progress=progress)
    tree = BoxTree.of(features.released[present])

    def prior(part: slice) -> Floats:
        near, _ = tree.near(features.targets[part], _NEIGHBOURS)
        votes = np.zeros((len(near), len(channel.prior)))
        np.add.at(votes, (np.arange(len(near))[:, None], channel.codes[present][near]), 1 / near.shape[1])
        return (channel.prior + channel.origins(votes, np.broadcast_to(channel.prior, votes.shape))) / 2

    return prior


def _decided(
    votes: Floats, top: Floats, channel: Channel, prior: Floats, windows: list[tuple[Ints, Ints]], rows: int
) -> tuple[Ints, Floats]:
    """The value with the most votes, including those of the prior, and its share of all votes."""
    mass = channel.origins(votes, prior)
    # Scores are log-likelihood ratios; a target who is not in the release has a ratio of 1 with every row.
    odds = (1 - _MEMBERSHIP_PRIOR) / _MEMBERSHIP_PRIOR
    absent = odds * rows * np.exp(np.clip(-top, -600.0, 600.0))
    mass = mass + absent[:, None] * prior
    close = votes_within(mass, np.arange(len(channel.values)), windows)
    best = close.argmax(axis=1)
    return best, close[np.arange(len(best)), best] / mass.sum(axis=1)


@kernel(nogil=True)
def _votes(
    table: Singles,
    normal: Singles,
    tied: Ints,
    excess: Singles,
    known: Ints,
    seen: Cells,
    codes: Ints,
    width: int,
    far: float,
) -> tuple[Floats, Floats]:  # pragma: no cover - compiled
    """For each target the likelihoods summed by sensitive value, relative to the most likely row, and its log."""
    rows = seen.shape[1]
    votes = np.zeros((len(known), width))
    top = np.zeros(len(known))
    for index in range(len(known)):
        scores = np.empty(PIECE)
        best = -1e300
        for first in range(0, rows, PIECE):
            count = min(PIECE, rows - first)
            fill(scores, table, normal, tied, excess, known[index], seen, first, count, best - far)
            for place in range(count):
                code = codes[first + place]
                if code < 0:
                    continue
                score = scores[place]
                if score > best:
                    smaller = np.exp(best - score)
                    for other in range(width):
                        votes[index, other] *= smaller
                    best = score
                    votes[index, code] += 1.0
                elif score > best - FAR:
                    votes[index, code] += np.exp(score - best)
        top[index] = best
    return votes, top
