"""The owner's view of an auditor: its decisions, and what the answers that it gave give away together."""

from __future__ import annotations

from sfumato.auditing.audit_log import stored_decisions
from sfumato.auditing.past_answers import PastAnswers, past_answers
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.sql_frontend import SqlAuditor
from sfumato.auditing.table import PolicyTable
from sfumato.dataset.document import Dataset
from sfumato.errors import BadParameter
from sfumato.query.open_session import open_ledger
from sfumato.query.plan.catalog import Catalog


def decisions(dataset: Dataset) -> tuple[tuple[int, str, str], ...]:
    """Number, query and verdict of each decision that the policy has stored."""
    return stored_decisions(open_ledger(dataset).store, dataset=dataset.dataset)


def told_answers(dataset: Dataset) -> tuple[list[PastAnswers], list[str]]:
    """Who is exposed by the answers that were given, by sensitive column, and the queries that cannot be judged."""
    rules = dataset.answering.policy
    if rules is None or not isinstance(rules, AuditRules):
        raise BadParameter("Only an auditor keeps a record of what its answers give away together.")
    catalog = Catalog.of(dataset)
    [source] = [table.data.address for table in dataset.tables.values()]
    table = PolicyTable(catalog, source, policy=rules, store=open_ledger(dataset).store)
    auditor = SqlAuditor(table.frame, secrets=table.sensitive, rules=rules, catalog=catalog)
    given = [query for _, query, verdict in decisions(dataset) if verdict != "refused"]
    return past_answers(auditor, given)
