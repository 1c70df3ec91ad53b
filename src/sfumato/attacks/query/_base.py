"""Base class and evaluation of attacks on query answers.

An attack is one class in one file of ``attacks/query``. It receives a responder that answers subset sum queries and
guesses secret bits. It never learns whether a guess was correct:
:func:`~sfumato.attacks.query.evaluate_query_attack` compares the guesses with the truth and with the best constant
guess.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.params import Part
from sfumato.query.policy import Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng
from sfumato.stats import wilson


@dataclass(frozen=True, kw_only=True)
class RecoveredBits:
    """Guesses of secret bits."""

    targets: npt.NDArray[np.int64]
    """Numbers of the targets."""
    bits: npt.NDArray[np.int8]
    """The guessed bit of each target; without meaning where no guess was made."""
    made: npt.NDArray[np.bool_]
    """Whether the answers contained information about the target. Otherwise the best guess without answers counts."""


class CountingResponder:
    """A responder that counts queries and refusals."""

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self.people = responder.people
        self.asked = 0
        self.refused = 0

    def ask(self, query: Bits) -> float | None:
        answer = self._responder.ask(query)
        self.asked += 1
        self.refused += answer is None
        return answer

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        answers = self._responder.ask_all(queries)
        self.asked += len(answers)
        self.refused += int(np.isnan(answers).sum())
        return answers

    def random_subsets(self, count: int, rng: np.random.Generator) -> Bits:
        return self._responder.random_subsets(count, rng)


class QueryAttack(Part):
    """Base class of attacks on query answers.

    The docstring of a subclass is its threat model: who the attacker is, what they ask and what they want to learn.
    """

    needs_sql: ClassVar[bool] = False
    """Whether the attack writes SQL of its own, so that it runs against SQL sessions only."""

    @property
    def setting(self) -> str:
        """A few words that distinguish these parameters from others of the same attack."""
        return ""

    @classmethod
    def sql_settings(cls, targets: int) -> tuple[dict[str, object], ...]:
        """Parameters with which the attack runs by default against a query service, where each answer takes time."""
        return ({"targets": targets} if "targets" in cls.model_fields else {},)

    @abstractmethod
    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        """Ask queries and guess the bits of the targets."""


class TargetedQueryAttack(QueryAttack):
    """Base class of attacks on one person at a time."""

    targets: Annotated[int, Field(ge=1)] = 200
    """Number of targets, drawn at random."""

    def draw_targets(self, people: int, rng: Rng) -> npt.NDArray[np.int64]:
        """Numbers of the targets."""
        generator = rng.child("targets").generator
        return np.sort(generator.choice(people, min(self.targets, people), replace=False))


def bits_from_scores(targets: npt.NDArray[np.int64], score: npt.NDArray[np.float64]) -> RecoveredBits:
    """Bits from scores that estimate them; NaN where the answers say nothing."""
    made = ~np.isnan(score)
    return RecoveredBits(targets=targets, bits=(np.nan_to_num(score) > 0.5).astype(np.int8), made=made)


@dataclass(frozen=True, kw_only=True)
class QueryOutcome:
    """Results of an attack against a policy."""

    attack: str
    policy: str
    people: int
    tried: int
    hits: int
    made: int
    asked: int
    refused: int
    baseline: float
    """Success rate of guessing the more frequent value for every target."""
    threat: str = ""

    @property
    def risk(self) -> float:
        """The share of correct guesses."""
        return self.hits / self.tried

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The Wilson interval of the risk."""
        return wilson(self.hits, self.tried, level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        low, high = self.interval(level)
        return {
            "attack": self.attack, "policy": self.policy, "risk": self.risk, "low": low, "high": high,
            "baseline": self.baseline, "tried": self.tried, "hits": self.hits, "guesses": self.made,
            "people": self.people, "asked": self.asked, "refused": self.refused, "level": level, "threat": self.threat,
        }  # fmt: skip
