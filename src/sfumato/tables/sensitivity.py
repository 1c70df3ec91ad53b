"""Primary suppression: which cells of a table are sensitive, and how wide their intervals must be.

The rules are those of Hundepool et al. (2012), Statistical Disclosure Control, doi:10.1002/9781118348239, Section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter
from sfumato.tables.cells import TableCells

__all__ = ["ProtectionLevels", "SensitivityRules", "known_cells"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class ProtectionLevels:
    """The sensitive cells, and how far the attacker's interval must reach below and above each."""

    sensitive: Mask
    lower: Floats
    upper: Floats
    singletons: Mask
    """Sensitive cells with one contributor, who knows the value and must not learn other cells from it."""

    @classmethod
    def of(
        cls, count: int, cells: dict[int, tuple[float, float]], *, singletons: Sequence[int] = ()
    ) -> ProtectionLevels:
        """Levels that are given directly: cell, (below, above)."""
        sensitive, lower, upper = np.zeros(count, dtype=np.bool_), np.zeros(count), np.zeros(count)
        for cell, (below, above) in cells.items():
            sensitive[cell], lower[cell], upper[cell] = True, below, above
        alone = np.zeros(count, dtype=np.bool_)
        alone[list(singletons)] = True
        return cls(sensitive=sensitive, lower=lower, upper=upper, singletons=alone)


def known_cells(cells: TableCells, levels: ProtectionLevels) -> tuple[tuple[int, ...], ...]:
    """For each single contributor of a suppressed cell: the cells whose values they know.

    A margin with one contributor has the same contributor as the only cell in it, so both are known to the same one.
    """
    alone = [int(cell) for cell in np.flatnonzero(levels.singletons)]
    places = {cell: frozenset(cells.keys[cell]) for cell in alone}
    inner = [cell for cell in alone if not any(places[cell] < other for other in places.values())]
    return tuple(tuple(other for other in alone if places[other] <= places[cell]) for cell in inner)


@dataclass(frozen=True, kw_only=True)
class SensitivityRules:
    """Rules for sensitive cells; a cell that violates one of them is suppressed. At least one rule is needed."""

    threshold: int | None = None
    """The smallest number of contributors that may be published. Empty cells are published."""
    dominance: tuple[int, float] | None = None
    """(n, k): sensitive if the n largest contributions are more than k percent of the cell."""
    p_percent: float | None = None
    """Sensitive if the second largest contributor can estimate the largest to within p percent of it: the cell without
    the two is smaller than p percent of the largest."""
    margin: float = 0.1
    """For cells of sums that only the threshold makes sensitive: how far the interval reaches to both sides, as a share
    of the value. For counts it reaches from at most one less up to the threshold."""

    insiders: bool = True
    """Whether cells are also protected from the single contributor of another suppressed cell, who knows that cell."""

    def __post_init__(self) -> None:
        if self.threshold is None and self.dominance is None and self.p_percent is None:
            raise BadParameter(
                "No rule says which cells are sensitive.", fix="Set a threshold, dominance or p_percent."
            )
        if self.threshold is not None and self.threshold < 2:
            raise BadParameter("A threshold is at least 2.")
        if self.dominance is not None and not (1 <= self.dominance[0] <= 5 and 0 < self.dominance[1] < 100):
            raise BadParameter("Dominance is (n, k) with n from 1 to 5 and k a percentage below 100.")
        if self.p_percent is not None and not 0 < self.p_percent <= 100:
            raise BadParameter("p_percent lies above 0 and is at most 100.")

    def apply(self, cells: TableCells) -> ProtectionLevels:
        """The sensitive cells with their protection levels.

        The upper level is the distance to the smallest value at which the cell would not be sensitive; the lower level
        is the same.
        """
        values, largest = cells.values, cells.largest
        if not cells.magnitude and (self.dominance is not None or self.p_percent is not None):
            raise BadParameter("Dominance and p_percent are for tables of sums.", fix="Name the column to sum.")
        levels = np.zeros(len(values))
        sensitive = np.zeros(len(values), dtype=np.bool_)
        lower = np.zeros(len(values))
        if self.threshold is not None:
            few = (cells.contributors > 0) & (cells.contributors < self.threshold)
            sensitive |= few
            need = self.margin * values if cells.magnitude else self.threshold - cells.contributors
            levels = np.where(few, np.maximum(levels, need), levels)
            lower = np.where(few, need if cells.magnitude else 1.0, lower)
        if self.dominance is not None:
            count, percent = self.dominance
            top = largest[:, :count].sum(axis=1)
            found = (values > 0) & (top > percent / 100 * values)
            sensitive |= found
            levels = np.where(found, np.maximum(levels, top * 100 / percent - values), levels)
        if self.p_percent is not None:
            share = self.p_percent / 100 * largest[:, 0]
            rest = values - largest[:, 0] - largest[:, 1]
            found = (values > 0) & (rest < share)
            sensitive |= found
            levels = np.where(found, np.maximum(levels, share - rest), levels)
        lower = np.maximum(lower, np.minimum(levels, values)) if cells.magnitude else np.minimum(lower, values)
        alone = sensitive & (cells.contributors == 1) & self.insiders
        return ProtectionLevels(sensitive=sensitive, lower=lower, upper=levels, singletons=alone)
