"""The contract of an attack on answers: one class per attack in ``attack/query_attacks``.

An attack gets a desk that answers, ``ask(query) -> answer``, and guesses secret bits. It never learns whether it was
right: :func:`evaluate_query_attack` holds the truth, counts, and compares with the best blind guess.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.evaluation.intervals import wilson
from sfumato.errors import BadParameter
from sfumato.params import Part
from sfumato.query.policy import Policy, Responder
from sfumato.query.policy.subsets import Bits, pack
from sfumato.rng import Rng

__all__ = ["Asker", "QueryAttack", "QueryOutcome", "Recovered", "evaluate_query_attack"]


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """Guesses of secret bits."""

    people: npt.NDArray[np.int64]
    """Who was sought."""
    bits: npt.NDArray[np.int8]
    """The guess for each."""
    made: npt.NDArray[np.bool_]
    """Whether the answers said anything; where not, the guess is the value that seems commoner."""


class Asker:
    """A desk that counts what is asked and what is refused."""

    def __init__(self, desk: Responder) -> None:
        self._desk = desk
        self.people = desk.people
        self.asked = 0
        self.refused = 0

    def ask(self, query: Bits) -> float | None:
        answer = self._desk.ask(query)
        self.asked += 1
        self.refused += answer is None
        return answer

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        answers = self._desk.ask_all(queries)
        self.asked += len(answers)
        self.refused += int(np.isnan(answers).sum())
        return answers


class QueryAttack(Part):
    """Somebody who asks. The docstring of each subclass is its threat model: who, asking what, wanting what."""

    @abstractmethod
    def run(self, desk: Responder, rng: Rng) -> Recovered:
        """Ask, and guess."""


class Targeted(QueryAttack):
    """An attack on one person after the other."""

    targets: Annotated[int, Field(ge=1)] = 200
    """How many people are sought, drawn at random."""

    def chosen(self, people: int, rng: Rng) -> npt.NDArray[np.int64]:
        """The people sought."""
        generator = rng.child("targets").generator
        return np.sort(generator.choice(people, min(self.targets, people), replace=False))


def guessed(people: npt.NDArray[np.int64], score: npt.NDArray[np.float64], fallback: int) -> Recovered:
    """Guesses from scores that estimate each value; where there is none (NaN), the fallback."""
    made = ~np.isnan(score)
    bits = np.where(made, np.nan_to_num(score) > 0.5, fallback).astype(np.int8)
    return Recovered(people=people, bits=bits, made=made)


def commoner(desk: Responder) -> int:
    """The value that the total says is commoner; 0 if the total is not told."""
    total = desk.ask(pack(np.ones((1, desk.people), np.bool_))[0])
    return 0 if total is None else int(total > desk.people / 2)


@dataclass(frozen=True, kw_only=True)
class QueryOutcome:
    """What an attack got out of a policy."""

    attack: str
    policy: str
    people: int
    tried: int
    hits: int
    made: int
    asked: int
    refused: int
    baseline: float
    """Share that guessing the commoner value for everyone gets right."""
    threat: str = ""

    @property
    def risk(self) -> float:
        return self.hits / self.tried

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        return wilson(self.hits, self.tried, level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        low, high = self.interval(level)
        return {
            "attack": self.attack, "policy": self.policy, "risk": self.risk, "low": low, "high": high,
            "baseline": self.baseline, "tried": self.tried, "hits": self.hits, "guesses": self.made,
            "people": self.people, "asked": self.asked, "refused": self.refused, "level": level, "threat": self.threat,
        }  # fmt: skip


def evaluate_query_attack(attack: QueryAttack, policy: Policy, secrets: npt.ArrayLike, rng: Rng) -> QueryOutcome:
    """Run an attack against a policy over these secret bits and count what it got right."""
    truth = np.asarray(secrets)
    if truth.ndim != 1 or not truth.size or not np.isin(truth, (0, 1)).all():
        raise BadParameter("attacks on answers seek a column of 0 and 1.")
    truth = truth.astype(np.int8)
    asker = Asker(policy.open(truth, rng.child("policy")))
    found = attack.run(asker, rng.child("attack"))
    sought = truth[found.people]
    ones = float(sought.mean())
    return QueryOutcome(
        attack=attack.part_name(), policy=policy.part_name(), people=len(truth), tried=len(sought),
        hits=int((found.bits == sought).sum()), made=int(found.made.sum()), asked=asker.asked, refused=asker.refused,
        baseline=max(ones, 1 - ones), threat=attack.summary(),
    )  # fmt: skip
