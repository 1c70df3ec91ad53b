"""Exact answers, and when to refuse them: auditors that decide from the queries already answered."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    AuditRules="rules",
    Auditor="auditor",
    audited_table="report.replay",
    replay_log="report.replay",
)
