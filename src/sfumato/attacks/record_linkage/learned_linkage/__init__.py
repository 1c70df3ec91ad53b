"""Record linkage with a learned distance."""

from sfumato.attacks.record_linkage.learned_linkage.attack import LearnedLinkage

__all__ = ["LearnedLinkage"]
