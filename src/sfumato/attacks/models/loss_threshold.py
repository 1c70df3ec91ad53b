"""Loss threshold attack: membership inference with one shadow model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.attacks.base import Discloses
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.attacks.models._base import AttackedModel, ModelAttack, membership_outcome, membership_targets
from sfumato.deadline import check_deadline
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class LossThreshold(ModelAttack):
    """Membership inference by the loss: the attacker learns one model of their own from half of the people who are not
    in the data, and takes everybody for a member whom the attacked model fits better than a threshold found on it.
    """

    discloses = Discloses.MEMBERSHIP
    reference = "Yeom, Giacomelli, Fredrikson, Jha (2018). Privacy risk in machine learning. doi:10.1109/CSF.2018.00027"

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
        order = rng.child("shadow").generator.permutation(model.control.height)
        half = model.control.height // 2
        known, unknown = model.control[order[:half]], model.control[order[half:]]
        check_deadline(progress)
        shadow = model.refit(known)
        inside, outside = model.confidence(shadow, known), model.confidence(shadow, unknown)
        cuts = np.unique(np.concatenate([inside, outside]))
        gain = np.searchsorted(np.sort(outside), cuts) / len(outside) - np.searchsorted(np.sort(inside), cuts) / len(
            inside
        )
        # People whose confidence is at least the best cut are taken for members; nobody if no cut gains anything.
        best = int(gain.argmax())
        scores = np.where(model.confidence(model.estimator, targets) >= cuts[best], 1.0, -1.0)
        if gain[best] <= 0:
            scores = np.zeros(targets.height)
        return [membership_outcome(self, model, scores, member, {"shadow models": 1})]
