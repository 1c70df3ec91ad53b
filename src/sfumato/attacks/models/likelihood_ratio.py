"""Likelihood ratio attack (LiRA): membership inference with shadow models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Discloses
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.attacks.models._base import AttackedModel, ModelAttack, membership_outcome, membership_targets
from sfumato.deadline import batches
from sfumato.errors import OutOfTime
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_FEWEST = 4
"""Fewest shadow models; also after a stop at the deadline."""


class LikelihoodRatio(ModelAttack):
    """Membership inference by the likelihood ratio: the attacker knows records like those of the training data, learns
    shadow models with and without each target, and compares the confidence of the attacked model with theirs.
    """

    discloses = Discloses.MEMBERSHIP
    examples = ({"shadows": 16},)
    reference = "Carlini et al. (2022). Membership inference attacks from first principles. arXiv:2112.03570"

    shadows: int = Field(default=32, ge=_FEWEST, le=1000)
    """Number of shadow models. Each is learned from a random half of the attacker's records."""

    def run(
        self,
        model: AttackedModel,
        rng: Rng,
        *,
        n_targets: int,
        secrets: Sequence[str],
        progress: Progress = SILENT,
    ) -> list[Outcome]:
        targets, member = membership_targets(model, rng, n_targets)
        generator = rng.child("shadows").generator
        fits = np.empty((self.shadows, targets.height))
        inside = np.empty((self.shadows, targets.height), dtype=np.bool_)
        # Shadow models are as large as the attacked one where the records suffice; the rest come from the control file.
        rest = model.control.select(targets.columns).cast(targets.schema)
        done = 0
        for part in batches(progress, "shadow models", self.shadows):
            number, done = part.start, part.stop
            inside[number] = generator.permutation(targets.height) < targets.height // 2
            more = max(0, min(rest.height, model.members.height - int(inside[number].sum())))
            filler = rest[generator.choice(rest.height, more, replace=False)]
            # A control person who is a target must not be learned as filler of a model without them.
            filler = filler.join(targets, on=targets.columns, how="anti", nulls_equal=True)
            shadow = model.refit(pl.concat([targets.filter(inside[number]), filler]))
            fits[number] = model.confidence(shadow, targets)
        if done < _FEWEST:
            raise OutOfTime("Stopped: time was up before enough shadow models were learned.", fix="Allow more time.")
        fits, inside = fits[:done], inside[:done]
        own = model.confidence(model.estimator, targets)
        log_ratio = np.zeros(targets.height)
        for state, sign in ((inside, 1), (~inside, -1)):
            counts = state.sum(axis=0)
            mean = np.where(state, fits, 0).sum(axis=0) / np.maximum(counts, 1)
            spread = np.where(state, (fits - mean) ** 2, 0).sum() / max(1.0, state.sum() - targets.height)
            spread = max(float(spread), 1e-6)
            log_ratio += sign * (-0.5 * (own - mean) ** 2 / spread - 0.5 * np.log(spread))
        return [membership_outcome(self, model, log_ratio, member, {"shadow models": done})]
