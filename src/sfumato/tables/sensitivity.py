"""Primary suppression: which cells of a table are sensitive, and how wide their intervals must be.

The rules are those of Hundepool et al. (2012), Statistical Disclosure Control, doi:10.1002/9781118348239, Section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.arrays import Floats, Mask
from sfumato.errors import BadParameter
from sfumato.tables.cells import TableCells
from sfumato.tables.interval_audit import Goal, Knowledge


@dataclass(frozen=True, kw_only=True)
class ProtectionLevels:
    """The sensitive cells, and how far the attacker's interval must reach below and above each."""

    sensitive: Mask
    lower: Floats
    upper: Floats
    contributors: tuple[Knowledge, ...] = ()
    """What contributors know, from whom cells are protected too."""

    @classmethod
    def of(cls, count: int, cells: dict[int, tuple[float, float]]) -> ProtectionLevels:
        """Levels that are given directly: cell, (below, above)."""
        sensitive, lower, upper = np.zeros(count, dtype=np.bool_), np.zeros(count), np.zeros(count)
        for cell, (below, above) in cells.items():
            sensitive[cell], lower[cell], upper[cell] = True, below, above
        return cls(sensitive=sensitive, lower=lower, upper=upper)

    def goals(self, cells: TableCells) -> tuple[Goal, ...]:
        """The interval that is asked for of every sensitive cell."""
        return tuple(
            Goal(
                cell=int(cell),
                value=float(cells.values[cell]),
                low=float(cells.values[cell] - self.lower[cell]),
                high=float(cells.values[cell] + self.upper[cell]),
                low_for_contributors=float(max(cells.values[cell] - self.lower[cell], cells.largest[cell, 0])),
            )
            for cell in np.flatnonzero(self.sensitive)
        )


def contributors_knowledge(cells: TableCells) -> tuple[Knowledge, ...]:
    """What every contributor knows: the own contribution to all cells, and which cells have no other contributors.

    The value of a cell without others is the own contribution. Of counts, a cell with others is at least one more than
    the own contribution; amounts of others may be 0.

    This is the singleton problem for contributors to several cells (Robertson 2000, Improving Statistics Canada's cell
    suppression software; Hundepool et al. 2012, Section 4.3): who is alone in several suppressed cells subtracts all of
    them. Cells that are not sums of others are listed, and margins without other contributors; knowledge about other
    margins follows, because empty cells are published. Contributors to the same cells are merged into one who knows
    what any of them knows; that asks for no less protection.
    """
    inner = cells.contributors != 1
    inner &= np.isin(np.arange(len(inner)), [total for total, _ in cells.sums])
    held = cells.contributions.filter(~pl.col("cell").is_in(np.flatnonzero(inner))).sort("unit", "cell")
    by_unit = held.group_by("unit", maintain_order=True).agg("cell", "amount")
    merged: dict[tuple[int, ...], Floats] = {}
    for _, own, amounts in by_unit.iter_rows():
        place, known = tuple(own), np.asarray(amounts, dtype=np.float64)
        merged[place] = np.maximum(merged[place], known) if place in merged else known
    found = []
    for place, low in merged.items():
        numbers = np.asarray(place, dtype=np.int64)
        alone, values = cells.contributors[numbers] == 1, cells.values[numbers]
        least = low if cells.magnitude else low + 1
        found.append(Knowledge(cells=numbers, low=np.where(alone, values, least), high=np.where(alone, values, np.inf)))
    return tuple(found)


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
    zero: float | None = None
    """For sensitive cells with the sum 0, of which no share is a distance: how far the interval reaches above 0."""
    insiders: bool = True
    """Whether cells are also protected from every single contributor, who knows the own contributions to all cells, the
    value of cells without others, and that other counts with an own contribution are at least one more."""

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
        if self.zero is not None and not 0 < self.zero < 1e15:
            raise BadParameter("`zero` is an amount above 0.")

    def apply(self, cells: TableCells) -> ProtectionLevels:
        """The sensitive cells with their protection levels.

        The upper level is the distance to the smallest value at which the cell would not be sensitive; the lower level
        is the same.
        """
        values, largest, some = cells.values, cells.largest, cells.contributors > 0
        if not cells.magnitude and (self.dominance is not None or self.p_percent is not None):
            raise BadParameter("Dominance and p_percent are for tables of sums.", fix="Name the column to sum.")
        levels = np.zeros(len(values))
        sensitive = np.zeros(len(values), dtype=np.bool_)
        lower = np.zeros(len(values))
        if self.threshold is not None:
            few = some & (cells.contributors < self.threshold)
            sensitive |= few
            share = self.margin * values
            # A count of rows of units with several rows is a sum: the number of rows of a unit is what is protected.
            rows = np.where(values > cells.contributors, np.ceil(share), 0.0)
            need = share if cells.magnitude else np.maximum(self.threshold - cells.contributors, rows)
            levels = np.where(few, np.maximum(levels, need), levels)
            lower = np.where(few, need if cells.magnitude else np.maximum(1.0, rows), lower)
        if self.dominance is not None:
            count, percent = self.dominance
            top = largest[:, :count].sum(axis=1)
            found = some & ((top > percent / 100 * values) | (values == 0))
            sensitive |= found
            levels = np.where(found, np.maximum(levels, top * 100 / percent - values), levels)
        if self.p_percent is not None:
            share = self.p_percent / 100 * largest[:, 0]
            rest = values - largest[:, 0] - largest[:, 1]
            found = some & ((rest < share) | (values == 0))
            sensitive |= found
            levels = np.where(found, np.maximum(levels, share - rest), levels)
        lower = np.maximum(lower, np.minimum(levels, values)) if cells.magnitude else np.minimum(lower, values)
        nothing = sensitive & (values == 0)
        if nothing.any():
            # Amounts are not negative, so that a sum of 0 tells the amount of every contributor.
            if self.zero is None:
                raise BadParameter(
                    "The amounts of a sensitive cell add up to 0, and no share of 0 says how well it is to be hidden.",
                    fix="Set `zero` among the rules: the amount up to which readers must think it possible.",
                )
            levels = np.where(nothing, self.zero, levels)
        known = contributors_knowledge(cells) if self.insiders else ()
        return ProtectionLevels(sensitive=sensitive, lower=lower, upper=levels, contributors=known)
