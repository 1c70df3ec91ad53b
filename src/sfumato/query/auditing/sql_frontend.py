"""Audit policy for SQL queries: parsed like queries under other policies, decided by the auditor."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import polars as pl

from sfumato.engines.backends.duckdb.engine import Duckdb
from sfumato.engines.engine import Running
from sfumato.errors import AnswerDenied, MetadataMissing
from sfumato.query.auditing.audit_log import DurableAuditor
from sfumato.query.auditing.auditor import Auditor
from sfumato.query.auditing.column_audits import Bounds
from sfumato.query.auditing.offers import offers
from sfumato.query.auditing.query_log import AuditQuery, read_audit_query
from sfumato.query.auditing.rules import AuditRules
from sfumato.query.catalog import Catalog
from sfumato.query.policy.policy_query import ROW, PolicyQuery, parse_policy_query
from sfumato.query.policy.table import PolicyTable, TableAnswer
from sfumato.schema import Column

__all__ = ["AuditTableResponder", "SqlAuditor"]

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
        super().__init__(frame, secrets=secrets, rules=rules)
        for column in self.secrets:
            self._require_bounds(column)
        kinds = [(name, str(c.kind)) for table in catalog.private.values() for name, c in table.schema.columns.items()]
        known = [(name, table.key, table.frame.write_csv()) for name, table in sorted(catalog.public.items())]
        self.beside = hashlib.sha256(repr((kinds, known)).encode()).hexdigest()

    @property
    def table_name(self) -> str:
        [table] = self._catalog.private
        return table

    def read(self, query: str) -> AuditQuery:
        return read_audit_query(self.parse(query), secrets=self.secrets)

    def bounds(self, column: str) -> Bounds | None:
        """The declared bounds. The constructor checked that all values lie within them."""
        declared = self._column(column)
        domain = declared.domain
        if domain is None or domain.low is None or domain.high is None or domain.low >= domain.high:
            return None
        series = self.frame.get_column(column)
        return Bounds.within(series, domain.low, domain.high)

    def declared(self, column: str) -> Sequence[Any] | None:
        """The declared values, if they contain all values of the data."""
        domain, series = self._column(column).domain, self.frame.get_column(column)
        if domain is None or domain.values is None:
            return None
        values = pl.Series(domain.values, dtype=series.dtype, strict=False)
        listed = values.drop_nulls().unique().sort().to_list()
        return [*listed, None] if series.null_count() else listed

    def _column(self, column: str) -> Column:
        [table] = self._catalog.private.values()
        return table.schema.columns[column]

    def _require_bounds(self, column: str) -> None:
        """Raise an error if the data exceed their declared domain: ignoring the domain would audit too little."""
        ends, listed, series = self.bounds(column), self.declared(column), self.frame.get_column(column)
        if listed is not None and not set(series.unique().to_list()) <= set(listed):
            raise MetadataMissing(
                f"Not every value of `{column}` is among the values declared for it.",
                fix="Declare all possible values.", column=column,
            )  # fmt: skip
        if ends is not None and series.dtype.is_numeric() and not series.is_between(ends.low, ends.high).all():
            raise MetadataMissing(
                f"Not every value of `{column}` lies within the bounds declared for it.",
                fix="Declare bounds that hold for everybody, or clip the data to them.", column=column,
            )  # fmt: skip

    def _start(self, frame: pl.DataFrame) -> Running:
        [table] = self._catalog.private.values()
        public = {name: public.frame.to_arrow() for name, public in self._catalog.public.items()}
        return Duckdb(threads=1).start({table.name: frame.with_row_index(ROW).to_arrow(), **public})


class AuditTableResponder:
    """Answers SQL about a table by an auditor whose decisions are stored in the ledger's database."""

    def __init__(self, table: PolicyTable, *, rules: AuditRules) -> None:
        self._auditor = SqlAuditor(table.frame, secrets=table.sensitive, rules=rules, catalog=table.catalog)
        self._durable = DurableAuditor(self._auditor, table.store, dataset=table.catalog.dataset)

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
