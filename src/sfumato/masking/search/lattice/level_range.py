"""The combinations of levels that a search may choose from, and what it found among them."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.masking.search.lattice.space import Node

__all__ = ["LevelRange", "SearchResult"]


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
    """What a search gives."""

    best: Node | None
    """None when no combination of levels meets the models."""
    bound: float
    """No combination scores less than this."""
    optimal: bool
    judged: int
    """Combinations that were grouped and tested."""
    nodes: int
    """Combinations there are."""
