"""Attacks on query answers: reconstruction, differencing, trackers and averaging.

Modules without a leading underscore are attacks.
"""

from sfumato.attacks.query._base import (
    QueryAttack,
    QueryOutcome,
    RecoveredBits,
    TargetedQueryAttack,
    evaluate_query_attack,
)

__all__ = ["QueryAttack", "QueryOutcome", "RecoveredBits", "TargetedQueryAttack", "evaluate_query_attack"]
