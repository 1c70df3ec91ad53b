"""Attacks on models: membership, attribute inference, reconstruction, and auditing by canaries.

Modules without a leading underscore are attacks.
"""

from sfumato.attacks.models._base import AttackedModel, ModelAttack
from sfumato.attacks.models._canaries import (
    CanaryAudit,
    audit_one_run,
    audit_repeated,
    one_run_bound,
    repeated_bound,
)
from sfumato.attacks.models._model_audit import audit_estimator

__all__ = [
    "AttackedModel",
    "CanaryAudit",
    "ModelAttack",
    "audit_estimator",
    "audit_one_run",
    "audit_repeated",
    "one_run_bound",
    "repeated_bound",
]
