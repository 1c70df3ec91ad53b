"""How a strength of dependence between two columns changed, over all pairs of columns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from tacit.errors import NotApplicable
from tacit.measure.measure import Measurement, Pair
from tacit.measure.utility._spread import comparable, spread
from tacit.measure.utility._tables import cross_tables
from tacit.measure.utility._values import Floats

__all__ = ["change_of_dependence"]


def change_of_dependence(measure: str, pair: Pair, cells: int, strength: Callable[[Floats], float]) -> Measurement:
    """Mean absolute difference of ``strength`` of the cross table of every two columns, before and after."""
    names = comparable(pair)
    if len(names) < 2:
        raise NotApplicable("The tables share fewer than two columns that could be compared.")
    spreads = {name: spread(pair, name, cells) for name in names}
    found, seen = {}, {}
    for left, right in combinations(names, 2):
        before, after = (strength(table) for table in cross_tables(spreads[left], spreads[right]))
        label = f"{left} × {right}"
        found[label], seen[label] = abs(before - after), {"before": before, "after": after}
    value = float(np.mean(list(found.values())))
    return Measurement(measure=measure, value=value, columns=found, detail={"pairs": seen})
