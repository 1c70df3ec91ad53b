"""The contract of an answering policy: one class per policy in ``answer/policies``.

A policy is opened over a column of numbers, one per person, and then answers one kind of question: the sum (of a 0/1
column: the count) over a set of people that the asker can name. That is the whole interface, ``ask(query) -> answer``,
so that every attack runs against every policy, ours or somebody else's.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.params import Part
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng

__all__ = ["Policy", "Responder", "SubsetResponder", "Values"]

Values = npt.NDArray[Any]
"""One number per person."""


class Responder(Protocol):
    """Somebody who answers: all that an attacker sees."""

    people: int
    """How many people the data is about; public."""

    def ask(self, query: Bits) -> float | None:
        """The sum over one subset (a row of bits, see :mod:`sfumato.query.policy.subsets`); None for a refusal."""
        ...

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        """The same for many subsets, in order; NaN for a refusal."""
        ...


class SubsetResponder:
    """Base of desks: answers one by one; a policy that can answer many at once overrides :meth:`ask_all`, or both."""

    def __init__(self, people: int) -> None:
        self.people = people

    def ask(self, query: Bits) -> float | None:
        answer = float(self.ask_all(query[None, :])[0])
        return None if np.isnan(answer) else answer

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        answers = [self.ask(query) for query in queries]
        return np.array([np.nan if answer is None else answer for answer in answers], np.float64)


class Policy(Part):
    """How an owner answers. The docstring of each subclass says what it promises and which attack breaks it."""

    kept: ClassVar[bool] = False
    """Whether all questions must meet the same randomness; it is then drawn once and kept beside the ledger."""

    fresh_noise: ClassVar[bool] = False
    """Whether every answer draws new randomness, so that the same question may be answered differently."""

    @abstractmethod
    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        """Start answering over these numbers. Policies with differential privacy ignore ``rng``."""
