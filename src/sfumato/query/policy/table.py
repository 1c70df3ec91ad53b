"""SQL about one table answered by a policy other than differential privacy.

Queries are parsed by the front end of private queries. The engine finds the people a query is about and their values;
the policy answers or refuses. What a policy must remember is stored in the ledger's database: the auditor's decisions,
each written before its answer is returned, and the seed of samples and masked copies, so that a restart changes
nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.dp.ledger import Store
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.engine import Running
from sfumato.engines.expressions import Read
from sfumato.engines.statements import Query, Select, Stored
from sfumato.errors import AnswerDenied, AnswerFailed, BadParameter, EmptyTable
from sfumato.query.catalog import Catalog, PrivateTable
from sfumato.query.plan.scalar import TYPES
from sfumato.query.policies.exact import ExactResponder
from sfumato.query.policy.base import Policy
from sfumato.query.policy.policy_query import ROW, PolicyQuery, parse_policy_query
from sfumato.query.policy.subsets import pack
from sfumato.rng import Rng
from sfumato.schema import Kind, Role
from sfumato.secret import Permit

__all__ = ["PolicyTable", "SubsetTableResponder", "TableAnswer", "TableResponder", "policy_notes", "read_declared"]

_SEEDS = (
    "CREATE TABLE IF NOT EXISTS sfumato_policies (dataset TEXT NOT NULL, policy TEXT NOT NULL, secret TEXT NOT NULL, "
    "PRIMARY KEY (dataset, policy))"
)
_POLARS: dict[Kind, Any] = {
    Kind.INTEGER: pl.Int64, Kind.NUMBER: pl.Float64, Kind.CATEGORY: pl.String, Kind.DATE: pl.Date,
    Kind.DATETIME: pl.Datetime, Kind.BOOLEAN: pl.Boolean,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TableAnswer:
    """What a policy answered: one column of values."""

    title: str
    values: tuple[Any, ...]
    """One number, or the values of a column in sorted order; None where there is no answer."""
    counterfeits: int = 0
    """How many of the values are false, added by the auditor."""


class TableResponder(Protocol):
    """Answers SQL about one table."""

    def parse(self, sql: str) -> PolicyQuery:
        """The query; what the policy does not answer is refused from its text alone."""
        ...

    def ask(self, sql: str) -> TableAnswer:
        """The policy's answer; a refusal by the policy is :class:`~sfumato.errors.AnswerDenied`."""
        ...


class PolicyTable:
    """One private table, each row of which is a person, opened for a policy."""

    def __init__(self, catalog: Catalog, source: Any, *, policy: Policy, store: Store) -> None:
        [self.table] = catalog.private.values()
        self.catalog, self.policy, self.store = catalog, policy, store
        columns = self.table.schema.columns
        self.sensitive = tuple(name for name, column in columns.items() if column.role is Role.SENSITIVE)
        frame = read_declared(policy.source(source), self.table)
        self.frame = policy.mask_table(frame, self.sensitive, self.rng()) if policy.masks_table else frame

    @cached_property
    def engine(self) -> Running:
        """The table with numbered rows, and the public tables, in memory."""
        public = {name: table.frame.to_arrow() for name, table in self.catalog.public.items()}
        return Duckdb(threads=1).start({self.table.name: self.frame.with_row_index(ROW).to_arrow(), **public})

    def rng(self) -> Rng:
        """Randomness of the policy: the stored seed for policies that keep it, new randomness for others."""
        return Rng(self._seed()) if self.policy.keeps_randomness else Rng()

    def _seed(self) -> int:
        """Drawn at the first use of this policy with these parameters on this data set, then stored."""
        parameters = json.dumps(self.policy.model_dump(mode="json"), sort_keys=True)
        key = (self.catalog.dataset, f"{self.policy.part_name()} {parameters}")
        with self.store.write() as transaction:
            transaction.query(_SEEDS)
            stored = transaction.query("SELECT secret FROM sfumato_policies WHERE dataset = ? AND policy = ?", *key)
            if not stored:
                stored = [(os.urandom(16).hex(),)]
                transaction.query("INSERT INTO sfumato_policies VALUES (?, ?, ?)", *key, stored[0][0])
        return int(stored[0][0], 16)


