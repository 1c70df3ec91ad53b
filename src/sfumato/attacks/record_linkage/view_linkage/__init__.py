"""Record linkage over several views of the known and released values."""

from sfumato.attacks.record_linkage.view_linkage.attack import ViewLinkage

__all__ = ["ViewLinkage"]
