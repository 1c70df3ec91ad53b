"""The contract of a query answering policy: one class per policy in ``sfumato.auditing.policies``.

A policy is opened over a column of numbers, one per person, and answers one kind of query: the sum (of a 0/1 column:
the count) over a set of people. Attacks on query answers see this interface only, so every attack runs against every
policy. Behind SQL, the same policy answers COUNT, SUM and AVG about one table (:meth:`Policy.open_table`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.dataset.document import AnsweringPolicy
from sfumato.query.policy.subsets import Bits, random_subsets
from sfumato.rng import Rng

if TYPE_CHECKING:
    import polars as pl

    from sfumato.auditing.table import PolicyTable, TableResponder

__all__ = ["Flags", "Policy", "Responder", "SubsetResponder", "Values"]

Values = npt.NDArray[Any]
"""One number per person."""
Flags = npt.NDArray[np.bool_]


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
    limits_sets: ClassVar[bool] = False
    """Whether queries are refused because of the people they are about. In SQL, these are then the people whom public
    columns select: COUNT(*) with a condition on a sensitive column counts among them, and other conditions on sensitive
    columns are refused. Otherwise a refusal would tell who meets such a condition."""
    in_people: ClassVar[bool] = False
    """Whether answers are changed by an amount in numbers of people. Sums are then divided by the most that one person
    can contribute by the declared domain, which the column must have; and the people are those whom columns that are
    not sensitive select, because any other set, or how many of it have a value, would tell by equal answers."""
    masks_table: ClassVar[bool] = False
    """Whether a masked copy of the table is made once, from which all queries are answered exactly."""

    @abstractmethod
    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        """Start answering over these numbers. Policies with differential privacy ignore ``rng``."""

    def promise_text(self) -> str:
        """The promise with this policy's parameters."""
        return self.promise.format(**dict(self))

    @property
    def needs_sensitive(self) -> bool:
        """Whether the owner must declare sensitive columns."""
        return self.in_people

    def recorded(self, frame: pl.DataFrame, sensitive: tuple[str, ...]) -> dict[str, Any]:
        """The parameters as they are entered in the register of tables, where a table has one policy for good."""
        return self.model_dump(mode="json")

    def source(self, data: Any) -> Any:
        """The data that SQL queries are answered from."""
        return data

    def mask_table(self, frame: pl.DataFrame, sensitive: tuple[str, ...], rng: Rng) -> pl.DataFrame:
        """The table that queries are answered from: a masked copy for policies with ``masks_table``."""
        return frame

    def query_set(self, selected: Flags, present: Flags) -> Flags:
        """The people an answer is about: those the condition selects and who have a value.

        A condition that selects everybody may still be about one person, if only that person has a value. Where answers
        are changed by amounts in people, one person is hidden by the amount.
        """
        return selected if self.in_people else selected & present

    def open_table(self, table: PolicyTable) -> TableResponder:
        """Start answering SQL about a table."""
        from sfumato.auditing.table import SubsetTableResponder

        return SubsetTableResponder(self, table)
