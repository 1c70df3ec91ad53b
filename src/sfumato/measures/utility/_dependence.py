"""Statistics of pairs of columns: all pairs, or a random sample of them for wide tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from sfumato.arrays import Floats
from sfumato.errors import NotApplicable
from sfumato.measures.base import MeasureResult, ReleasePair
from sfumato.measures.utility._spread import comparable, spread
from sfumato.measures.utility._tables import cross_tables

_MOST = 2000
"""Pairs that are compared at most. 64 columns have 2,016, 300 columns 44,850."""


def couples(names: Sequence[str], random: np.random.Generator) -> list[tuple[str, str]]:
    """Every two columns, or a random choice of such pairs where there are very many."""
    every = list(combinations(names, 2))
    if len(every) <= _MOST:
        return every
    return [every[place] for place in np.sort(random.choice(len(every), _MOST, replace=False))]


def over_couples(
    measure: str, names: Sequence[str], found: dict[str, float], detail: dict[str, object]
) -> MeasureResult:
    """The mean over the pairs, with an interval where they are a sample of all pairs."""
    values = np.array(list(found.values()))
    mean, every = float(values.mean()), len(names) * (len(names) - 1) // 2
    if len(values) == every:
        return MeasureResult(measure=measure, value=mean, columns=found, detail=detail)
    error = 1.96 * float(values.std(ddof=1)) * np.sqrt((1 - len(values) / every) / len(values))
    counted = {**detail, "pairs_compared": len(values), "pairs_in_all": every}
    low, high = max(0.0, mean - error), mean + error
    return MeasureResult(measure=measure, value=mean, columns=found, low=low, high=high, detail=counted)


def change_of_dependence(
    measure: str, pair: ReleasePair, cells: int, strength: Callable[[Floats], float], random: np.random.Generator
) -> MeasureResult:
    """Mean absolute difference of ``strength`` of the cross table of two columns, before and after."""
    names = comparable(pair)
    if len(names) < 2:
        raise NotApplicable("The tables share fewer than two columns that could be compared.")
    spreads = {name: spread(pair, name, cells) for name in names}
    found, seen = {}, {}
    for left, right in couples(names, random):
        before, after = (strength(table) for table in cross_tables(spreads[left], spreads[right]))
        label = f"{left} × {right}"
        found[label], seen[label] = abs(before - after), {"before": before, "after": after}
    return over_couples(measure, names, found, {"pairs": seen})
