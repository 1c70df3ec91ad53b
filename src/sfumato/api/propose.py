"""``sfumato.propose``: propose roles, kinds and hierarchies for the columns of a table."""

from sfumato.profiling import propose

__all__ = ["propose"]
