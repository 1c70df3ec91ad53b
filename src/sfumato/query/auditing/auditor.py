"""Auditor of SQL queries: each query is answered exactly, answered with counterfeits, or refused.

A column whose possible values are known and few (categories, yes/no, scales of whole numbers) is audited exactly for
all kinds of query together. Other numbers are audited by one family of queries, sums or extremes or lists of values;
queries of another family are then refused for this column, because the families are not audited together.

Sensitive columns are audited one by one, so a column that determines another one would undo this. Queries about a
second sensitive column are refused unless the owner declares that the columns do not determine each other.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.engines.engine import Running
from sfumato.engines.statements import Query
from sfumato.errors import AnswerFailed, BadParameter, QueryRefused
from sfumato.query.auditing.answer_forms import AnswerForm
from sfumato.query.auditing.atoms import Ints
from sfumato.query.auditing.column_audits import (
    AuditOutcome,
    Bounds,
    ColumnAudit,
    ExtremesAudit,
    SumsAudit,
    ValuesAudit,
)
from sfumato.query.auditing.known_values import known_rows
from sfumato.query.auditing.number_steps import StepScale, steps_per_unit, to_steps
from sfumato.query.auditing.query_log import AuditQuery, read_audit_query
from sfumato.query.auditing.rules import AuditRules
from sfumato.query.catalog import Catalog, PrivateTable
from sfumato.query.policy.policy_query import ROW, parse_policy_query
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.secret import Permit

__all__ = ["Auditor", "Decision"]

_SCALE = 32
"""A range of at most this many numbers in steps is a scale: each of them is a possible value, and all are audited."""
_TABLE = "asked"
"""The name of the table in statements, whatever a log calls it."""
_FAMILIES = {"values": "values", "count": "values", "sum": "sums", "avg": "sums", "max": "extremes", "min": "extremes"}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision about one query."""

    query: str
    verdict: str
    """"answered", "counterfeits" (answered with some) or "refused"."""
    reason: str
    people: int
    """Number of people selected by the query."""
    looked: bool = False
    """Whether the decision depends on the data: a refusal then tells something to an analyst who knows the rule."""
    fakes: tuple[int, ...] = ()
    """Codes of the counterfeit values."""
    exposed: tuple[int, ...] = field(default=(), repr=False)
    """Rows of the people whom the exact answer would expose. Only the owner may see them."""
    answer: Any = field(default=None, repr=False)
    """The answer for the analyst: a list of values, a number, or None."""

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain data for the owner, without data values."""
        return {
            "question": self.query, "decision": self.verdict, "counterfeits": len(self.fakes), "people": self.people,
            "reason": self.reason, "depends_on_data": self.looked, "exposed": [row + 1 for row in self.exposed],
        }  # fmt: skip


class Auditor:
    """Decides and answers queries about the secret columns of a table."""

    beside: str = ""
    """Fingerprint of other data that selects people, such as public tables; stored with each decision."""

    def __init__(self, frame: pl.DataFrame, *, secrets: Sequence[str], rules: AuditRules) -> None:
        missing = [name for name in secrets if name not in frame.columns]
        if missing or not secrets:
            raise BadParameter("an audit needs the secret columns of the table, at least one.")
        nested = [name for name in secrets if frame.schema[name].is_nested()]
        if nested:
            raise BadParameter(f"secret column `{nested[0]}` holds lists or records, which are not audited.")
        frame = frame.with_columns(pl.selectors.float().fill_nan(None))
        self.frame, self.secrets, self.rules = frame, tuple(secrets), rules
        self.seed = os.urandom(32)
        """Secret for the random choice of counterfeits."""
        self._require_independent()
        columns = {name: Column(kind=Kind.of(dtype), role=Role.PLAIN) for name, dtype in frame.schema.items()}
        table = PrivateTable(name=_TABLE, schema=Schema(columns=columns))
        self._columns = Catalog(dataset=_TABLE, private={_TABLE: table})
        self._engine = self._start(frame)
        self._audits: dict[tuple[str, str], ColumnAudit] = {}
        self.known: dict[str, Ints] = self._find_known()
        """Rows of the people whose value the adversary knows, by sensitive column."""
        self._family: dict[str, str] = {}
        self._met: dict[tuple[str, Query], list[bool]] = {}
        self._decisions: dict[tuple[Any, ...], Decision] = {}

    def ask(self, query: str) -> Decision:
        """Decide one query and remember it."""
        try:
            parsed = self.read(query)
            rows = self._select(self._engine, parsed.public)
            return self._decide(query, parsed, rows)
        except QueryRefused as refusal:
            return Decision(query=query, verdict="refused", reason=str(refusal), people=0)
        except AnswerFailed:
            return Decision(query=query, verdict="refused", reason="The condition cannot be computed.", people=0)

    def would_answer(self, query: str) -> bool:
        """Whether a query would be answered now. Nothing is recorded."""
        parsed = self.read(query)
        rows = self._select(self._engine, parsed.public)
        column = parsed.column or parsed.secret_column
        if column not in self.secrets or not len(rows):
            return False
        audit = self._open(column, _FAMILIES[parsed.kind])
        if self._family.get(column, audit.family) != audit.family:
            return False
        self._require_apart(column)
        return audit.allows(parsed.kind, rows, self._meets(parsed, audit))

    def answered(self, query: str) -> tuple[str | None, ColumnAudit | None, Ints, AnswerForm | None]:
        """Column, audit, people and form of a query that was answered. None where it asks for nothing secret."""
        parsed = self.read(query)
        rows = self._select(self._engine, parsed.public)
        column = parsed.column or parsed.secret_column
        if column not in self.secrets:
            return None, None, rows, None
        audit = self._open(column, _FAMILIES[parsed.kind])
        form = audit.form(parsed.kind, self._meets(parsed, audit)) if isinstance(audit, ValuesAudit) else None
        return column, audit, rows, form

    @property
    def table_name(self) -> str:
        """The name of the table in queries; a log may use any."""
        return _TABLE

    def read(self, query: str) -> AuditQuery:
        """Parse a query. Unsupported SQL is refused; the decision depends on the text only."""
        parsed = parse_policy_query(query, self._columns, table=_TABLE)
        return read_audit_query(parsed, secrets=self.secrets, other_columns=True)

    def bounds(self, column: str) -> Bounds | None:
        """Public bounds of a secret column, if declared."""
        return None

    def declared(self, column: str) -> Sequence[Any] | None:
        """Public list of all possible values of a secret column, if declared."""
        return None

    def _start(self, frame: pl.DataFrame) -> Running:
        """An engine over rows of the table."""
        from sfumato.engines.backends.duckdb.engine import Duckdb

        return Duckdb(threads=1).start({_TABLE: frame.with_row_index(ROW).to_arrow()})

    def _select(self, engine: Running, people: Query) -> Ints:
        """Numbers of the rows that a statement selects."""
        return engine.row_numbers(people).open(Permit("auditing"))

    def _decide(self, query: str, parsed: AuditQuery, rows: Ints) -> Decision:
        column = parsed.column or parsed.secret_column
        if column not in self.secrets:
            return Decision(
                query=query, verdict="answered", reason="asks for nothing secret", people=len(rows),
                answer=len(rows) if parsed.kind == "count" else None,
            )  # fmt: skip
        key = (parsed.kind, column, parsed.secret, rows.tobytes())
        if key in self._decisions:
            return self._decisions[key]
        audit = self._open(column, _FAMILIES[parsed.kind])
        if parsed.kind in ("sum", "avg", "max", "min") and not len(rows):
            raise QueryRefused("The condition selects no rows.")
        if self._family.get(column, audit.family) != audit.family:
            raise QueryRefused(
                f"`{column}` was queried by {self._family[column]}; other kinds are not audited together with it."
            )
        self._require_apart(column)
        outcome = audit.decide(parsed.kind, rows, self._meets(parsed, audit))
        decision = _decision(query, outcome, people=len(rows))
        self._decisions[key] = decision
        if decision.verdict != "refused":
            self._family[column] = audit.family
        return decision

    def _open(self, column: str, family: str) -> ColumnAudit:
        scale = self._scale(column)
        if scale is not None:
            family = "values"
        audit = self._audits.get((column, family))
        if audit is None:
            audit = self._audits[column, family] = self._new_audit(column, family, scale)
        return audit

    def _new_audit(self, column: str, family: str, scale: StepScale | None) -> ColumnAudit:
        series = self.frame.get_column(column)
        if family == "values":
            known = self._known(column)
            if scale is not None:
                codes = to_steps(series, scale.per) - scale.first
                return ValuesAudit(
                    column, codes, scale.labels, per=scale.per, rules=self.rules, seed=self.seed, known=known
                )
            labels = self.declared(column) or series.unique().sort(nulls_last=True).to_list()
            place = {label: code for code, label in enumerate(labels)}
            codes = np.array([place[value] for value in series.to_list()], np.int64)
            return ValuesAudit(column, codes, labels, per=None, rules=self.rules, seed=self.seed, known=known)
        if not series.dtype.is_numeric() or series.null_count():
            raise QueryRefused(f"`{column}` is not a numeric column without missing values.")
        if self.rules.probable is not None:
            raise QueryRefused(
                f"`{column}` has no short list of possible values, so probabilities are not computed for it.",
                fix="Declare its values, or leave out `probable`.",
            )
        audits = {audit.family: audit for audit in (SumsAudit, ExtremesAudit)}
        return audits[family](series.to_numpy(), self.bounds(column), self.rules, self._known(column))

    def _scale(self, column: str) -> StepScale | None:
        """The possible values of a column of numbers in steps with a short range: declared, or else the observed range.

        Numbers in steps that are stored or declared as real ones count as such: an adversary may know that they are.
        """
        series, bounds = self.frame.get_column(column), self.bounds(column)
        per = steps_per_unit(series)
        if per is None:
            return None
        ends = (bounds.low, bounds.high) if bounds is not None else (series.min(), series.max())
        first, last = math.ceil(ends[0] * per - 1e-9), math.floor(ends[1] * per + 1e-9)  # type: ignore[operator]
        if bounds is None and bool(((series == 0) | (series == 1)).all()):
            first, last = 0, 1
        return StepScale(first=first, last=last, per=per) if last - first < _SCALE else None

    def _meets(self, parsed: AuditQuery, audit: ColumnAudit) -> Sequence[bool] | None:
        """For a count with a condition on the secret column: which possible values meet it."""
        if parsed.kind != "count" or not isinstance(audit, ValuesAudit):
            return None
        # The condition is evaluated on every possible value, also on those that nobody has.
        values = pl.Series(audit.column, audit.labels, self.frame.schema[audit.column])
        if parsed.secret is None:
            return [True] * len(values)
        key = (audit.column, parsed.secret)
        if key not in self._met:
            met = self._select(self._start(self.frame.clear(len(values)).with_columns(values)), parsed.secret)
            self._met[key] = [bool(meets) for meets in np.isin(np.arange(len(values)), met)]
        return self._met[key]

    def _find_known(self) -> dict[str, Ints]:
        known = self.rules.known
        if isinstance(known, Path):
            return known_rows(known, self.frame, self.secrets)
        for name in known:
            if name not in self.secrets:
                raise BadParameter(f"`known` names sensitive columns, and `{name}` is none.")
        return {name: self._meeting(name, clause) for name, clause in known.items()}

    def _meeting(self, column: str, clause: str) -> Ints:
        """Rows of the people whom a condition on columns that are not sensitive selects."""
        try:
            parsed = self.read(f'SELECT COUNT(*) FROM "{self.table_name}" WHERE ({clause})')
            if parsed.secret is not None:
                raise QueryRefused("a sensitive column is named.")
            return self._select(self._engine, parsed.public)
        except (QueryRefused, AnswerFailed) as refusal:
            raise BadParameter(
                f"`known` of `{column}` is not a condition on the other columns: {refusal}",
                fix="Write it like a WHERE clause, for example `zip = 1301 AND age < 30`.",
            ) from None

    def _known(self, column: str) -> Ints:
        return self.known.get(column, np.empty(0, np.int64))

    def _require_apart(self, column: str) -> None:
        """Refuse a query about a second sensitive column unless the columns are declared independent."""
        for other in self._family:
            if other != column and not {column, other} <= set(self.rules.independent):
                raise QueryRefused(
                    f"`{other}` was queried already, and `{column}` may determine it.",
                    fix="The owner can declare columns that do not determine each other as `independent`.",
                )

    def _require_independent(self) -> None:
        """Raise an error if a column declared independent determines another one in the data."""
        unknown = [name for name in self.rules.independent if name not in self.secrets]
        if unknown:
            raise BadParameter(f"`independent` names sensitive columns, and `{unknown[0]}` is none.")
        for one, other in permutations(self.rules.independent, 2):
            # A value that occurs once determines everything; what counts is whether repeated values do.
            pairs, distinct = self.frame.select(one, other).n_unique(), self.frame.get_column(one).n_unique()
            repeated = self.frame.get_column(one).is_duplicated().sum()
            if pairs == distinct and repeated >= self.frame.height / 2 and self.frame.get_column(other).n_unique() > 1:
                raise BadParameter(
                    f"`{one}` and `{other}` are declared independent, but `{one}` determines `{other}` in the data.",
                    fix="Audit one of them, or leave them out of `independent`.",
                )


def _decision(query: str, outcome: AuditOutcome, *, people: int) -> Decision:
    return Decision(
        query=query, verdict=outcome.verdict, reason=outcome.reason, people=people, looked=outcome.looked,
        fakes=outcome.fakes, exposed=tuple(outcome.exposed.tolist()), answer=outcome.answer,
    )  # fmt: skip
