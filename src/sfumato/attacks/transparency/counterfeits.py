"""Record linkage that discounts counterfeit rows: the record they copy is in the release as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.candidate_rows import match
from sfumato.attacks.counterfeit_weights import counterfeit_weights
from sfumato.deadline import batches
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario


class Counterfeits(Linking):
    """An attacker who knows that counterfeit rows were added looks up matching rows and names the least copied one.

    Counterfeit rows are assembled from real records: the quasi-identifiers of one and all other columns of another.
    The copied record is in the release as well, so among rows that agree in all other columns only one is real. The
    attacker names the matching row whose other columns are shared by the fewest rows. If no step with counterfeits was
    published, the attack equals linkage.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.LOOKUP
    order_in_stage: ClassVar[int] = 1
    examples = ({},)
    reference: ClassVar[str] = (
        "After the transparency principle: Torra, V. (2017). Data Privacy: Foundations, New Developments and the Big "
        "Data Challenge. doi:10.1007/978-3-319-57358-8"
    )

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        matchable = scenario.unperturbed or not scenario.known
        return (cls(),) if matchable and any(method.adds_rows for method in scenario.methods) else ()

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        matched = match(view, in_release=True)
        weight = counterfeit_weights(view)
        if weight is None:
            weight = np.ones(view.release.table.rows)
        row = np.full(view.targets.height, -1, dtype=np.int64)
        confidence = np.zeros(view.targets.height)
        draw = rng.generator
        done = 0
        steps = batches(progress, "counterfeits", matched.persons)
        for part, (targets, candidates) in zip(steps, matched.candidates(), strict=False):
            done = part.stop
            if len(candidates.classes) == 0:
                continue
            rows = np.concatenate([matched.rows(int(number)) for number in candidates.classes])
            scores = np.repeat(candidates.weight, candidates.sizes) * weight[rows]
            best = rows[scores >= scores.max() * (1 - 1e-12)]
            row[targets] = best[draw.integers(len(best), size=len(targets))]
            confidence[targets] = scores.max() / scores.sum()
        detail = {"left out": list(matched.left_out)} if matched.left_out else {}
        return Guesses.of_rows(row, confidence, detail, tried=matched.reached(done))
