"""The plan of TopDown tables: what is measured with which shares of the budget, and what is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from sfumato.dp.loss import PrivacyLoss, concentrated
from sfumato.errors import BadParameter, UnknownColumn

CENSUS_2020_LEVELS = tuple(Fraction(part, 4099) for part in (104, 1440, 447, 687, 1256, 165))
"""Shares of the budget by level in the 2020 census: nation, state, county, tract, block group, block."""
CENSUS_2020_RHO = Fraction(2556, 1000)
"""The budget of the 2020 census for people, in zero-concentrated differential privacy."""

MOST_CELLS = 1_000_000
"""Largest number of cells of a node, and in thousands of all nodes of a level."""
_WIDEST = 10**6
"""Largest standard deviation of the noise of a level's most accurate count."""


@dataclass(frozen=True, kw_only=True)
class AreaBound:
    """A public bound of the number of people of some kind in every smallest area.

    For example: nobody lives in a prison where there is none, somebody where there is one, and at most 99 people live
    in a housing unit. **Bounds that were derived from the data are not protected.**
    """

    where: Mapping[str, Any]
    """The kind of people: a value for each of the plan's first columns. All bounds of a plan name the same columns."""
    at_least: str | None = None
    """Column of the geography with the smallest number of such people in each area."""
    at_most: str | None = None
    """Column of the geography with the largest number of such people in each area."""

    def __post_init__(self) -> None:
        if not self.where or (self.at_least is None and self.at_most is None):
            raise BadParameter("A bound needs `where`, and `at_least` or `at_most`.")


@dataclass(frozen=True, kw_only=True)
class TopDownPlan:
    """What is measured, with which shares of the budget. It does not depend on the data."""

    columns: Mapping[str, tuple[Any, ...]]
    """The columns of the tables with all their values. Tables are refined in this order: coarse columns come first."""
    rho: Fraction
    """The budget, in zero-concentrated differential privacy. There is no default."""
    levels: tuple[Fraction, ...]
    """Shares of the budget from the whole to the smallest areas; they add up to 1."""
    queries: Mapping[tuple[str, ...], Fraction]
    """Shares of a level's budget by marginal; ``()`` is the number of people. They add up to 1."""
    exact_totals: str | None = None
    """The lowest level whose numbers of people are published exactly. **They are not protected.**"""
    impossible: tuple[Mapping[str, tuple[Any, ...]], ...] = ()
    """Edit constraints: nobody has a combination of these values (structural zeros)."""
    bounds: tuple[AreaBound, ...] = ()
    """Public bounds of numbers of people in the smallest areas."""

    def __post_init__(self) -> None:
        for name, values in self.columns.items():
            if not values or len(set(values)) != len(values):
                raise BadParameter(f"`{name}` needs values, each listed once.")
        if self.rho <= 0:
            raise BadParameter("rho must be above 0.")
        for what, shares in (("levels", self.levels), ("queries", tuple(self.queries.values()))):
            if not shares or min(shares) < 0 or sum(shares) != 1:
                raise BadParameter(f"The shares of {what} must not be negative and must add up to 1.")
        if self.cells > MOST_CELLS:
            raise BadParameter(
                f"A table has {self.cells} cells per area; at most {MOST_CELLS} are possible.",
                fix="Use fewer columns or coarser values.",
            )
        for names in self.queries:
            self._known(names, f"The query `{', '.join(names)}`")
        for combination in self.impossible:
            self._known(combination, "An impossible combination")
            for name, values in combination.items():
                self._values(name, values)
        for bound in self.bounds:
            if list(bound.where) != list(self.columns)[: len(bound.where)]:
                raise BadParameter(
                    "A bound is about the first columns of the plan, in their order.",
                    fix=f"List {', '.join(f'`{name}`' for name in bound.where)} first under `columns`.",
                )
            if list(bound.where) != list(self.bounds[0].where):
                raise BadParameter("All bounds of a plan are about the same columns.")
            for name, value in bound.where.items():
                self._values(name, (value,))
        best = max(self.queries.values())
        for number, share in enumerate(self.levels):
            if share and 1 / (2 * self.rho * share * best) > _WIDEST**2:
                raise BadParameter(
                    f"rho is too small for anything: on level {number} (0 is the whole) the noise of every count would "
                    "have a standard deviation of more than a million people.",
                    fix="Use a larger rho, or give the level no share.",
                )

    def _known(self, names: Any, what: str) -> None:
        for name in names:
            if name not in self.columns:
                raise UnknownColumn(f"{what} names an unknown column `{name}`.")

    def _values(self, name: str, values: Any) -> None:
        if not values or not set(values) <= set(self.columns[name]):
            raise BadParameter(f"A rule names a value that `{name}` does not have.", fix=f"Check `columns: {name}`.")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of every column."""
        return tuple(len(values) for values in self.columns.values())

    @property
    def cells(self) -> int:
        """The number of cells of a node."""
        return prod(self.shape)

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one person."""
        return concentrated(self.rho)

    def variance(self, level: int, query: tuple[str, ...]) -> Fraction | None:
        """The variance of the noise of a query: a person is in one cell of one node per level."""
        rho = self.rho * self.levels[level] * self.queries[query]
        return 1 / (2 * rho) if rho else None
