"""Linkage that sees through counterfeits: what was copied stands in the release twice."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.attacks.base import Discloses, Guesses, Linking, View
from sfumato.attacks.candidate_rows import match
from sfumato.attacks.counterfeit_weights import trust_in_rows
from sfumato.deadline import batches
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["Counterfeits"]


class Counterfeits(Linking):
    """Somebody who knows that made-up rows were added looks up who fits, and names the row that copies nobody.

    Counterfeits are made of pieces of real records: the quasi-identifiers of one, all else of another. The record that
    was copied is in the release as well, so of rows that agree in everything but the quasi-identifiers only one is
    real. Of the rows that fit a person the one is named whose other columns are shared by fewest rows. Where no
    counterfeits were published it is plain linkage.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    examples: ClassVar = ({},)
    reference: ClassVar[str] = (
        "After the transparency principle: Torra, V. (2017). Data Privacy: Foundations, New Developments and the Big "
        "Data Challenge. doi:10.1007/978-3-319-57358-8"
    )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        matched = match(view, in_release=True)
        trust = trust_in_rows(view)
        weight = trust if trust is not None else np.ones(view.release.table.rows)
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
            held = np.repeat(candidates.weight, candidates.sizes) * weight[rows]
            best = rows[held >= held.max() * (1 - 1e-12)]
            row[targets] = best[draw.integers(len(best), size=len(targets))]
            confidence[targets] = held.max() / held.sum()
        detail = {"left out": list(matched.left_out)} if matched.left_out else {}
        return Guesses.of_rows(row, confidence, detail, tried=matched.reached(done))
