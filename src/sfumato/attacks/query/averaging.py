"""The same question again and again, or with other company each time."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from sfumato.attacks.query_attack import Recovered, Targeted, commoner, guessed
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import pack
from sfumato.rng import Rng

__all__ = ["Averaging"]


class Averaging(Targeted):
    """An analyst who asks the same difference many times, in the same or in other words, and takes the mean.

    Fresh noise and fresh samples average out when the very same question is repeated. Where the answer to the same
    question is always the same, ``company`` asks about the person among other people each time, which rounding, caches
    and consistent samples do not recognize as the same question.
    """

    examples = ({"repeats": 600, "targets": 40}, {"repeats": 600, "targets": 40, "vary": "company"})
    reference = "Denning (1980), doi:10.1145/320613.320616"

    repeats: Annotated[int, Field(ge=1)] = 100
    """How often the difference is asked per person."""
    vary: Literal["nothing", "company"] = "nothing"
    """Whether the question stays the same, or the other people in it change."""

    def run(self, desk: Responder, rng: Rng) -> Recovered:
        people = self.chosen(desk.people, rng)
        generator = rng.child("company").generator
        score = np.empty(len(people))
        for place, person in enumerate(people):
            draws = self.repeats if self.vary == "company" else 1
            without = generator.random((draws, desk.people)) < 0.5
            without[:, person] = False
            together = without.copy()
            together[:, person] = True
            if self.vary == "nothing":
                without, together = np.repeat(without, self.repeats, axis=0), np.repeat(together, self.repeats, axis=0)
            told = desk.ask_all(pack(together)) - desk.ask_all(pack(without))
            score[place] = np.nanmean(told) if not np.isnan(told).all() else np.nan
        return guessed(people, score, commoner(desk))
