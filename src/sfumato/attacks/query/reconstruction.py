"""Reconstruction attack (Dinur and Nissim): secret bits from noisy sums over many subsets."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from sfumato.attacks.query._base import QueryAttack, RecoveredBits, bits_from_scores
from sfumato.attacks.query._solvers import exhaustive, hadamard, hadamard_subsets, least_squares, linear_program
from sfumato.errors import NotApplicable
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import unpack
from sfumato.rng import Rng

_MAX_EXHAUSTIVE = 12
"""Largest number of people for which all subsets are asked."""


class Reconstruction(QueryAttack):
    """An analyst asks sums over many subsets of people and solves for the bits of all people at once.

    Noise of a smaller order than the square root of the number of people does not prevent the attack, whatever its
    distribution, if enough queries are answered. A policy has to add more noise or answer fewer queries; differential
    privacy does both.
    """

    main = "method"
    examples = ({}, {"method": "hadamard"}, {"method": "linear-program", "questions": 4})
    reference = "Dinur, Nissim (2003), doi:10.1145/773153.773173"

    method: Literal["least-squares", "linear-program", "exhaustive", "hadamard"] = "least-squares"
    """How the bits are computed from the answers; ``exhaustive`` asks all subsets, for at most 12 people."""
    questions: Annotated[float, Field(gt=0)] = 6
    """Number of random subsets as a multiple of the number of people; for ``least-squares`` and ``linear-program``."""

    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        count, everybody = responder.people, np.arange(responder.people)
        nothing = bits_from_scores(everybody, np.full(count, np.nan))
        if self.method == "hadamard":
            answers = responder.ask_all(hadamard_subsets(count))
            if np.isnan(answers).any():
                return nothing
            return bits_from_scores(everybody, hadamard(answers, count))
        if self.method == "exhaustive":
            if count > _MAX_EXHAUSTIVE:
                raise NotApplicable(
                    f"{count} people have too many subsets to ask all of them.",
                    fix=f"Use another method for more than {_MAX_EXHAUSTIVE} people.",
                )
            width = -(-count // 8)
            subsets = np.arange(1 << count, dtype="<u4").view(np.uint8).reshape(-1, 4)[:, :width].copy()
        else:
            subsets = responder.random_subsets(max(1, int(self.questions * count)), rng.child("subsets").generator)
        answers = responder.ask_all(subsets)
        answered = ~np.isnan(answers)
        subsets, answers = subsets[answered], answers[answered]
        if not len(answers):
            return nothing
        if self.method == "exhaustive":
            score = exhaustive(subsets, answers, count).astype(np.float64)
        elif self.method == "linear-program":
            score = linear_program(subsets, answers, count)
        else:
            score = least_squares(subsets, answers, count)
        covered = unpack(np.bitwise_or.reduce(subsets, axis=0)[None, :], count)[0]
        return bits_from_scores(everybody, np.where(covered, score, np.nan))
