"""The sensitive value of a person, read off the rows that fit: homogeneity and background knowledge."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, View
from sfumato.attacks.class_votes import Votes, near, reach_of
from sfumato.deadline import batches
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["AttributeLinkage"]


class AttributeLinkage(Linking):
    """Somebody who knows a person's quasi-identifiers reads the sensitive value off the released rows that fit.

    The person need not be found: when all rows that fit share one value, it is known (the homogeneity attack on
    k-anonymity). The guess is the value with most weight among the rows that fit; a row counts the less, the more
    combinations of known values it may stand for; ties go to the value more frequent in the whole release. Where a
    guess of a number may be off (``tolerance``), it is the value that is near enough to most.

    The baseline is the release's most frequent value; the control arm repeats the attack on people who are not in the
    release. What both share is knowledge about everybody (smoking and cancer), not about the person.
    """

    discloses: ClassVar[Discloses] = Discloses.ATTRIBUTE
    examples: ClassVar = ({}, {"secret": "diagnosis"})
    reference: ClassVar[str] = (
        "Machanavajjhala, A. et al. (2007). l-diversity: privacy beyond k-anonymity. ACM TKDD 1(1). "
        "doi:10.1145/1217299.1217302"
    )

    secret: str | None = None
    """The column sought; may be left out when exactly one released column is declared sensitive."""
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """For numbers: how far off a guess may be and still count, as a share of the true value."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        votes = Votes.of(view, in_release=True)
        # Who fits no row still gets a guess, the most frequent value: saying nothing is no better for the intruder.
        reaches = reach_of(votes.index, self.tolerance)
        everything = np.arange(len(votes.index))
        common = int(np.argmax(near(votes.prior, everything, reaches)))
        best = np.full(view.targets.height, common, dtype=np.int64)
        confidence = np.full(view.targets.height, votes.prior[common])
        done = 0
        steps = batches(progress, "attribute linkage", votes.matched.persons)
        for part, (targets, values, count) in zip(steps, votes.cast(), strict=False):
            done = part.stop
            if len(values) == 0:
                continue
            # The share of the whole release, far below any single vote, breaks ties and nothing else.
            close = near(count, values, reaches)
            top = int(np.argmax(close + 1e-9 * count.sum() * votes.prior[values]))
            best[targets] = values[top]
            confidence[targets] = close[top] / count.sum()
        return Guesses(
            value=votes.index.gather(best).alias(view.secret),
            made=np.ones(len(best), dtype=np.bool_),
            confidence=confidence,
            tried=votes.matched.reached(done),
        )
