"""Auditor of SQL queries: each query is answered exactly, answered with counterfeits, or refused.

A column whose possible values are known and few (categories, yes/no, lists and short ranges of numbers) is audited
exactly for all kinds of query together. Other numbers are audited by one family of queries, sums or extremes or lists
of values; queries of another family are then refused for this column, because the families are not audited together.

What an answer tells depends on the possible values, so SUM, AVG, MAX and MIN need a declared domain: a list of numbers,
or bounds with a step. Lists and counts of a column without one are decided on the values that occur. Whatever the
adversary knows is possible contains these, so everybody keeps at least the values that were counted. Simulatable
decisions must not depend on the data, so they need a declared domain for every column.

Sensitive columns are audited one by one, so a column that determines another one would undo this. Queries about a
second sensitive column are refused unless the owner declares that the columns do not determine each other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.auditing.answer_forms import AnswerForm
from sfumato.auditing.column_audits import AuditOutcome, ColumnAudit, ExtremesAudit, SumsAudit, ValuesAudit
from sfumato.auditing.known_values import known_rows
from sfumato.auditing.number_domain import NumberDomain, exact
from sfumato.auditing.policy_query import ROW, parse_policy_query
from sfumato.auditing.query_log import AuditQuery, read_audit_query
from sfumato.auditing.row_order import canonical_order
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.worlds import Worlds
from sfumato.dataset import Column, Domain, Kind, RangeDomain, Role, Schema, ValuesDomain
from sfumato.engines.engine import Running
from sfumato.engines.statements import Query
from sfumato.errors import AnswerFailed, BadParameter, MetadataMissing, QueryRefused
from sfumato.query.plan.catalog import Catalog, PrivateTable
from sfumato.secret import Permit

_SCALE = 32
"""In a range of at most this many numbers all kinds of query are audited together, as in a list of numbers."""
_LISTED = 100
"""Most possible values that are counted one by one."""
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
    worlds: Worlds | None = field(default=None, repr=False, compare=False)
    """How many assignments of values to people all answers so far leave: later answers change it, not the decision.
    None: a refusal, or not counted for this column."""

    def to_dict(self) -> dict[str, object]:
        """The decision as plain data for the owner, without data values."""
        return {
            "question": self.query, "decision": self.verdict, "counterfeits": len(self.fakes), "people": self.people,
            "reason": self.reason, "depends_on_data": self.looked, "exposed": [row + 1 for row in self.exposed],
            "worlds": None if self.worlds is None else self.worlds.to_dict(),
        }  # fmt: skip


class Auditor:
    """Decides and answers queries about the sensitive columns of a table."""

    def __init__(
        self,
        frame: pl.DataFrame,
        *,
        secrets: Sequence[str],
        rules: AuditRules,
        domains: Mapping[str, Domain] | None = None,
    ) -> None:
        missing = [name for name in secrets if name not in frame.columns]
        if missing or not secrets:
            raise BadParameter("an audit needs the sensitive columns of the table, at least one.")
        nested = [name for name in secrets if frame.schema[name].is_nested()]
        if nested:
            raise BadParameter(f"sensitive column `{nested[0]}` holds lists or records, which are not audited.")
        frame = frame.with_columns(pl.selectors.float().fill_nan(None))
        # Searches and counterfeits depend on the order of the people; it must not be that of the file.
        self._file_rows = canonical_order(frame)
        frame = frame[self._file_rows]
        self.frame, self.secrets, self.rules = frame, tuple(secrets), rules
        self._domains = dict(domains or {})
        """Declared, public possible values of sensitive columns."""
        self._numbers = {name: self._declared_numbers(name) for name in secrets}
        for name in secrets:
            self._require_declared(name)
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
        self._decisions: dict[tuple[object, ...], Decision] = {}

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

    def repeat(self, query: str) -> Decision:
        """Decide a query of the log again, as it was decided."""
        return self.ask(query)

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

    def file_rows(self, rows: Ints) -> Ints:
        """Numbers that rows have in the table as it was given."""
        return self._file_rows[rows]

    def declarations(self) -> dict[str, object]:
        """What is declared about the sensitive columns, as plain data."""
        domains = {name: domain.model_dump(mode="json") for name, domain in sorted(self._domains.items())}
        return {"secrets": self.secrets, "domains": domains}

    def declared(self, column: str) -> Sequence[object] | None:
        """Public list of all possible values of a sensitive column, if declared and not too long."""
        series, domain, numbers = self.frame.get_column(column), self._domains.get(column), self._numbers[column]
        listed: list[Any]
        if numbers is not None:
            if len(numbers) > _LISTED:
                return None
            listed = list(numbers.labels)
        elif series.dtype == pl.Boolean:
            listed = [False, True]
        elif isinstance(domain, ValuesDomain):
            listed = pl.Series(domain.values, dtype=series.dtype, strict=False).drop_nulls().unique().sort().to_list()
        elif column in self.rules.shares:
            listed = sorted(self.rules.shares[column])
        else:
            return None
        return [*listed, None] if self._nullable(column) else listed

    def _nullable(self, column: str) -> bool:
        """Whether a missing value is among the possible ones: declared, or in the data."""
        domain = self._domains.get(column)
        said = isinstance(domain, ValuesDomain) and None in domain.values
        return said or bool(self.frame.get_column(column).null_count())

    def _declared_numbers(self, column: str) -> NumberDomain | None:
        dtype = self.frame.schema[column]
        if not dtype.is_numeric():
            return None
        numbers = NumberDomain.declared(self._domains.get(column), whole=dtype.is_integer())
        if numbers is None and column in self.rules.shares:
            try:  # shares name every possible value
                return NumberDomain.listed([exact(float(value)) for value in self.rules.shares[column]])
            except ValueError:
                raise BadParameter(f"`shares` of `{column}` must name numbers.") from None
        return numbers

    def _require_declared(self, column: str) -> None:
        """Raise an error, for the owner, if the data are not what is declared: other values would be audited."""
        series, numbers, listed = self.frame.get_column(column), self._numbers[column], self.declared(column)
        present = series.drop_nulls()
        codes = numbers.codes(present) if numbers is not None else None
        strange = codes is None if numbers is not None else not set(present.unique()) <= set(listed or present)
        domain = self._domains.get(column)
        said = domain.values if isinstance(domain, ValuesDomain) else ()
        if isinstance(domain, RangeDomain) and numbers is None:
            strange = series.dtype.is_numeric() and not present.is_between(domain.low, domain.high).all()
        if strange:
            raise MetadataMissing(
                f"Not every value of `{column}` is among the values, or within the bounds and steps, declared for it.",
                fix="Declare all possible values, or bounds and a step that hold for everybody.", column=column,
            )  # fmt: skip
        if self.rules.simulatable and series.null_count() and None not in said:
            raise MetadataMissing(
                f"`{column}` has missing values, which are not among the values declared for it.",
                fix="Add null to its `domain: {values: [...]}`: simulatable decisions depend on declared values only.",
                column=column,
            )
        if numbers is not None and isinstance(numbers.places, range) and codes is not None and len(codes):
            if len(numbers) * self.frame.height >= 2**53:
                raise MetadataMissing(f"`{column}` has too many steps to be audited.", fix="Declare a larger `step`.")
            coarser = numbers.coarser(codes)
            if coarser is not None and self.rules.simulatable and len(numbers) <= _LISTED:
                raise MetadataMissing(
                    f"All values of `{column}` lie on a coarser grid than its declared step, which an adversary may "
                    "know.",
                    fix="Declare the true step: `domain: {low: 0, high: 9000, step: 100}`.", column=column,
                )  # fmt: skip
            # Everybody who keeps k numbers of the coarser grid keeps k of the declared ones as well.
            self._numbers[column] = coarser or numbers

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
        audit = self._open(column, _FAMILIES[parsed.kind])
        if key in self._decisions:
            return _with_worlds(self._decisions[key], audit)
        if parsed.kind in ("sum", "avg", "max", "min") and not len(rows):
            raise QueryRefused("The condition selects no rows.")
        if self._family.get(column, audit.family) != audit.family:
            raise QueryRefused(
                f"`{column}` was queried by {self._family[column]}; other kinds are not audited together with it."
            )
        self._require_apart(column)
        outcome = audit.decide(parsed.kind, rows, self._meets(parsed, audit))
        decision = self._decision(query, outcome, people=len(rows))
        self._decisions[key] = decision
        if decision.verdict != "refused":
            self._family[column] = audit.family
        return _with_worlds(decision, audit)

    def possible_values(self, column: str) -> list[list[str]]:
        """For each person, in the order of the file, the values that all answers about lists and counts leave."""
        audit = self._open(column, "values")
        if not isinstance(audit, ValuesAudit):
            raise BadParameter(f"`{column}` is audited by {audit.family}, which does not list possible values.")
        table = audit.auditor.possible()[np.argsort(self._file_rows)]
        return [[str(audit.labels[place]) for place in np.flatnonzero(row).tolist()] for row in table]

    def _open(self, column: str, family: str) -> ColumnAudit:
        if self._together(column):
            family = "values"
        audit = self._audits.get((column, family))
        if audit is None:
            audit = self._audits[column, family] = self._new_audit(column, family)
        return audit

    def _together(self, column: str) -> bool:
        """Whether the declared numbers are few enough to audit all kinds of query together."""
        numbers = self._numbers[column]
        if numbers is None or self._nullable(column):
            return False
        return len(numbers) <= (_SCALE if isinstance(numbers.places, range) else _LISTED)

    def _new_audit(self, column: str, family: str) -> ColumnAudit:
        series, numbers, known = self.frame.get_column(column), self._numbers[column], self._known(column)
        if family == "values":
            labels, codes = self._coded(column)
            together = numbers if self._together(column) else None
            return ValuesAudit(column, codes, labels, numbers=together, rules=self.rules, seed=self.seed, known=known)
        if not series.dtype.is_numeric() or self._nullable(column):
            raise QueryRefused(f"`{column}` is not a numeric column without missing values.")
        if numbers is None or not isinstance(numbers.places, range):
            raise QueryRefused(
                f"`{column}` has no declared domain, so it is not known what a sum or an extreme of it tells.",
                fix="The owner declares its possible numbers: `domain: {low: 0, high: 5000, step: 0.01}`, or "
                f"`domain: {{values: [...]}}` with at most {_LISTED:,} of them.",
            )
        if self.rules.probable is not None or self.rules.simulatable:
            # Simulatable: everybody who is asked about might have the lowest number, so that a sum, maximum or minimum
            # over people of whom nothing was told could always determine all of them.
            raise QueryRefused(
                f"`{column}` has more than {_SCALE} possible numbers: `probable` and `simulatable` are not decided for "
                "its sums and extremes.",
                fix="Declare a list of values or a larger step, or leave out `probable` and `simulatable`.",
            )
        if len(numbers) < self.rules.k:
            raise QueryRefused(f"`{column}` has too few different values for this rule.")
        audits = {audit.family: audit for audit in (SumsAudit, ExtremesAudit)}
        return audits[family](numbers, _positions(numbers, series), self.rules, known)

    def _coded(self, column: str) -> tuple[Sequence[object], Ints]:
        """The possible values of a column and the position of everybody's among them."""
        series, labels, numbers = self.frame.get_column(column), self.declared(column), self._numbers[column]
        if labels is None:
            if self.rules.simulatable:
                raise QueryRefused(
                    f"`{column}` has no declared list of at most {_LISTED:,} values, so a decision would depend on the "
                    "data.",
                    fix="The owner declares `domain: {values: [...]}`.",
                )
            labels, numbers = series.unique().sort(nulls_last=True).to_list(), None
        if numbers is None:
            place = {label: code for code, label in enumerate(labels)}
            return labels, np.array([place[value] for value in series.to_list()], np.int64)
        codes = np.full(len(series), len(labels) - 1, np.int64)  # a missing value is the last label
        there = series.is_not_null().to_numpy()
        codes[there] = _positions(numbers, series.drop_nulls())
        return labels, codes

    def _meets(self, parsed: AuditQuery, audit: ColumnAudit) -> Sequence[bool] | None:
        """For a count with a condition on the sensitive column: which possible values meet it."""
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

    def _decision(self, query: str, outcome: AuditOutcome, *, people: int) -> Decision:
        return Decision(
            query=query, verdict=outcome.verdict, reason=outcome.reason, people=people, looked=outcome.looked,
            fakes=outcome.fakes, exposed=tuple(sorted(self.file_rows(outcome.exposed).tolist())), answer=outcome.answer,
        )  # fmt: skip


def _with_worlds(decision: Decision, audit: ColumnAudit) -> Decision:
    """The decision with the number of worlds that all answers so far leave, this one among them."""
    return decision if decision.verdict == "refused" else replace(decision, worlds=audit.worlds())


def _positions(numbers: NumberDomain, series: pl.Series) -> Ints:
    codes = numbers.codes(series)
    assert codes is not None  # checked when the audit was opened
    return codes
