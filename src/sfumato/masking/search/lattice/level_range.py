"""Allowed levels of a lattice search, and its result."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.masking.search.lattice.space import Node


@dataclass(frozen=True, kw_only=True)
class LevelRange:
    """Lowest and highest allowed level of each column.

    >>> LevelRange(low=(0, 1), high=(2, 3)).nodes
    9
    """

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def nodes(self) -> int:
        """Combinations of levels."""
        count = 1
        for low, high in zip(self.low, self.high, strict=True):
            count *= high - low + 1
        return count


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """Result of a lattice search."""

    best: Node | None
    """None if no combination of levels meets the models."""
    bound: float
    """Lower bound on the score of every combination."""
    optimal: bool
    evaluated: int
    """Number of evaluated combinations."""
    nodes: int
    """Number of combinations in the lattice."""
