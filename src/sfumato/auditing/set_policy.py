"""Set policies: base of the classical policies, which answer SQL about sets of people, one row a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.dataset import Kind
from sfumato.ledger.ledger import Store
from sfumato.query.plan.catalog import Catalog
from sfumato.query.policy.base import Policy, TableResponder
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.auditing.table import PolicyTable

Flags = npt.NDArray[np.bool_]


class SetPolicy(Policy):
    """A policy that answers COUNT, SUM and AVG about one table by the sums of :meth:`Policy.open`."""

    limits_sets: ClassVar[bool] = False
    """Whether queries are refused because of the people they are about. In SQL, these are then the people whom public
    columns select: COUNT(*) with a condition on a sensitive column counts among them, and other conditions on sensitive
    columns are refused, and so are SUM, AVG and COUNT of a sensitive column in which values are missing. Otherwise a
    refusal would tell who meets such a condition, or who has a value."""
    in_people: ClassVar[bool] = False
    """Whether answers are changed by an amount in numbers of people. Sums are then divided by the most that one person
    can contribute by the declared domain, which the column must have; and the people are those whom columns that are
    not sensitive select, because any other set, or how many of it have a value, would tell by equal answers."""
    masks_table: ClassVar[bool] = False
    """Whether a masked copy of the table is made once, from which all queries are answered exactly."""

    @property
    def needs_sensitive(self) -> bool:
        return self.in_people

    def recorded(self, frame: pl.DataFrame, sensitive: tuple[str, ...]) -> dict[str, object]:
        """The parameters as they are entered in the register of tables, where a table has one policy for good."""
        return self.model_dump(mode="json")

    def source(self, data: object) -> object:
        """The data that SQL queries are answered from."""
        return data

    def mask_table(self, frame: pl.DataFrame, sensitive: tuple[str, ...], rng: Rng) -> pl.DataFrame:
        """The table that queries are answered from: a masked copy for policies with ``masks_table``."""
        return frame

    def query_set(self, selected: Flags, present: Flags) -> Flags:
        """The people an answer is about: those the condition selects and who have a value.

        A condition that selects everybody may still be about one person, if only that person has a value. Where sets
        are limited, the column is public, or nobody's value is missing. Where answers are changed by amounts in people,
        one person is hidden by the amount.
        """
        return selected if self.in_people else selected & present

    @classmethod
    def answer_column(cls, sql: str, catalog: Catalog) -> tuple[str, Kind]:
        from sfumato.auditing.policy_query import parse_policy_query

        asked = parse_policy_query(sql, catalog)
        if asked.kind == "count":
            return asked.title, Kind.INTEGER
        number = asked.kind in ("sum", "avg") or asked.value is None or asked.value.number
        return asked.title, Kind.NUMBER if number or asked.value is None else asked.value.kind

    def open_table(self, catalog: Catalog, source: object, store: Store) -> TableResponder:
        from sfumato.auditing.table import PolicyTable

        return self.answer_table(PolicyTable(catalog, source, policy=self, store=store))

    def answer_table(self, table: PolicyTable) -> TableResponder:
        """Start answering SQL about an opened table."""
        from sfumato.auditing.table import SubsetTableResponder

        return SubsetTableResponder(self, table)
