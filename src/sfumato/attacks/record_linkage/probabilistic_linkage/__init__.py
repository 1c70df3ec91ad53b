"""Probabilistic record linkage (Fellegi and Sunter)."""

from sfumato.attacks.record_linkage.probabilistic_linkage.attack import ProbabilisticLinkage

__all__ = ["ProbabilisticLinkage"]
