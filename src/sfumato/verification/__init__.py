"""Independent verification of a release: SQL counts and textbook formulas that share no code with the search."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(__name__)
