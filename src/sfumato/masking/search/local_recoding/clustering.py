"""k-member clustering for local recoding: clusters of at least k rows with low generalization loss.

Greedy k-member clustering inside blocks of similar units, then local search: clusters are dissolved and units are moved
if that lowers the sum of losses. Deterministic; a heuristic (the problem is NP-hard) without a bound on the distance to
the optimum.

References: Byun, Kamra, Bertino, Li (2007), Efficient k-anonymization using clustering techniques,
doi:10.1007/978-3-540-71703-4_18; Meyerson, Williams (2004) for the hardness, doi:10.1145/1055558.1055591.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.masking.search.hierarchy_arrays import HierarchyArrays
from sfumato.masking.search.local_recoding.k_member import grow
from sfumato.masking.search.local_recoding.local_search import repair
from sfumato.progress import SILENT, Progress

Codes = npt.NDArray[np.int32]


def cluster_units(
    trees: HierarchyArrays,
    k: int,
    *,
    home: Ints | None = None,
    block: int = 3000,
    passes: int = 3,
    threads: int = 2,
    progress: Progress = SILENT,
) -> tuple[Ints, int]:
    """The cluster of each unit, and the number of clusters. Every cluster has at least ``k`` rows if the table has.

    ``home`` marks spare rows of large units with the unit they belong to (-1: not spare). ``block`` is the number of
    units per neighbour search: time grows with units times block.
    """
    parts = split_into_blocks(trees, block, k)
    home = np.full(len(trees), -1, dtype=np.int64) if home is None else home
    costliest = trees.costliest

    def work(units: npt.NDArray[np.intp]) -> Ints:
        part = trees.take(units)
        groups = np.ascontiguousarray(part.groups[:, costliest])
        offset = np.ascontiguousarray(part.offset[costliest])
        near = _places(home[units], units)
        cluster, count = grow(groups, offset, part.loss, part.rows, near, k)
        return repair(groups, offset, part.loss, part.rows, k, cluster, count, passes)

    cluster = np.empty(len(trees), dtype=np.int64)
    count = 0
    with progress.task("clustering", len(trees)) as tick, ThreadPoolExecutor(threads) as pool:
        for units, labels in zip(parts, pool.map(work, parts), strict=True):
            distinct, number = np.unique(labels, return_inverse=True)
            cluster[units] = number + count
            count += len(distinct)
            tick(len(units))
    return cluster, count


def _places(wanted: Ints, units: npt.NDArray[np.intp]) -> Ints:
    """Position of each wanted unit in ``units``; -1 if absent."""
    order = np.argsort(units, kind="stable")
    position = np.minimum(np.searchsorted(units, wanted, sorter=order), len(units) - 1)
    return np.where(units[order[position]] == wanted, order[position], -1)


def split_into_blocks(trees: HierarchyArrays, block: int, k: int) -> list[npt.NDArray[np.intp]]:
    """Split units along hierarchies into blocks of about ``block`` units, each large enough for several clusters."""
    least = max(block // 8, 1)
    done: list[npt.NDArray[np.intp]] = []
    waiting = [np.arange(len(trees))]
    while waiting:
        units = waiting.pop()
        choice = _best_cut(trees, units) if len(units) > block else None
        if choice is None:
            done.append(units)
            continue
        order = units[np.argsort(choice[units], kind="stable")]
        values, starts = np.unique(choice[order], return_index=True)
        children = np.split(order, starts[1:])
        if len(values) < 2:
            done.append(units)
            continue
        # small children stay together, next to each other in the hierarchy's order
        pool: list[npt.NDArray[np.intp]] = []
        merged: list[npt.NDArray[np.intp]] = []
        for child in sorted(children, key=len):
            pool.append(child)
            if sum(map(len, pool)) >= least:
                merged.append(np.concatenate(pool))
                pool = []
        if pool:
            merged[-1:] = [np.concatenate([*merged[-1:], *pool])]
        if len(merged) < 2:
            half = len(order) // 2
            merged = [order[:half], order[half:]]
        waiting.extend(merged)
    return _with_room(done, trees.rows, k)


def _with_room(parts: list[npt.NDArray[np.intp]], rows: Ints, k: int) -> list[npt.NDArray[np.intp]]:
    """Join blocks of fewer than k rows with the next one."""
    out: list[npt.NDArray[np.intp]] = []
    for part in parts:
        if out and (rows[out[-1]].sum() < k or rows[part].sum() < k):
            out[-1] = np.concatenate([out[-1], part])
        else:
            out.append(part)
    return out


def _best_cut(trees: HierarchyArrays, units: npt.NDArray[np.intp]) -> Codes | None:
    """Group codes of the column and level with the best split into balanced parts; None if all units are equal."""
    best, score = None, -1.0
    for column in range(trees.groups.shape[1]):
        for level in range(trees.groups.shape[2] - 1, -1, -1):
            codes = trees.groups[units, column, level]
            if codes.min() != codes.max():
                break
        else:
            continue
        largest = np.bincount(codes).max() / len(units)
        above = min(level + 1, trees.groups.shape[2] - 1)
        before = trees.loss[trees.offset[column, above] + trees.groups[units[0], column, above]]
        saved = before - trees.loss[trees.offset[column, level] + codes].mean()
        if (saved + 1e-12) * (1 - largest) > score:
            best, score = (column, level), (saved + 1e-12) * (1 - largest)
    return None if best is None else trees.groups[:, best[0], best[1]]
