"""Dinur and Nissim: nearly all bits of a column from noisy sums over many subsets."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from sfumato.attacks.query._solvers import exhaustive, hadamard, hadamard_subsets, least_squares, linear_program
from sfumato.attacks.query_attack import QueryAttack, Recovered, commoner, guessed
from sfumato.errors import NotApplicable
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import random_subsets, unpack
from sfumato.rng import Rng

__all__ = ["Reconstruction"]


class Reconstruction(QueryAttack):
    """An analyst who asks about many subsets and solves for everybody's bit at once.

    Noise of a smaller order than the square root of the number of people does not stop it, whatever shape the noise
    has, as long as enough questions are answered; a policy has to add more noise or answer fewer questions.
    Differential privacy does both.
    """

    main = "method"
    examples = ({}, {"method": "hadamard"}, {"method": "linear-program", "questions": 4})
    reference = "Dinur, Nissim (2003), doi:10.1145/773153.773173"

    method: Literal["least-squares", "linear-program", "exhaustive", "hadamard"] = "least-squares"
    """How the answers are solved for the bits; ``exhaustive`` asks all subsets and is for at most 12 people."""
    questions: Annotated[float, Field(gt=0)] = 6
    """Random subsets asked, as a multiple of the number of people; the other two methods know how many they need."""

    def run(self, desk: Responder, rng: Rng) -> Recovered:
        count, everybody = desk.people, np.arange(desk.people)
        fallback = commoner(desk)
        if self.method == "hadamard":
            answers = desk.ask_all(hadamard_subsets(count))
            if np.isnan(answers).any():
                return guessed(everybody, np.full(count, np.nan), fallback)
            return guessed(everybody, hadamard(answers, count), fallback)
        if self.method == "exhaustive":
            if count > 12:
                raise NotApplicable(
                    f"All subsets of {count} people are too many to ask.",
                    fix="Use another method for more than 12 people.",
                )
            width = -(-count // 8)
            subsets = np.arange(1 << count, dtype="<u4").view(np.uint8).reshape(-1, 4)[:, :width].copy()
        else:
            subsets = random_subsets(max(1, int(self.questions * count)), count, rng.child("subsets").generator)
        answers = desk.ask_all(subsets)
        told = ~np.isnan(answers)
        subsets, answers = subsets[told], answers[told]
        if not len(answers):
            return guessed(everybody, np.full(count, np.nan), fallback)
        if self.method == "exhaustive":
            score = exhaustive(subsets, answers, count).astype(np.float64)
        elif self.method == "linear-program":
            score = linear_program(subsets, answers, count)
        else:
            score = least_squares(subsets, answers, count)
        touched = unpack(np.bitwise_or.reduce(subsets, axis=0)[None, :], count)[0]
        return guessed(everybody, np.where(touched, score, np.nan), fallback)
