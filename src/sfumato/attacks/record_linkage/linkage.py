"""Linkage on common quasi-identifiers: the attack on the Massachusetts hospital file."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.attacks.base import Discloses, Guesses, Linking, View
from sfumato.attacks.candidate_rows import match
from sfumato.deadline import batches
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["Linkage"]


class Linkage(Linking):
    """Somebody who knows a person's quasi-identifiers looks up which rows of the release fit, and names one of them.

    The intruder holds an outside file with names (a voter list), or, when none is given, the true quasi-identifiers of
    everybody in the release: the prosecutor, the worst case for this attack. Released values may be coarser than the
    known ones: published hierarchies, masks, ranges, sets and date parts are read. Of the rows that fit, those that say
    most are preferred (a suppressed cell fits everybody and says nothing), and one of them is named at random.

    A row that is the only one to fit is a *certain* match. Columns that a published step perturbed (noise, swapping,
    microaggregation) are left out; where all were, the attack does not apply, and distance linkage does.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    examples: ClassVar = ({}, {"knows": ["zip", "birth", "sex"]})
    reference: ClassVar[str] = (
        "Sweeney, L. (2002). k-anonymity: a model for protecting privacy. International Journal of Uncertainty, "
        "Fuzziness and Knowledge-Based Systems 10(5). doi:10.1142/S0218488502001648"
    )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        matched = match(view, in_release=True)
        row = np.full(view.targets.height, -1, dtype=np.int64)
        confidence = np.zeros(view.targets.height)
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
        detail = {"left out": list(matched.left_out)} if matched.left_out else {}
        return Guesses.of_rows(row, confidence, detail, tried=matched.reached(done))
