"""Contribution bounding: sums over groups in which the contribution of every privacy unit is bounded, as a description.

Every engine can compute the sums by a statement. An engine with a faster way of its own takes this description instead
and must return the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from sfumato.engines.statements import Query

__all__ = ["CODE_BITS", "MOST_ROWS", "SAFE", "Bounded", "Cut", "Term"]

CODE_BITS = 20
"""Low bits of a group's place in a unit's order: the group's number."""
SAFE = 1 - 2.0**-40
"""Scaling down to a norm is done in floating point and cut to whole numbers towards zero; this factor keeps the norm
of the result below the bound whatever the rounding."""
MOST_ROWS = 1 << 26
"""Maximum number of rows. All of them are loaded into memory, at 8 bytes a column."""
_WIDE = 1 << 62


class Cut(IntEnum):
    """How the sums of one unit within one group are bounded."""

    CLIP = 0
    """One sum, clipped."""
    MEAN = 1
    """Shares of a weight: too many rows are cut in the same proportion, so that the unit's mean stays."""
    SUM = 2
    """Two shares of a weight that stand for a sum between ``low`` and ``high`` a row: the sum is kept if it can be."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """One number of every group: the sum over units of each unit's own sum, clipped, times ``times``.

    Or several that share a weight of ``whole`` per row: a unit's sums are then cut together, as ``Cut`` says.
    """

    reach: int
    """Largest absolute value of one row."""
    low: int
    high: int
    """Bounds to which the unit's sum within one group is clipped; for shares see ``cut``."""
    times: int = 1
    bound: int = 0
    """Squared norm to which a unit's vector over all groups is scaled down, where vectors are scaled."""
    every: bool = False
    """Each row counts 1; there is no column for it."""
    shares: int = 1
    cut: Cut = Cut.CLIP
    rows: int = 1
    """Shares only: number of rows of a unit that count within one group."""

    @property
    def farthest(self) -> int:
        """Largest absolute contribution of a unit to one group, before vectors are scaled down."""
        far = max(abs(self.low), abs(self.high))
        return (far if self.cut is Cut.CLIP else self.reach * (self.rows + 1)) * self.times


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A bounded aggregation: the terms to sum, and the groups of each unit that count."""

    source: Query
    """A SELECT of the unit, of the group's place (a keyed hash in the high bits, the group's number in the low ones),
    and of one whole number for every term (or share) but those that count every row. None of them is missing."""
    groups: int
    """Number of groups; they are numbered from 0."""
    ends: tuple[int, int] | None
    """Of each unit, so many groups are kept from the beginning and the end of the order of places. None: all are kept,
    and each unit's vector over the groups is scaled down to the terms' bounds."""
    terms: tuple[Term, ...]

    def fits(self, rows: int = MOST_ROWS) -> bool:
        """Whether every sum of up to this many rows fits 64 bits."""
        if self.groups > 1 << CODE_BITS:
            return False
        for term in self.terms:
            own = rows * max(term.reach, abs(term.low), abs(term.high)) * max(1, term.rows)
            squares = 0 if self.ends else max(self.groups * term.shares * term.farthest**2, term.bound)
            if max(own, rows * term.farthest, squares) >= _WIDE:
                return False
        return True
