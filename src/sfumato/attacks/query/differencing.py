"""How many have it, and how many except her."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.query_attack import Recovered, Targeted, commoner, guessed
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import pack
from sfumato.rng import Rng

__all__ = ["Differencing"]


class Differencing(Targeted):
    """An analyst who asks about everybody, then about everybody except one person, and subtracts.

    Works against every policy that answers large questions exactly.
    """

    examples = ({}, {"targets": 50})
    reference = "Denning (1982), Cryptography and Data Security, chapter 6, ISBN 0-201-10150-5"

    def run(self, desk: Responder, rng: Rng) -> Recovered:
        people = self.chosen(desk.people, rng)
        masks = np.ones((len(people) + 1, desk.people), np.bool_)
        masks[np.arange(len(people)) + 1, people] = False
        answers = desk.ask_all(pack(masks))
        return guessed(people, answers[0] - answers[1:], commoner(desk))