class SubsetTableResponder:
    """COUNT, SUM and AVG over the people that a query selects, answered by :meth:`Policy.open`."""

    def __init__(self, policy: Policy, table: PolicyTable) -> None:
        self._policy, self._table = policy, table

    def parse(self, sql: str) -> PolicyQuery:
        query = parse_policy_query(sql, self._table.catalog)
        if query.kind not in ("count", "sum", "avg"):
            raise query.refuse(query.node, f"Policy `{self._policy.part_name()}` answers COUNT, SUM and AVG.")
        if query.value is not None and query.column is None:
            # SUM(CASE WHEN id = 7 THEN bill ELSE 0 END) is about one person whatever the condition selects, and
            # SUM(bill * 1000000) makes the policy's rounding or noise negligible.
            raise query.refuse(
                query.node,
                f"Policy `{self._policy.part_name()}` answers about columns of the table, not about expressions.",
                "Use COUNT(*), or COUNT, SUM or AVG of one column, with a WHERE.",
            )
        if self._policy.limits_sets:
            query.about(self._table.sensitive)
        return query

    def ask(self, sql: str) -> TableAnswer:
        query = self.parse(sql)
        values, present, selected = self._people(query)
        rng = self._table.rng()
        answer = self._sum(values, selected, rng)
        if query.kind == "avg":
            count = self._sum(present, selected, rng)
            answer = answer / count if count > 0 else None
        whole = query.kind == "count" or (query.kind == "sum" and query.value and query.value.kind is Kind.INTEGER)
        value = int(answer) if whole and answer is not None and answer.is_integer() else answer
        return TableAnswer(title=query.title, values=(value,))

    def _people(self, query: PolicyQuery) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Per person: the value, whether there is one, and whether the answer is about the person."""
        hidden = query.about(self._table.sensitive) if self._policy.limits_sets else ()
        if hidden:
            everybody = np.arange(self._table.frame.height)
            public = self._numbers(query.people(part for part in query.conditions if part not in hidden))
            holds = np.isin(everybody, self._numbers(query.holders(hidden))).astype(np.int64)
            return holds, holds, np.isin(everybody, public)
        rows = self._table.engine.run(query.valued()).open(Permit(f"policy {self._policy.part_name()}"))
        people = self._table.frame.height
        whole = query.value is None or query.kind == "count" or query.value.kind is Kind.INTEGER
        values = np.zeros(people, np.int64 if whole else np.float64)
        present, selected = np.zeros(people, np.int64), np.zeros(people, np.bool_)
        for row, value, has_value in rows:
            values[row], present[row], selected[row] = value, bool(has_value), True
        return values, present, self._policy.query_set(selected, present.astype(np.bool_))

    def _numbers(self, people: Query) -> npt.NDArray[np.int64]:
        """Numbers of the rows that a statement selects."""
        return self._table.engine.row_numbers(people).open(Permit(f"policy {self._policy.part_name()}"))

    def _sum(self, values: np.ndarray[Any, Any], selected: np.ndarray[Any, Any], rng: Rng) -> Any:
        """The policy's sum over the selected people, or its refusal."""
        policy = self._policy
        responder = ExactResponder(values) if policy.masks_table else policy.open(values, rng)
        answer = responder.ask(pack(selected)[0])
        if answer is None:
            raise AnswerDenied(f"Policy `{policy.part_name()}` refuses this set of people.", fix=policy.promise_text())
        return answer


def policy_notes(policy: Policy) -> tuple[str, ...]:
    """What a policy does, and that it is not differential privacy."""
    parameters = policy.model_dump(mode="json", exclude_none=True, exclude={"file", "known"}, exclude_defaults=True)
    with_ = f" ({', '.join(f'{name} {value}' for name, value in parameters.items())})" if parameters else ""
    return (f"Policy `{policy.part_name()}`{with_} does not provide differential privacy.", policy.promise_text())


def read_declared(source: Any, table: PrivateTable) -> pl.DataFrame:
    """The declared columns, each value cast to its declared kind, as private queries read them."""
    kinds: Mapping[str, Kind] = {name: column.kind for name, column in table.schema.columns.items() if column.kind}
    items = tuple((f"c{i}", Read((table.name, name), TYPES[kind])) for i, (name, kind) in enumerate(kinds.items()))
    data = source.to_arrow() if isinstance(source, pl.DataFrame) else source
    try:
        rows = Duckdb().start({table.name: data}).run(Select(items, Stored(table.name)))
    except AnswerFailed:
        raise BadParameter(
            f"the declared columns of `{table.name}` cannot be read from its data.",
            fix="Compare the metadata with the file.",
        ) from None
    frame = pl.DataFrame(
        rows.open(Permit("policy")), schema={name: _POLARS[kind] for name, kind in kinds.items()}, orient="row"
    )
    if not frame.height:
        raise EmptyTable(f"Table `{table.name}` has no rows.")
    return frame.with_columns(pl.selectors.float().fill_nan(None))
