"""Differencing attack: COUNT with the target minus COUNT without."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.query._base import RecoveredBits, TargetedQueryAttack, bits_from_scores
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import pack
from sfumato.rng import Rng


class Differencing(TargetedQueryAttack):
    """An analyst asks a count over everybody, then over everybody except one person, and subtracts.

    The attack succeeds against every policy that answers large queries exactly.
    """

    examples = ({}, {"targets": 50})
    reference = "Denning (1982), Cryptography and Data Security, chapter 6, ISBN 0-201-10150-5"

    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        targets = self.draw_targets(responder.people, rng)
        masks = np.ones((len(targets) + 1, responder.people), np.bool_)
        masks[np.arange(len(targets)) + 1, targets] = False
        answers = responder.ask_all(pack(masks))
        return bits_from_scores(targets, answers[0] - answers[1:])
