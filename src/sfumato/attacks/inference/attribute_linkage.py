"""Attribute inference from matching rows: homogeneity and background knowledge attacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sfumato.attacks.base import Guesses, Inference, Stage, View
from sfumato.attacks.inference._class_votes import Votes, tolerance_windows, votes_within
from sfumato.deadline import batches
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario


class AttributeLinkage(Inference):
    """An attacker who knows a person's quasi-identifiers infers the sensitive value from the matching released rows.

    The person's own row need not be identified: if all matching rows share one value, it is disclosed (the homogeneity
    attack on k-anonymity). The guess is the value with the largest weight among the matching rows. A row that may
    represent many combinations of known values has less weight. Ties go to the value that is more frequent in the
    release. For numbers with a ``tolerance`` the guess is the value within the tolerance of most rows.

    The baseline is the most frequent value of the release. The control arm repeats the attack on people who are not in
    the release. What succeeds in both is general knowledge (smoking causes cancer), not disclosure about a person.
    """

    stage: ClassVar[Stage] = Stage.INFERENCE
    cheap: ClassVar[bool] = True
    examples = ({}, {"secret": "diagnosis"})
    reference: ClassVar[str] = (
        "Machanavajjhala, A. et al. (2007). l-diversity: privacy beyond k-anonymity. ACM TKDD 1(1). "
        "doi:10.1145/1217299.1217302"
    )

    @classmethod
    def suits(cls, scenario: AttackScenario, secret: str) -> bool:
        return bool(scenario.unperturbed)

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        votes = Votes.of(view, in_release=True)
        # A target without a matching row is guessed to have the most frequent value: no guess would be no better.
        windows = tolerance_windows(votes.index, self.tolerance)
        everything = np.arange(len(votes.index))
        common = int(np.argmax(votes_within(votes.prior, everything, windows)))
        best = np.full(view.targets.height, common, dtype=np.int64)
        confidence = np.full(view.targets.height, votes.prior[common])
        done = 0
        steps = batches(progress, "attribute linkage", votes.matched.persons)
        for part, (targets, values, count) in zip(steps, votes.cast(), strict=False):
            done = part.stop
            if len(values) == 0:
                continue
            # The frequency in the whole release only breaks ties: it is far below the weight of any row.
            close = votes_within(count, values, windows)
            top = int(np.argmax(close + 1e-9 * count.sum() * votes.prior[values]))
            best[targets] = values[top]
            confidence[targets] = close[top] / count.sum()
        return Guesses(
            value=votes.index.gather(best).alias(view.secret),
            made=np.ones(len(best), dtype=np.bool_),
            confidence=confidence,
            tried=votes.matched.reached(done),
        )
