"""Record linkage of sparse data: ratings, purchases, searches."""

from sfumato.attacks.record_linkage.sparse_linkage.attack import SparseLinkage

__all__ = ["SparseLinkage"]
