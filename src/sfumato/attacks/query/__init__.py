"""Attacks on query answers: reconstruction, differencing, trackers, averaging, expressions and refusals.

Modules without a leading underscore are attacks.
"""

from sfumato.attacks.query._base import (
    QueryAttack,
    QueryOutcome,
    RecoveredBits,
    TargetedQueryAttack,
)
from sfumato.attacks.query._evaluate import evaluate_query_attack, evaluate_sql_attack

__all__ = [
    "QueryAttack",
    "QueryOutcome",
    "RecoveredBits",
    "TargetedQueryAttack",
    "evaluate_query_attack",
    "evaluate_sql_attack",
]
