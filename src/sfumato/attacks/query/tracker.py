"""Tracker attack: pad small queries until they are answered, then subtract the padding."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.query._base import RecoveredBits, TargetedQueryAttack, bits_from_scores
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import pack, unpack
from sfumato.rng import Rng


class Tracker(TargetedQueryAttack):
    """An analyst whose small queries are refused pads each with a general tracker, which is half of all people.

    With T the tracker and not-T its complement, value(x) = sum(T with x) + sum(not-T with x) - sum(T) - sum(not-T). All
    four queries cover about half of the people, so no limit on the query set size prevents them.
    """

    examples = ({}, {"targets": 50})
    reference = "Denning, Denning, Schwartz (1979), doi:10.1145/320064.320069"

    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        targets = self.draw_targets(responder.people, rng)
        tracker = unpack(responder.random_subsets(1, rng.child("tracker").generator), responder.people)[0]
        base = responder.ask_all(pack(np.stack([tracker, ~tracker])))
        padded = np.stack([tracker, ~tracker]).repeat(len(targets), axis=0)
        padded[np.arange(2 * len(targets)), np.tile(targets, 2)] = True
        answers = responder.ask_all(pack(padded))
        score = answers[: len(targets)] + answers[len(targets) :] - base.sum()
        return bits_from_scores(targets, score)
