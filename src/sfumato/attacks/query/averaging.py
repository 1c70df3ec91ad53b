"""Averaging attack: repeat a difference of two queries and average the noise out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from sfumato.attacks.query._base import RecoveredBits, TargetedQueryAttack, bits_from_scores
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import pack, unpack
from sfumato.rng import Rng


class Averaging(TargetedQueryAttack):
    """An analyst asks the difference of two queries many times, with or without variation, and averages the answers.

    Fresh noise and fresh samples average out when the same query is repeated. If the same query always gets the same
    answer, ``vary: company`` changes the other people in the query each time, which rounding, caches and consistent
    samples do not recognize as the same query.
    """

    examples = ({"repeats": 600, "targets": 40}, {"repeats": 600, "targets": 40, "vary": "company"})
    reference = "Denning (1980), doi:10.1145/320613.320616"

    repeats: Annotated[int, Field(ge=1)] = 100
    """Number of repetitions per target."""
    vary: Literal["nothing", "company"] = "nothing"
    """Whether the query stays the same, or the other people in it change."""

    @property
    def setting(self) -> str:
        return "other people each time" if self.vary == "company" else "the same query again"

    @classmethod
    def sql_settings(cls, targets: int) -> tuple[dict[str, Any], ...]:
        few = {"targets": min(targets, 20), "repeats": 60}
        return few, {**few, "vary": "company"}

    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        targets = self.draw_targets(responder.people, rng)
        generator = rng.child("company").generator
        score = np.empty(len(targets))
        for place, target in enumerate(targets):
            draws = self.repeats if self.vary == "company" else 1
            without = unpack(responder.random_subsets(draws, generator), responder.people)
            without[:, target] = False
            with_target = without.copy()
            with_target[:, target] = True
            if self.vary == "nothing":
                without = np.repeat(without, self.repeats, axis=0)
                with_target = np.repeat(with_target, self.repeats, axis=0)
            differences = responder.ask_all(pack(with_target)) - responder.ask_all(pack(without))
            score[place] = np.nanmean(differences) if not np.isnan(differences).all() else np.nan
        return bits_from_scores(targets, score)
