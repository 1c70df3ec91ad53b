"""SQL about one table answered by a policy other than differential privacy.

Queries are parsed by the front end of private queries. The engine finds the people a query is about and their values;
the policy answers or refuses. What a policy must remember is stored in the ledger's database: the auditor's decisions,
each written before its answer is returned, and the seed of samples and masked copies, so that a restart changes
nothing.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Array
from sfumato.auditing.policy_query import ROW, PolicyQuery, parse_policy_query
from sfumato.auditing.register import register_table, same_database
from sfumato.auditing.row_order import canonical_order
from sfumato.auditing.set_policy import SetPolicy
from sfumato.dataset import Column, Kind, RangeDomain, Role, ValuesDomain
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.engine import Running
from sfumato.engines.statements import Query
from sfumato.errors import AnswerDenied, MetadataMissing
from sfumato.ledger.ledger import Store
from sfumato.query.declared_rows import read_declared
from sfumato.query.plan.catalog import Catalog
from sfumato.query.policy.base import ExactResponder, TableAnswer
from sfumato.query.policy.subsets import pack
from sfumato.rng import Rng
from sfumato.secret import Permit

_ELSEWHERE = '{"kept": "in another ledger"}'
"""The policy of a table whose memory another ledger keeps."""


class PolicyTable:
    """One private table, each row of which is a person, opened for a policy."""

    def __init__(self, catalog: Catalog, source: object, *, policy: SetPolicy, store: Store) -> None:
        [self.table] = catalog.private.values()
        self.catalog, self.policy, self.store = catalog, policy, store
        columns = self.table.schema.columns
        self.sensitive = tuple(name for name, column in columns.items() if column.role is Role.SENSITIVE)
        frame = read_declared(policy.source(source), self.table)
        frame = frame[canonical_order(frame)]
        self._enter = partial(
            register_table, dataset=catalog.dataset, place=source, frame=frame, sensitive=self.sensitive
        )
        self.entry = self._enter(store, policy=self._declarations(frame))
        if policy.in_people:
            self._require_bounds(frame)
        self.frame = policy.mask_table(frame, self.sensitive, self.rng()) if policy.masks_table else frame

    @cached_property
    def engine(self) -> Running:
        """The table with numbered rows, and the public tables, in memory."""
        public = {name: table.frame.to_arrow() for name, table in self.catalog.public.items()}
        return Duckdb(threads=1).start({self.table.name: self.frame.with_row_index(ROW).to_arrow(), **public})

    def _require_bounds(self, frame: pl.DataFrame) -> None:
        """Raise an error, for the owner, if a number lies outside its declared bounds: it would not be hidden."""
        for name, column in self.table.schema.columns.items():
            ends = column_ends(column)
            if ends is not None and frame.schema[name].is_numeric() and not frame[name].is_between(*ends).all():
                raise MetadataMissing(
                    f"Not every value of `{name}` lies within the bounds declared for it.",
                    fix="Declare bounds that hold for everybody, or clip the data to them.", column=name,
                )  # fmt: skip

    def move_from(self, store: Store) -> None:
        """Take the memory over from another ledger, which must have none of the table, and bind the table there.

        Two ledgers would keep two memories of the same people.
        """
        if not same_database(store, self.entry):
            self._enter(store, policy=_ELSEWHERE).claim(store)

    def claim(self) -> None:
        """Bind the table to its policy, before the first answer."""
        self.entry.claim(self.store)

    def rng(self) -> Rng:
        """Randomness of the policy: that of the table's entry for policies that keep it, new randomness for others."""
        return Rng(int.from_bytes(self.entry.secret[:16])) if self.policy.keeps_randomness else Rng()

    def _declarations(self, frame: pl.DataFrame) -> str:
        """The policy, and everything declared that answers depend on."""
        columns = {name: column.model_dump(mode="json") for name, column in self.table.schema.columns.items()}
        public = [(name, table.key, table.frame.write_csv()) for name, table in sorted(self.catalog.public.items())]
        joined = hashlib.sha256(repr(public).encode()).hexdigest()
        rules = self.policy.recorded(frame, self.sensitive)
        return json.dumps({self.policy.part_name(): rules, "columns": columns, "public": joined}, sort_keys=True)


class TableBinding:
    """Base of responders to SQL: claims the table for its policy, and moves its memory to another ledger."""

    def __init__(self, table: PolicyTable) -> None:
        self._table = table

    def claim(self) -> None:
        self._table.claim()

    def move_from(self, store: Store) -> None:
        self._table.move_from(store)


