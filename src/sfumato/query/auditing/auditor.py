"""Auditor of SQL queries: each query is answered exactly, answered with counterfeits, or refused.

Every secret column is audited by one family of queries: its values (and counts of them), its sums, or its extremes.
Queries of another family are then refused for this column, because the families are not audited together. Sums treat
values as unbounded real numbers; sums of a column of 0 and 1 are therefore audited as counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from sfumato.errors import AnswerFailed, BadParameter, QueryRefused
from sfumato.query.auditing.atoms import Ints
from sfumato.query.auditing.delta2 import Delta2Auditor
from sfumato.query.auditing.extremes import ExtremeAnswer, ExtremeAuditor
from sfumato.query.auditing.k_assign import AssignAuditor
from sfumato.query.auditing.query_log import AuditQuery, parse_audit_query
from sfumato.query.auditing.repair import counterfeits
from sfumato.query.auditing.rules import AuditRules
from sfumato.query.auditing.simulatable import SimulatableAuditor
from sfumato.query.auditing.sums import SumAuditor, pinned
from sfumato.secret import Permit

__all__ = ["Auditor", "Decision"]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision about one query."""

    query: str
    verdict: str
    """"answered", "counterfeits" (answered with some) or "refused"."""
    reason: str
    people: int
    """Number of people selected by the query."""
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
            "reason": self.reason, "exposed": [row + 1 for row in self.exposed],
        }  # fmt: skip


