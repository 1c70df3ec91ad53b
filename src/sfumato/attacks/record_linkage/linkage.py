"""Record linkage on quasi-identifiers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.candidate_rows import match
from sfumato.deadline import batches
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario


class Linkage(Linking):
    """An attacker who knows a person's quasi-identifiers looks up the matching rows of the release and names one.

    The attacker has an external file with names, such as a voter list. Without one they know the true
    quasi-identifiers of everybody in the release (the prosecutor scenario), which is the worst case for this attack.
    Released values may be coarser than the known ones: published hierarchies, masks, ranges, sets and date parts are
    parsed. Among the matching rows the most specific ones are preferred, because a suppressed cell matches everybody;
    one of them is chosen at random, so the risk is the expected share of correct choices: 1 / k among k such rows.

    A row that is the only match is a *certain* match. Columns that a published step perturbed (noise, swapping,
    microaggregation) are not used. If all known columns were perturbed, the attack does not apply; use distance
    linkage.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.LOOKUP
    cheap: ClassVar[bool] = True
    looks_up: ClassVar[bool] = True
    examples = ({}, {"knows": ["zip", "birth", "sex"]})
    reference: ClassVar[str] = (
        "Sweeney, L. (2002). k-anonymity: a model for protecting privacy. International Journal of Uncertainty, "
        "Fuzziness and Knowledge-Based Systems 10(5). doi:10.1142/S0218488502001648"
    )

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        return (cls(),) if scenario.unperturbed or not scenario.known else ()

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        matched = match(view, in_release=True)
        row = np.full(view.targets.height, -1, dtype=np.int64)
        confidence, best, ties = (np.zeros(view.targets.height) for _ in range(3))
        draw = rng.generator
        done = 0
        steps = batches(progress, "linkage", matched.persons)
        for part, (targets, candidates) in zip(steps, matched.candidates(), strict=False):
            done = part.stop
            if len(candidates.classes) == 0:
                continue
            top = candidates.weight >= candidates.weight.max() * (1 - 1e-9)
            classes, sizes = candidates.classes[top], candidates.sizes[top]
            ends = np.cumsum(sizes)
            picks = draw.integers(ends[-1], size=len(targets))
            place = np.searchsorted(ends, picks, side="right")
            inside = picks - (ends[place] - sizes[place])
            row[targets] = matched.order[matched.starts[classes[place]] + inside]
            confidence[targets] = candidates.weight[top][0] / candidates.total
            best[targets], ties[targets] = candidates.weight[top][0], ends[-1]

        def chance(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            targets = np.arange(len(rows))
            tied = matched.fits(targets, rows) & (matched.weights(rows) >= best[targets] * (1 - 1e-9))
            return tied / np.maximum(ties[targets], 1.0)

        detail = {"left out": list(matched.left_out)} if matched.left_out else {}
        return Guesses.of_rows(row, confidence, detail, tried=matched.reached(done), chance=chance)
