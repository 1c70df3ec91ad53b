"""Refusal attack: a refusal that depends on the data tells what the answer would have been."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.query._base import RecoveredBits, TargetedQueryAttack, bits_from_scores
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import pack
from sfumato.rng import Rng


class Refusals(TargetedQueryAttack):
    """An analyst asks a count over everybody and over everybody except one person, and reads the refusals as well.

    An auditor that looks at the answers refuses where an answer would break its rule. If all differences that are
    answered show the same bit, the people whose difference is refused have the other one. A policy whose refusals do
    not depend on the data, such as simulatable auditing, gives nothing away by them.
    """

    examples = ({}, {"targets": 50})
    reference = "Kenthapadi, Mishra, Nissim (2005), doi:10.1145/1065167.1065183"

    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        targets = self.draw_targets(responder.people, rng)
        masks = np.ones((len(targets) + 1, responder.people), np.bool_)
        masks[np.arange(len(targets)) + 1, targets] = False
        answers = responder.ask_all(pack(masks))
        score = answers[0] - answers[1:]
        answered = ~np.isnan(score)
        told = score[answered] > 0.5
        if answered.any() and (told.all() or not told.any()):
            score[~answered] = 0.0 if told.all() else 1.0
        return bits_from_scores(targets, score)
