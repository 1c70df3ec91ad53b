"""The contract of a query answering policy: how an owner answers, over a column of numbers and behind SQL.

A policy is opened over a column of numbers, one per person, and answers one kind of query: the sum (of a 0/1 column:
the count) over a set of people. Attacks on query answers see this interface only, so every attack runs against every
policy. Behind SQL, a session asks a :class:`TableResponder` (:meth:`Policy.open_table`); it knows no policy by name.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array
from sfumato.dataset import Kind
from sfumato.dataset.document import AnsweringPolicy
from sfumato.errors import BadParameter
from sfumato.ledger.ledger import Store
from sfumato.query.plan.catalog import Catalog
from sfumato.query.policy.subsets import Bits, random_subsets, subset_sums
from sfumato.rng import Rng

Values = Array
"""One number per person."""


class Responder(Protocol):
    """Answers subset queries: all that an adversary sees."""

    people: int
    """How many people the data is about; public."""

    def ask(self, query: Bits) -> float | None:
        """The sum over one subset (a row of bits, see :mod:`sfumato.query.policy.subsets`); None for a refusal."""
        ...

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        """The same for many subsets, in order; NaN for a refusal."""
        ...

    def random_subsets(self, count: int, rng: np.random.Generator) -> Bits:
        """Random subsets with about half of the people, which an analyst can describe easily."""
        ...


class SubsetResponder:
    """Base of responders: implement :meth:`ask` or :meth:`ask_all`; each is defined by the other."""

    def __init__(self, people: int) -> None:
        self.people = people

    def ask(self, query: Bits) -> float | None:
        answer = float(self.ask_all(query[None, :])[0])
        return None if np.isnan(answer) else answer

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        answers = [self.ask(query) for query in queries]
        return np.array([np.nan if answer is None else answer for answer in answers], np.float64)

    def random_subsets(self, count: int, rng: np.random.Generator) -> Bits:
        return random_subsets(count, self.people, rng)


class ExactResponder(SubsetResponder):
    """Gives the true sums; other policies build on it."""

    def __init__(self, values: Values) -> None:
        super().__init__(len(values))
        self.values = values

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        return subset_sums(queries, self.values)


@dataclass(frozen=True, kw_only=True)
class TableAnswer:
    """What a policy answered: one column of values."""

    title: str
    values: tuple[Any, ...]
    """One number, or the values of a column in sorted order; None where there is no answer."""
    counterfeits: int = 0
    """How many of the values are false, added by the auditor."""


class TableResponder(Protocol):
    """Answers SQL about one table. A session calls the methods in this order: parse, claim, ask."""

    def parse(self, sql: str) -> object:
        """Understand the query; what the policy does not answer is refused from its text alone."""
        ...

    def claim(self) -> None:
        """Bind the table to its policy, before the first answer."""
        ...

    def ask(self, sql: str) -> TableAnswer:
        """The policy's answer; a refusal by the policy is :class:`~sfumato.errors.AnswerDenied`."""
        ...

    def move_from(self, store: Store) -> None:
        """Take the memory of the table over from another ledger, and bind the table there."""
        ...


class Policy(AnsweringPolicy):
    """How an owner answers queries. Everything another module must know about a policy is a field or method of it."""

    promise: ClassVar[str] = ""
    """What analysts are told that the policy does; fields in braces are filled in."""
    broken_by: ClassVar[tuple[str, ...]] = ()
    """Registered query attacks that recover secret bits from this policy better than blind guessing."""
    keeps_randomness: ClassVar[bool] = False
    """Whether all queries must use the same randomness. It is then drawn once and stored beside the ledger."""
    fresh_noise: ClassVar[bool] = False
    """Whether the same query may be answered with new noise each time it is asked."""

    @abstractmethod
    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        """Start answering over these numbers. Policies with differential privacy ignore ``rng``."""

    def promise_text(self) -> str:
        """The promise with this policy's parameters."""
        return self.promise.format(**dict(self))

    def notes(self) -> tuple[str, ...]:
        """What the policy does, that it is not differential privacy, and the attacks that break it."""
        parameters = self.model_dump(mode="json", exclude_none=True, exclude={"file", "known"}, exclude_defaults=True)
        with_ = f" ({', '.join(f'{name} {value}' for name, value in parameters.items())})" if parameters else ""
        broken = f"Attacks that break it: {', '.join(self.broken_by)}." if self.broken_by else "No guarantee is proved."
        return (
            f"Policy `{self.part_name()}`{with_} does not provide differential privacy.", self.promise_text(), broken
        )  # fmt: skip

    @classmethod
    def answer_column(cls, sql: str, catalog: Catalog) -> tuple[str, Kind]:
        """Title and kind of the column that a query about a table is answered by. Nothing is run."""
        raise cls._without_tables()

    def open_table(self, catalog: Catalog, source: object, store: Store) -> TableResponder:
        """Start answering SQL about the one private table of a catalog; ``store`` keeps what must be remembered."""
        raise self._without_tables()

    @classmethod
    def _without_tables(cls) -> BadParameter:
        return BadParameter(f"policy `{cls.part_name()}` answers no SQL about tables.", fix="Choose another policy.")
