"""Asking a data set whose owner chose another policy than differential privacy: the same SQL, other promises.

The query is read by the front of private answers; the engine says who is asked about; the policy answers or says no.
What a policy must remember is in the ledger's database: the auditor's decisions, each written before its answer is
given, and the secret by which samples and copies are drawn, so that a restart changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.dp.ledger import Store
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.engine import Running
from sfumato.errors import AnswerDenied, AnswerFailed, BadParameter, EmptyTable
from sfumato.query.auditing.audit_log import DurableAuditor
from sfumato.query.auditing.auditor import Rules
from sfumato.query.auditing.sql_frontend import SqlAuditor
from sfumato.query.catalog import Catalog
from sfumato.query.execute.timing import quantize_response
from sfumato.query.plan.scalar import name_sql
from sfumato.query.policies.exact import ExactResponder
from sfumato.query.policy import Policy
from sfumato.query.policy.choice import PolicyChoice
from sfumato.query.policy.policy_query import ROW, PolicyQuery, parse_policy_query
from sfumato.query.policy.subsets import pack
from sfumato.query.sql.functions import TYPES
from sfumato.rng import Rng
from sfumato.schema import Kind, Role
from sfumato.secret import Permit

__all__ = ["PolicyAnswer", "PolicySession"]

_SECRETS = (
    "CREATE TABLE IF NOT EXISTS sfumato_policies (dataset TEXT NOT NULL, policy TEXT NOT NULL, secret TEXT NOT NULL, "
    "PRIMARY KEY (dataset, policy))"
)
_POLARS: dict[Kind, Any] = {
    Kind.INTEGER: pl.Int64, Kind.NUMBER: pl.Float64, Kind.CATEGORY: pl.String, Kind.DATE: pl.Date,
    Kind.DATETIME: pl.Datetime, Kind.BOOLEAN: pl.Boolean,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PolicyAnswer:
    """What a policy told. It carries no promise of differential privacy."""

    column: str
    values: tuple[Any, ...]
    """One number, or the values of a column in their own order; None where there is no answer."""
    policy: str
    counterfeits: int = 0
    """How many of the values are false, added by the auditor."""
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> Any:
        """The number, for an answer that is a single one."""
        if len(self.values) != 1:
            raise BadParameter("this answer has more than one value.", fix="Use `answer.values`.")
        return self.values[0]

    def to_dict(self) -> dict[str, Any]:
        rows = [{self.column: {"value": _plain(value), "low": None, "high": None}} for value in self.values]
        return {
            "columns": [self.column], "rows": rows, "policy": self.policy, "differential_privacy": False,
            "counterfeits": self.counterfeits, "notes": list(self.notes),
        }  # fmt: skip


class PolicySession:
    """Answers questions about one table, each row of which is a person, by one policy. All askers count as one."""

    def __init__(
        self, catalog: Catalog, source: Path, *, choice: PolicyChoice, store: Store, pace: float | None = None
    ) -> None:
        [self._table] = catalog.private.values()
        self.catalog, self.choice, self._store = catalog, choice, store
        self.pace = pace
        """Answers and refusals are given at whole multiples of so many seconds after the question."""
        columns = self._table.schema.columns
        self._sensitive = tuple(name for name, column in columns.items() if column.role is Role.SENSITIVE)
        copy = getattr(choice.policy, "file", None)
        frame = _read(source if copy is None else Path(copy), self._table.name, {n: c.kind for n, c in columns.items()})
        if choice.name == "perturbed" and copy is None:
            frame = self._exchanged(frame)
        self._frame = frame
        public = {name: table.frame.to_arrow() for name, table in catalog.public.items()}
        self._engine: Running = Duckdb(threads=1).start(
            {self._table.name: frame.with_row_index(ROW).to_arrow(), **public}
        )
        self._front: SqlAuditor | None = None
        if choice.rules is not None:
            self._front = SqlAuditor(
                frame, secrets=self._sensitive, rules=Rules(**choice.rules.model_dump()), catalog=catalog,
                engine=self._engine,
            )  # fmt: skip
            self._audit = DurableAuditor(self._front, store, dataset=catalog.dataset)

    def notes(self) -> tuple[str, ...]:
        """What the policy promises, and that it is not differential privacy."""
        if self.choice.rules is not None:
            told = f"Answers are exact or refused: everyone keeps at least {self.choice.rules.k} possible values."
        else:
            told = self._policy().summary().replace("``", "`")
        part = self.choice.rules or self._policy()
        given = part.model_dump(mode="json", exclude_none=True, exclude={"file"}, exclude_defaults=True)
        with_ = f" ({', '.join(f'{name} {value}' for name, value in given.items())})" if given else ""
        return (f"Policy `{self.choice.name}`{with_} carries no promise of differential privacy.", told)

    def explain(self, sql: str) -> tuple[str, ...]:
        """Whether the question is in the language, and how it would be answered. Decides and tells nothing."""
        self._parsed(sql)
        return ("Costs no budget.", *self.notes())

    def ask(self, sql: str) -> PolicyAnswer:
        """The policy's answer; its no is an error of its own kind, and tells the policy and the reason."""
        with quantize_response(self.pace):
            asked = self._parsed(sql)
            return self._audited(sql, asked) if self._front is not None else self._answered(asked)

    def _answered(self, asked: PolicyQuery) -> PolicyAnswer:
        values, there, chosen = self._people(asked)
        rng = Rng(self._secret()) if self._policy().kept else Rng()
        given = self._given(values, chosen, rng)
        if asked.kind == "avg":
            count = self._given(there, chosen, rng)
            given = given / count if count > 0 else None
        whole = asked.kind == "count" or (asked.kind == "sum" and asked.value and asked.value.kind is Kind.INTEGER)
        told = int(given) if whole and given is not None and given.is_integer() else given
        return PolicyAnswer(column=asked.title, values=(told,), policy=self.choice.name, notes=self.notes())

    def _policy(self) -> Policy:
        assert isinstance(self.choice.policy, Policy)
        return self.choice.policy

    def _parsed(self, sql: str) -> PolicyQuery:
        """Refuse from the text alone what this policy does not answer."""
        asked = parse_policy_query(sql, self.catalog)
        if self._front is not None:
            self._front.read(sql)
        elif asked.kind not in ("count", "sum", "avg"):
            raise asked.refuse(asked.node, f"Policy `{self.choice.name}` answers COUNT, SUM and AVG.")
        return asked

    def _audited(self, sql: str, asked: PolicyQuery) -> PolicyAnswer:
        made = self._audit.ask(sql)
        if made.verdict == "refused":
            raise AnswerDenied(
                f"Policy `audit` says no: {made.reason.rstrip('.')}.",
                fix="Nothing was told. Asking again meets the same decision; ask about other people.",
            )
        values = tuple(made.answer) if isinstance(made.answer, list) else (_number(made.answer),)
        notes = self.notes()
        if made.fakes:
            notes = (*notes, f"{len(made.fakes)} of the values are false: added so that nobody is given away.")
        return PolicyAnswer(
            column=asked.title, values=values, policy="audit", counterfeits=len(made.fakes), notes=notes
        )

    def _people(self, asked: PolicyQuery) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Values, whether there is one, and who is asked about; one entry per person each."""
        rows = self._engine.run(asked.valued()).open(Permit(f"policy {self.choice.name}"))
        people = self._frame.height
        whole = asked.value is None or asked.kind == "count" or asked.value.kind is Kind.INTEGER
        values = np.zeros(people, np.int64 if whole else np.float64)
        there, chosen = np.zeros(people, np.int64), np.zeros(people, np.bool_)
        for row, value, present in rows:
            values[row], there[row], chosen[row] = value, bool(present), True
        return values, there, chosen

    def _given(self, values: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any], rng: Rng) -> Any:
        """The policy's sum over the people asked about, or its no."""
        policy = self._policy()
        # A copy was perturbed as a whole before; questions to it are answered as they stand.
        desk = ExactResponder(values) if self.choice.name == "perturbed" else policy.open(values, rng)
        told = desk.ask(pack(chosen)[0])
        if told is None:
            raise AnswerDenied(f"Policy `{self.choice.name}` says no to this set of people.", fix=self.notes()[1])
        return told

    def _exchanged(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The copy in which values of each sensitive column are exchanged among some people, always the same copy."""
        rng = Rng(self._secret())
        for name in self._sensitive:
            desk = self._policy().open(np.arange(frame.height), rng.child(name))
            assert isinstance(desk, ExactResponder)
            frame = frame.with_columns(frame[name].gather(desk.values.tolist()))
        return frame

    def _secret(self) -> int:
        """Drawn at the first use of this policy with these parameters on this data set, and kept."""
        key = (self.catalog.dataset, f"{self.choice.name} {self.choice.parameters()}")
        with self._store.write() as transaction:
            transaction.query(_SECRETS)
            kept = transaction.query("SELECT secret FROM sfumato_policies WHERE dataset = ? AND policy = ?", *key)
            if not kept:
                kept = [(os.urandom(16).hex(),)]
                transaction.query("INSERT INTO sfumato_policies VALUES (?, ?, ?)", *key, kept[0][0])
        return int(kept[0][0], 16)


def _read(source: Path, table: str, kinds: Mapping[str, Kind | None]) -> pl.DataFrame:
    """The declared columns, each value turned into its declared kind by itself, as private answers read them."""
    items = ", ".join(f"TRY_CAST({name_sql(name)} AS {TYPES[kind]})" for name, kind in kinds.items() if kind)
    try:
        rows = Duckdb().start({table: source}).run(f"SELECT {items} FROM {name_sql(table)}").open(Permit("policy"))
    except AnswerFailed:
        raise BadParameter(
            f"the declared columns of `{table}` cannot be read from its data.",
            fix="Compare the metadata with the file.",
        ) from None
    frame = pl.DataFrame(rows, schema={name: _POLARS[kind] for name, kind in kinds.items() if kind}, orient="row")
    if not frame.height:
        raise EmptyTable(f"Table `{table}` has no rows.")
    return frame.with_columns(pl.selectors.float().fill_nan(None))


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
