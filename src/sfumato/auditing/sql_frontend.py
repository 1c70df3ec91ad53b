"""Audit policy for SQL queries: parsed like queries under other policies, decided by the auditor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import polars as pl

from sfumato.auditing.audit_log import DurableAuditor
from sfumato.auditing.auditor import Auditor, Decision
from sfumato.auditing.offers import offers
from sfumato.auditing.policy_query import ROW, PolicyQuery, parse_policy_query, restated
from sfumato.auditing.query_log import AuditQuery, read_audit_query
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.table import PolicyTable, TableBinding
from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.engine import Running
from sfumato.errors import AnswerDenied
from sfumato.query.plan.catalog import Catalog
from sfumato.query.policy.base import TableAnswer

_TELLS = (
    " The decision depends on the data: it tells that the answer would have broken the rule. "
    "With `simulatable`, refusals tell nothing."
)


class SqlAuditor(Auditor):
    """An auditor of the SQL language of all policies.

    People are selected by columns that are not sensitive; a count may have conditions on one sensitive column as well.
    """

    def __init__(self, frame: pl.DataFrame, *, secrets: Sequence[str], rules: AuditRules, catalog: Catalog) -> None:
        self._catalog = catalog
        self.parse = lru_cache(maxsize=16)(partial(parse_policy_query, catalog=catalog))
        [table] = catalog.private.values()
        domains = {name: c.domain for name, c in table.schema.columns.items() if c.domain is not None}
        super().__init__(frame, secrets=secrets, rules=rules, domains=domains)

    @property
    def table_name(self) -> str:
        [table] = self._catalog.private
        return table

    def repeat(self, query: str) -> Decision:
        """Decide a query of the log again. It names the table as it was called then."""
        return self.ask(restated(query, self._catalog))

    def read(self, query: str) -> AuditQuery:
        return read_audit_query(self.parse(query), secrets=self.secrets)

    def _start(self, frame: pl.DataFrame) -> Running:
        [table] = self._catalog.private.values()
        public = {name: public.frame.to_arrow() for name, public in self._catalog.public.items()}
        return Duckdb(threads=1).start({table.name: frame.with_row_index(ROW).to_arrow(), **public})


class AuditTableResponder(TableBinding):
    """Answers SQL about a table by an auditor whose decisions are stored in the ledger's database."""

    def __init__(self, table: PolicyTable, *, rules: AuditRules) -> None:
        super().__init__(table)
        self._auditor = SqlAuditor(table.frame, secrets=table.sensitive, rules=rules, catalog=table.catalog)
        self._durable = DurableAuditor(self._auditor, table.store, dataset=table.catalog.dataset, entry=table.entry)

    def parse(self, sql: str) -> PolicyQuery:
        self._auditor.read(sql)
        return self._auditor.parse(sql)

    def ask(self, sql: str) -> TableAnswer:
        query = self.parse(sql)
        decision = self._durable.ask(sql)
        if decision.verdict == "refused":
            named = offers(self._auditor, sql, most=self._auditor.rules.offers) if self._auditor.rules.offers else ()
            raise AnswerDenied(
                f"Policy `audit` refuses: {decision.reason.rstrip('.')}.",
                fix="The decision is final for these people. Ask about other people."
                + (_TELLS if decision.looked else "")
                + (f" Would be answered: {'; '.join(named)}." if named else ""),
            )
        answer = decision.answer
        values = tuple(answer) if isinstance(answer, list) else (answer.item() if hasattr(answer, "item") else answer,)
        return TableAnswer(title=query.title, values=values, counterfeits=len(decision.fakes))
