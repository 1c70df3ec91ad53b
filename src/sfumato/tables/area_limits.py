"""What is public about the numbers of people: impossible combinations, and bounds of the smallest areas."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Ints
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.tables.geography import Geography
from sfumato.tables.topdown_plan import TopDownPlan
from sfumato.tables.transport_rounding import UNBOUNDED


@dataclass(frozen=True, kw_only=True)
class AreaLimits:
    """Limits of all areas. Those of an area are the sums of the limits of the areas in it."""

    shape: tuple[int, ...]
    depth: int
    """Number of leading columns that the bounds are about."""
    possible: npt.NDArray[np.bool_]
    """By cell of an area."""
    low: tuple[Ints, ...]
    """By level: (area, combination of the leading columns)."""
    high: tuple[Ints, ...]

    @classmethod
    def of(cls, plan: TopDownPlan, geography: Geography) -> AreaLimits:
        """The limits of a plan; refused if no numbers of people meet them."""
        possible = np.ones(plan.shape, dtype=np.bool_)
        for combination in plan.impossible:
            axes = [
                [plan.columns[name].index(v) for v in combination[name]] if name in combination else list(range(size))
                for name, size in zip(plan.columns, plan.shape, strict=True)
            ]
            possible[np.ix_(*axes)] = False
        depth = len(plan.bounds[0].where) if plan.bounds else 0
        cells = prod(plan.shape[:depth])
        low = np.zeros((geography.frame.height, cells), dtype=np.int64)
        high = np.where(possible.reshape(cells, -1).any(axis=1), UNBOUNDED, 0)[None, :].repeat(len(low), axis=0)
        for bound in plan.bounds:
            places = [plan.columns[name].index(value) for name, value in bound.where.items()]
            cell = int(np.ravel_multi_index(places, plan.shape[:depth]))
            if bound.at_least is not None:
                low[:, cell] = np.maximum(low[:, cell], _numbers(geography, bound.at_least))
            if bound.at_most is not None:
                high[:, cell] = np.minimum(high[:, cell], _numbers(geography, bound.at_most))
        if (low > high).any():
            areas = int((low > high).any(axis=1).sum())
            raise BadParameter(
                f"No table meets the bounds and impossible combinations in {areas} areas: a smallest number is above "
                "the largest.",
                fix="Check the columns that `at_least` and `at_most` name.",
            )
        if not possible.any():
            raise BadParameter("All combinations are impossible.")
        steps = range(len(geography.levels) + 1)
        summed = [[_summed(part, geography.ancestors(number)) for number in steps] for part in (low, high)]
        return cls(
            shape=plan.shape, depth=depth, possible=possible.ravel(), low=tuple(summed[0]), high=tuple(summed[1])
        )

    def highest(self, depth: int) -> Ints:
        """Upper bounds of the combinations of leading columns: 0 for the impossible ones."""
        shape = self.shape[:depth]
        some = self.possible.reshape(prod(shape), -1).any(axis=1)
        return np.where(some, UNBOUNDED, 0).reshape(-1, self.shape[depth - 1])

    def check_totals(self, totals: list[Ints]) -> None:
        """Refuse exact numbers of people, which are published, that contradict the bounds of an area."""
        for own, low, high in zip(totals, self.low, self.high, strict=False):
            if (own < low.sum(axis=1)).any() or (own > high.sum(axis=1)).any():
                raise BadParameter(
                    "The exact totals contradict the bounds of some area.",
                    fix="Check the columns of `at_least` and `at_most`, or leave `exact_totals` out.",
                )


def _numbers(geography: Geography, name: str) -> Ints:
    frame = geography.frame
    if name not in frame.columns:
        raise UnknownColumn(f"The geography has no column `{name}` for a bound.")
    if not frame[name].dtype.is_integer() or frame[name].null_count() or frame.filter(pl.col(name) < 0).height:
        raise BadParameter(f"The bounds in `{name}` must be whole numbers from 0 on, one for every area.")
    numbers: Ints = np.minimum(frame[name].cast(pl.Int64).to_numpy(), UNBOUNDED)
    return numbers


def _summed(values: Ints, nodes: Ints) -> Ints:
    total = np.zeros((int(nodes.max()) + 1, values.shape[1]), dtype=np.int64)
    np.add.at(total, nodes, values)
    return total
