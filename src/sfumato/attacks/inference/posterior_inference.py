"""Attribute inference by the posterior of all evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from sfumato.arrays import Floats
from sfumato.attacks.base import Guesses, Inference, Stage, View, unperturbed
from sfumato.attacks.features import points
from sfumato.attacks.inference._class_votes import tolerance_windows, votes_within
from sfumato.attacks.nearest_neighbours import BoxTree
from sfumato.attacks.posterior.candidates import best_pairs
from sfumato.attacks.posterior.evidence import collect
from sfumato.attacks.posterior.matching import probabilities
from sfumato.attacks.posterior.secrets import Channel, linear_prior
from sfumato.attacks.remasking import WEAK_MASKING
from sfumato.deadline import batches, split_deadline
from sfumato.errors import OutOfTime
from sfumato.masking.base import Step
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

_MEMBERSHIP_PRIOR = 0.95
"""The attacker's prior probability that a target is in the release."""
_NEIGHBOURS = 20
"""Number of neighbours whose sensitive values form the local prior of a target."""
_VOTES = 4_000_000
"""Number of votes in memory at a time."""


class PosteriorInference(Inference):
    """An attacker weighs the sensitive values of all rows by the posterior probability that each row is the person's.

    The probabilities are those of ``posterior-linkage``: all evidence of the known columns, and different rows for
    different people. No row has to be identified: every released row votes for its sensitive value. If the sensitive
    column was perturbed itself (noise, PRAM, swapping, microaggregation), each row votes for the values that may have
    been masked to the released one (Bayes' rule, with a prior estimated from the release and from similar rows). The
    guess is the value with the most votes; for numbers with a ``tolerance``, the value within the tolerance of most
    votes. An attacker who does not know the steps learns
    from the files how columns were changed.

    Perturbations of the sensitive column are assumed to be independent of those of the other columns.
    """

    stage: ClassVar[Stage] = Stage.INFERENCE
    order_in_stage: ClassVar[int] = 2
    weak_masking: ClassVar = WEAK_MASKING
    uses_everything: ClassVar[bool] = True
    pairwise: ClassVar[bool] = True
    min_targets: ClassVar[int] = 10_000
    main: ClassVar[str] = "secret"
    examples = ({}, {"secret": "diagnosis"})
    reference: ClassVar[str] = (
        "Reiter, J. P. (2005). Estimating risks of identification disclosure in microdata. Journal of the American "
        "Statistical Association 100. doi:10.1198/016214505000000619"
    )

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method.simulable

    @classmethod
    def suits(cls, scenario: AttackScenario, secret: str) -> bool:
        """Whether a known column or the sensitive one may have been perturbed."""
        columns = (*scenario.known, secret)
        return bool(scenario.known) and (not scenario.steps or len(unperturbed(scenario.steps, columns)) < len(columns))

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        half = split_deadline(progress, 2)
        evidence = collect(view, half)
        pairs, done = best_pairs(evidence, half)
        if done == 0:
            raise OutOfTime("Stopped: time was up before any target was processed.", fix="Allow more time.")
        chance = _MEMBERSHIP_PRIOR * probabilities(pairs)
        amount = self.tolerance > 0 and view.release.table.column(view.secret).dtype.is_numeric()
        channel = Channel.of(view, progress, amount=amount)
        windows = tolerance_windows(channel.values, self.tolerance)
        prior = _priors(view, channel, progress)
        code = channel.codes[pairs.row]
        best, share = np.zeros(done, dtype=np.int64), np.zeros(done)
        width = len(channel.values)
        starts, seen = pairs.starts, 0
        for part in batches(progress, "weighing secrets", done, max(1, _VOTES // width)):
            near = slice(starts[part.start], starts[part.stop])
            shown = code[near] >= 0
            place = (pairs.person[near][shown] - part.start) * width + code[near][shown]
            votes = np.bincount(place, chance[near][shown], (part.stop - part.start) * width).astype(np.float64)
            own = prior(part)
            mass = channel.origins(votes.reshape(-1, width), own)
            mass = mass + np.maximum(1 - mass.sum(axis=1, keepdims=True), 1 - _MEMBERSHIP_PRIOR) * own
            close = votes_within(mass, np.arange(width), windows)
            best[part] = close.argmax(axis=1)
            share[part] = close.max(axis=1) / mass.sum(axis=1)
            seen = part.stop
        detail: dict[str, object] = {"columns": list(evidence.columns), "secret perturbed": channel.forward is not None}
        if evidence.estimated:
            detail |= {"estimated": list(evidence.estimated), "rounds": evidence.rounds}
        return Guesses(
            value=channel.values.gather(best[:seen]).alias(view.secret),
            made=np.ones(seen, dtype=np.bool_),
            confidence=np.minimum(share[:seen], 1.0),
            detail=detail,
            tried=seen,
        )


def _priors(view: View, channel: Channel, progress: Progress) -> Callable[[slice], Floats]:
    """The prior probabilities of the sensitive values for the targets of a slice.

    If the sensitive column was perturbed, a part of the prior comes from the neighbours' values, and for amounts a
    part from a linear regression on the known ones: both help to separate the value from the noise. Otherwise it is the
    frequency in the release.
    """
    if channel.forward is None:
        return lambda part: np.broadcast_to(channel.prior, (part.stop - part.start, len(channel.prior)))
    present = np.flatnonzero(channel.codes >= 0)
    features = points(view, own=False, progress=progress)
    tree = BoxTree.of(features.released[present])
    regression = linear_prior(view)

    def prior(part: slice) -> Floats:
        near, _ = tree.near(features.targets[part], _NEIGHBOURS)
        votes = np.zeros((len(near), len(channel.prior)))
        np.add.at(votes, (np.arange(len(near))[:, None], channel.codes[present][near]), 1 / near.shape[1])
        own = channel.prior + channel.origins(votes, np.broadcast_to(channel.prior, votes.shape))
        if regression is None:
            return own / 2
        middle, spread, explained = regression
        values = channel.values.cast(pl.Float64).to_numpy()
        near_line = np.exp(-0.5 * ((values[None, :] - middle[part][:, None]) / spread) ** 2) * _spacing(values)
        total = near_line.sum(axis=1, keepdims=True)
        line = np.divide(near_line, total, out=own / 2, where=total > 0)
        return np.asarray(explained * line + (1 - explained) * own / 2)

    return prior


def _spacing(values: Floats) -> Floats:
    """The length of the interval that each of the ascending values stands for."""
    return np.asarray(np.gradient(values)) if len(values) > 1 else np.ones(len(values))
