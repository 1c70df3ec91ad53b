"""The owner's view of an auditor: its decisions, and what the answers that it gave give away together."""

from __future__ import annotations

from pathlib import Path

from sfumato.auditing.audit_log import stored_decisions
from sfumato.auditing.past_answers import PastAnswers, past_answers
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.sql_frontend import SqlAuditor
from sfumato.auditing.table import PolicyTable
from sfumato.errors import BadParameter
from sfumato.ledger.ledger import Ledger
from sfumato.query.metadata import Metadata

__all__ = ["decisions", "told_answers"]


def decisions(metadata: Metadata, base: Path) -> tuple[tuple[int, str, str], ...]:
    """Number, query and verdict of each decision that the policy has stored."""
    store = Ledger.open(metadata.ledger_place(base)).store
    return stored_decisions(store, dataset=metadata.dataset)


def told_answers(metadata: Metadata, base: Path) -> tuple[list[PastAnswers], list[str]]:
    """Who is exposed by the answers that were given, by sensitive column, and the queries that cannot be judged."""
    rules = metadata.policy
    if rules is None or not isinstance(rules, AuditRules):
        raise BadParameter("Only an auditor keeps a record of what its answers give away together.")
    store = Ledger.open(metadata.ledger_place(base)).store
    catalog = metadata.catalog(base)
    [source] = [metadata.sources(base)[name] for name in catalog.private]
    table = PolicyTable(catalog, source, policy=rules, store=store)
    auditor = SqlAuditor(table.frame, secrets=table.sensitive, rules=rules, catalog=catalog)
    given = [query for _, query, verdict in decisions(metadata, base) if verdict != "refused"]
    return past_answers(auditor, given)
