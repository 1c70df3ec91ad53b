"""Minimal generalizations: combinations of levels that meet the models while no lower one does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter
from sfumato.masking.model import Monotonicity
from sfumato.masking.search.lattice.level_range import LevelRange
from sfumato.masking.search.lattice.optimal import LARGEST
from sfumato.masking.search.lattice.space import LatticeSpace


def minimal_nodes(space: LatticeSpace, within: LevelRange) -> list[tuple[int, ...]]:
    """The minimal combinations, lowest sum of levels first.

    A combination is minimal when it meets the models within the suppression limit and no combination that is lower in
    some columns and higher in none does (Samarati 2001, doi:10.1109/69.971193).
    """
    if within.nodes > LARGEST:
        raise BadParameter(f"{within.nodes:,} combinations of levels are too many to list the minimal ones.")
    shape = tuple(high - low + 1 for low, high in zip(within.low, within.high, strict=True))
    fails = np.zeros(shape, dtype=np.bool_)
    above = np.zeros(shape, dtype=np.bool_)
    low = np.array(within.low)
    order = np.argsort(np.indices(shape).sum(axis=0), axis=None, kind="stable")
    minimal: list[tuple[int, ...]] = []
    if space.monotonicity is Monotonicity.ANY or (space.limit == 0 and space.monotonicity is Monotonicity.PASSING):
        _rule_out(space, low, fails)
    for place in order:
        at = np.unravel_index(place, shape)
        # combinations above a minimal one are not minimal
        if fails[at] or above[at]:
            continue
        node = space.evaluate(np.array(at) + low, explain=True)
        if node.meets:
            minimal.append(node.levels)
            above[tuple(slice(i, None) for i in at)] = True
        elif node.hopeless:
            fails[tuple(slice(0, i + 1) for i in at)] = True
    return minimal


def _rule_out(space: LatticeSpace, low: npt.NDArray[np.int64], fails: npt.NDArray[np.bool_]) -> None:
    """Exclude combinations below the coarsest failures of single columns, which prunes most of the lattice."""
    top = np.array(fails.shape) - 1
    for column in range(len(top)):
        at = top.copy()
        while at[column] >= 0:
            node = space.evaluate(at + low, explain=True)
            if node.hopeless:
                fails[tuple(slice(0, i + 1) for i in at)] = True
                break
            at[column] -= 1
