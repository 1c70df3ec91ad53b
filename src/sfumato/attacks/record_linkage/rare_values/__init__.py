"""Record linkage by equal values, weighted by their rarity."""

from sfumato.attacks.record_linkage.rare_values.attack import RareValues

__all__ = ["RareValues"]