class SubsetTableResponder(TableBinding):
    """COUNT, SUM and AVG over the people that a query selects, answered by :meth:`Policy.open`."""

    def __init__(self, policy: SetPolicy, table: PolicyTable) -> None:
        super().__init__(table)
        self._policy = policy

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
        hidden = query.about(self._table.sensitive) if self._policy.limits_sets else ()
        if hidden and self._policy.in_people:
            raise query.refuse(
                hidden[0].node,
                f"Policy `{self._policy.part_name()}` answers no conditions on a sensitive column: equal answers would "
                "tell that they select the same people.",
                "Use conditions on other columns; SUM and AVG of a sensitive column of numbers are answered.",
            )
        self._unit(query)
        return query

    def ask(self, sql: str) -> TableAnswer:
        query = self.parse(sql)
        values, present, selected = self._people(query)
        rng, unit = self._table.rng(), self._unit(query)
        answer = self._sum(values, selected, self._own(rng, "count" if query.kind == "count" else "sum", query), unit)
        if query.kind == "avg":
            count = self._sum(present, selected, self._own(rng, "count", query))
            answer = answer / count if count > 0 else None
        whole = query.kind == "count" or (query.kind == "sum" and query.value and query.value.kind is Kind.INTEGER)
        value = int(answer) if whole and answer is not None and answer.is_integer() else answer
        return TableAnswer(title=query.title, values=(value,))

    def _people(self, query: PolicyQuery) -> tuple[Array, Array, Array]:
        """Per person: the value, whether there is one, and whether the answer is about the person."""
        hidden = query.about(self._table.sensitive) if self._policy.limits_sets else ()
        if hidden:
            everybody = np.arange(self._table.frame.height)
            public = self._numbers(query.people(part for part in query.conditions if part not in hidden))
            holds = np.isin(everybody, self._numbers(query.holders(hidden))).astype(np.int64)
            return holds, holds, np.isin(everybody, public)
        self._require_no_gaps(query)
        rows = self._table.engine.run(query.valued()).open(Permit(f"policy {self._policy.part_name()}"))
        people = self._table.frame.height
        whole = query.value is None or query.kind == "count" or query.value.kind is Kind.INTEGER
        values = np.zeros(people, np.int64 if whole else np.float64)
        present, selected = np.zeros(people, np.int64), np.zeros(people, np.bool_)
        for row, value, has_value in rows:
            values[row], present[row], selected[row] = value, bool(has_value), True
        return values, present, self._policy.query_set(selected, present.astype(np.bool_))

    def _require_no_gaps(self, query: PolicyQuery) -> None:
        """Refuse every query about the values of a sensitive column with gaps, whomever it selects.

        A limit on the number of people with a value tells by refusals who has one. A limit on the people selected would
        let the value of the only one who has any through.
        """
        if not self._policy.limits_sets or self._policy.in_people or query.column not in self._table.sensitive:
            return
        values = self._table.frame.get_column(query.column)
        if values.null_count() or (values.dtype.is_float() and values.is_nan().any()):
            raise AnswerDenied(
                f"Policy `{self._policy.part_name()}` answers no aggregate of `{query.column}`: the column is "
                "sensitive and has missing values. Refusals by how many people have a value would tell who has none.",
                fix="The owner fills the gaps, or uses `rounding`, `bounded-noise` or `consistent-noise`.",
            )

    def _numbers(self, people: Query) -> npt.NDArray[np.int64]:
        """Numbers of the rows that a statement selects."""
        return self._table.engine.row_numbers(people).open(Permit(f"policy {self._policy.part_name()}"))

    def _own(self, rng: Rng, total: str, query: PolicyQuery) -> Rng:
        """Noise of its own for each total of each column: the same noise would tell the exact difference of two.

        Samples are of people, the same for every column.
        """
        return rng.child(f"{total} {query.column}") if self._policy.in_people else rng

    def _unit(self, query: PolicyQuery) -> float:
        """The most that one person can contribute to the answer, in which a policy ``in_people`` measures."""
        if not self._policy.in_people or query.kind == "count" or query.column is None:
            return 1.0
        column = self._table.table.schema.columns[query.column]
        if column.kind is Kind.BOOLEAN:
            return 1.0
        ends = column_ends(column)
        if ends is None or ends == (0, 0):
            raise query.refuse(
                query.node,
                f"Policy `{self._policy.part_name()}` needs declared bounds of `{query.column}`.",
                "The owner declares `domain: {low: ..., high: ...}`.",
            )
        return max(abs(ends[0]), abs(ends[1]), ends[1] - ends[0])

    def _sum(self, values: Array, selected: Array, rng: Rng, unit: float = 1.0) -> Any:
        """The policy's sum over the selected people, or its refusal."""
        policy = self._policy
        scaled = values if unit == 1 else values / unit
        responder = ExactResponder(values) if policy.masks_table else policy.open(scaled, rng)
        answer = responder.ask(pack(selected)[0])
        if answer is None:
            raise AnswerDenied(f"Policy `{policy.part_name()}` refuses this set of people.", fix=policy.promise_text())
        return answer * unit


def column_ends(column: Column) -> tuple[float, float] | None:
    """The smallest and largest number declared for a column, if there are any."""
    if isinstance(column.domain, RangeDomain):
        return column.domain.low, column.domain.high
    values = column.domain.values if isinstance(column.domain, ValuesDomain) else ()
    listed = [value for value in values if isinstance(value, int | float)]
    return (min(listed), max(listed)) if listed else None
