"""The tracker: padding that makes a question large enough, and is then subtracted."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.query_attack import Recovered, Targeted, commoner, guessed
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import pack
from sfumato.rng import Rng

__all__ = ["Tracker"]


class Tracker(Targeted):
    """An analyst who may not ask about few people: a general tracker, half of everybody, pads each question.

    With T the tracker and its complement not-T, value(x) = sum(T with x) + sum(not-T with x) - sum(T) - sum(not-T).
    All four questions are about half of the people, so no limit on size stops them.
    """

    examples = ({}, {"targets": 50})
    reference = "Denning, Denning, Schwartz (1979), doi:10.1145/320064.320069"

    def run(self, desk: Responder, rng: Rng) -> Recovered:
        people = self.chosen(desk.people, rng)
        tracker = np.zeros(desk.people, np.bool_)
        tracker[rng.child("tracker").generator.permutation(desk.people)[: desk.people // 2]] = True
        base = desk.ask_all(pack(np.stack([tracker, ~tracker])))
        padded = np.stack([tracker, ~tracker]).repeat(len(people), axis=0)
        padded[np.arange(2 * len(people)), np.tile(people, 2)] = True
        told = desk.ask_all(pack(padded))
        score = told[: len(people)] + told[len(people) :] - base.sum()
        return guessed(people, score, commoner(desk))
