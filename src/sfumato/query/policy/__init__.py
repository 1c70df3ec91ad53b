"""Policies other than differential privacy: the contract of a policy, and answering SQL by one."""

from sfumato.query.policy.base import Policy, Responder, SubsetResponder, Values

__all__ = ["Policy", "Responder", "SubsetResponder", "Values"]
