"""Earth mover's distances for the independent check of t-closeness.

Written over dictionaries of shares, separately from the vectorized distances that the model itself uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sfumato.release.class_counts import Shares


def total_variation(here: Shares, target: Shares) -> float:
    """Half the sum of absolute differences: the distance if all values are equally far apart.

    >>> total_variation({"a": 1.0}, {"a": 0.5, "b": 0.5})
    0.5
    """
    return sum(abs(here.get(value, 0.0) - target.get(value, 0.0)) for value in {*here, *target}) / 2


def ordered_transport(here: Shares, target: Shares, order: Sequence[str | None]) -> float:
    """The distance if the values lie on a line at equal steps; the whole line has length 1."""
    carried = moved = 0.0
    for value in order[:-1]:
        carried += here.get(value, 0.0) - target.get(value, 0.0)
        moved += abs(carried)
    return moved / max(len(order) - 1, 1)


def tree_transport(here: Shares, target: Shares, paths: Mapping[str | None, Sequence[str | None]]) -> float:
    """The distance if two values are as far apart as the level of the hierarchy that joins them.

    ``paths`` gives for each value its labels up to the root, the value itself first. Mass is balanced inside the groups
    of each level, from the leaves up.
    """
    height = max(len(next(iter(paths.values()))) - 1, 1)
    cost = 0.0
    nodes = {tuple(path): here.get(value, 0.0) - target.get(value, 0.0) for value, path in paths.items()}
    for level in range(1, height + 1):
        surplus: dict[tuple[str | None, ...], float] = Counter()  # type: ignore[assignment]
        deficit: dict[tuple[str | None, ...], float] = Counter()  # type: ignore[assignment]
        for path, extra in nodes.items():
            (surplus if extra > 0 else deficit)[path[1:]] += abs(extra)
        parents = {*surplus, *deficit}
        cost += sum(min(surplus[parent], deficit[parent]) * level / height for parent in parents)
        nodes = {parent: surplus[parent] - deficit[parent] for parent in parents}
    return cost + sum(max(extra, 0.0) for extra in nodes.values())