class Auditor:
    """Decides and answers queries about the secret columns of a table."""

    beside: str = ""
    """Fingerprint of other data that selects people, such as public tables; stored with each decision."""

    def __init__(self, frame: pl.DataFrame, *, secrets: Sequence[str], rules: AuditRules) -> None:
        from sfumato.engines.backends.duckdb.engine import Duckdb

        missing = [name for name in secrets if name not in frame.columns]
        if missing or not secrets:
            raise BadParameter("an audit needs the secret columns of the table, at least one.")
        nested = [name for name in secrets if frame.schema[name].is_nested()]
        if nested:
            raise BadParameter(f"secret column `{nested[0]}` holds lists or records, which are not audited.")
        frame = frame.with_columns(pl.selectors.float().fill_nan(None))
        self.frame, self.secrets, self.rules = frame, tuple(secrets), rules
        self._engine = Duckdb(threads=1).start({"asked": frame.with_row_index("sfumato row").to_arrow()})
        self._family: dict[str, str] = {}
        self._labels: dict[str, list[Any]] = {}
        self._values: dict[str, AssignAuditor] = {}
        self._public: dict[str, SimulatableAuditor] = {}
        self._delta2: dict[str, Delta2Auditor] = {}
        self._sums: dict[str, SumAuditor] = {}
        self._extremes: dict[str, ExtremeAuditor] = {}
        self._totals: dict[str, list[float]] = {}
        self._decisions: dict[tuple[Any, ...], Decision] = {}

    def ask(self, query: str) -> Decision:
        """Decide one query and remember it."""
        try:
            parsed = self.read(query)
            rows = self._people(parsed.public)
            return self._decide(query, parsed, rows)
        except QueryRefused as refusal:
            return Decision(query=query, verdict="refused", reason=str(refusal), people=0)
        except AnswerFailed:
            return Decision(query=query, verdict="refused", reason="The condition cannot be computed.", people=0)

    def read(self, query: str) -> AuditQuery:
        """Parse a query. Unsupported SQL is refused; the decision depends on the text only."""
        return parse_audit_query(query, columns=self.frame.columns, secrets=self.secrets)

    def _people(self, condition: str) -> Ints:
        secret = self._engine.run(f'SELECT "sfumato row" FROM asked WHERE {condition} ORDER BY 1')
        return np.array([row[0] for row in secret.open(Permit("auditing"))], np.int64)

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
        families = {
            "values": "values",
            "count": "values",
            "sum": "sums",
            "avg": "sums",
            "max": "extremes",
            "min": "extremes",
        }
        family = families[parsed.kind]
        if family != "values" and not len(rows):
            raise QueryRefused("The condition selects no rows.")
        if family != "values" and self._yes_or_no(column):
            if family == "extremes":
                raise QueryRefused(f"`{column}` is 0 or 1, and an extreme would determine values.",
                                   fix="Use its SUM, or COUNT(*).")  # fmt: skip
            family = "values"
        if self._family.get(column, family) != family:
            raise QueryRefused(
                f"`{column}` was queried by {self._family[column]}; other kinds are not audited together with it."
            )
        decision = {"values": self._ask_values, "sums": self._ask_sum, "extremes": self._ask_extreme}[family](
            query, parsed, column, rows
        )
        self._decisions[key] = decision
        if decision.verdict != "refused":
            self._family[column] = family
        return decision

    def _ask_values(self, query: str, parsed: AuditQuery, column: str, rows: Ints) -> Decision:
        auditor = self._values.get(column) or self._open_values(column)
        labels, rules = self._labels[column], self.rules
        groups = self._groups(parsed, column)
        assessment = auditor.judge(rows, groups=groups)
        safe, public, delta2 = assessment.safe, self._public.get(column), self._delta2.get(column)
        reason = f"everyone keeps {rules.k} values"
        # With these auditors the assessment above only tells the owner who is exposed; the decision does not use it.
        if public is not None:
            decide = public.every_answer if rules.every_answer else public.allows
            safe = groups is None and decide(rows)
            reason = f"{'all' if rules.every_answer else 'most'} possible answers keep the rule"
        elif delta2 is not None:
            if parsed.kind != "values":
                raise QueryRefused("The delta2 auditor decides lists of values.", fix=f"Use SELECT {column}.")
            safe = delta2.safe(rows.tolist(), rules.k)
        exposed = assessment.exposed
        if not assessment.safe and assessment.certain:
            exposed = auditor.judge(rows, groups=groups, full=True).exposed
        listed = parsed.kind == "values"
        if not safe and public is None and listed and rules.counterfeits and assessment.certain:
            repair = counterfeits(auditor, rows, most=rules.counterfeits)
            if repair is not None:
                auditor.accept(repair.assessment)
                return Decision(
                    query=query, verdict="counterfeits", reason=reason, people=len(rows), fakes=repair.fakes,
                    exposed=tuple(exposed.tolist()), answer=_multiset(labels, repair.assessment.answer.counts),
                )  # fmt: skip
        if not safe:
            reason = f"somebody would keep fewer than {rules.k} values"
            if public is not None:
                reason = "too many possible answers would break the rule"
            elif delta2 is not None:
                reason = f"delta-2 matchings do not show that everyone keeps {rules.k} values"
            elif not assessment.certain:
                reason = "the search ran out of effort before it was certain that the rule holds"
            return Decision(
                query=query, verdict="refused", reason=reason, people=len(rows),
                exposed=tuple(exposed.tolist()),
            )  # fmt: skip
        auditor.accept(assessment)
        if public is not None:
            public.learn(rows, assessment.answer)
        if delta2 is not None:
            delta2.accept(rows.tolist())
        counts = assessment.answer.counts
        answer: Any = _multiset(labels, counts) if groups is None else int(counts[1]) if len(counts) > 1 else 0
        if parsed.kind in ("sum", "avg"):
            answer = int(counts[1]) if parsed.kind == "sum" else int(counts[1]) / len(rows)
        return Decision(
            query=query, verdict="answered", reason=reason, people=len(rows), answer=answer,
            exposed=tuple(exposed.tolist()) if public is not None else (),
        )  # fmt: skip

    def _open_values(self, column: str) -> AssignAuditor:
        series = self.frame.get_column(column)
        labels = [0, 1] if self._yes_or_no(column) else series.unique().sort(nulls_last=True).to_list()
        if len(labels) < self.rules.k:
            raise QueryRefused(f"`{column}` has too few different values for this rule.")
        place = {label: code for code, label in enumerate(labels)}
        codes = np.array([place[value] for value in series.to_list()], np.int64)
        auditor = AssignAuditor(codes, values=len(labels), k=self.rules.k, effort=self.rules.effort)
        self._labels[column], self._values[column] = labels, auditor
        if self.rules.simulatable:
            self._public[column] = SimulatableAuditor(
                people=len(codes), values=len(labels), k=self.rules.k, allow=self.rules.allow
            )
        if self.rules.auditor == "delta2":
            self._delta2[column] = Delta2Auditor(codes, values=len(labels))
        return auditor

    def _yes_or_no(self, column: str) -> bool:
        series = self.frame.get_column(column)
        numbers = series.dtype.is_numeric() and not series.null_count()
        return numbers and bool(((series == 0) | (series == 1)).all())

    def _groups(self, parsed: AuditQuery, column: str) -> list[int] | None:
        """For a count with a condition on the secret column: 1 for each value that meets it, otherwise 0."""
        if parsed.kind != "count":
            return None
        hits = self._people(parsed.secret or "TRUE")
        series = self.frame.get_column(column)
        met = set(series.gather(hits.tolist()).to_list())
        return [int(label in met) for label in self._labels[column]]

    def _ask_sum(self, query: str, parsed: AuditQuery, column: str, rows: Ints) -> Decision:
        numbers = self._numbers(column, rows)
        auditor = self._sums.setdefault(column, SumAuditor(self.frame.height))
        safe, exposed, state = auditor.judge(rows)
        if not safe:
            return Decision(
                query=query, verdict="refused", reason="the sums together would fix somebody's value",
                people=len(rows), exposed=tuple(exposed.tolist()),
            )  # fmt: skip
        total = numbers.sum()
        ends, totals = self.bounds(column), self._totals.setdefault(column, [])
        if ends is not None and not self.rules.simulatable:
            known = pinned(state[0], [*totals, float(total)], low=ends[0], high=ends[1])
            if len(known):
                return Decision(
                    query=query, verdict="refused", people=len(rows),
                    reason="the sums together would fix somebody's value within its bounds",
                    exposed=tuple(auditor.persons(state[0], known).tolist()),
                )  # fmt: skip
        auditor.accept(state)
        totals.append(float(total))
        answer = total if parsed.kind == "sum" else total / len(rows)
        return Decision(query=query, verdict="answered", reason="fixes nobody's value", people=len(rows), answer=answer)

    def _ask_extreme(self, query: str, parsed: AuditQuery, column: str, rows: Ints) -> Decision:
        numbers = self._numbers(column, rows)
        auditor = self._extremes.get(column) or self._open_extremes(column)
        kind: Any = parsed.kind
        people = tuple(rows.tolist())
        extreme = ExtremeAnswer(
            kind=kind, people=people, value=float(numbers.max() if kind == "max" else numbers.min())
        )
        exposed = auditor.exposed(extreme)
        safe = auditor.simulatable(kind, people) if self.rules.simulatable else exposed is not None and not len(exposed)
        if not safe:
            return Decision(
                query=query, verdict="refused", reason="it would fix somebody's value", people=len(rows),
                exposed=tuple(exposed.tolist()) if exposed is not None else (),
            )  # fmt: skip
        auditor.accept(extreme)
        return Decision(
            query=query, verdict="answered", reason="fixes nobody's value", people=len(rows), answer=extreme.value
        )

    def _open_extremes(self, column: str) -> ExtremeAuditor:
        ends = None if self.rules.simulatable else self.bounds(column)
        low, high = ends or (-np.inf, np.inf)
        self._extremes[column] = ExtremeAuditor(self.frame.height, low=low, high=high)
        return self._extremes[column]

    def bounds(self, column: str) -> tuple[float, float] | None:
        """Publicly known bounds of a secret column, if declared."""
        return None

    def _numbers(self, column: str, rows: Ints) -> Any:
        series = self.frame.get_column(column)
        if not series.dtype.is_numeric() or series.null_count():
            raise QueryRefused(f"`{column}` is not a numeric column without missing values.")
        return series.to_numpy()[rows]


def _multiset(labels: Sequence[Any], counts: Ints) -> list[Any]:
    """The multiset of values, sorted, so that the order does not reveal who has which value."""
    return [label for label, count in zip(labels, counts.tolist(), strict=True) for _ in range(count)]
