"""Generalized least squares for noisy tables of a geographic hierarchy, in closed form.

Noisy marginals of one node decompose into residuals of subsets of columns, which are orthogonal (see
:mod:`sfumato.synthesis.residuals`). For each subset, the residuals of all nodes form a tree in which children add up to
their parent, so that one pass upwards and one downwards give the best linear unbiased estimate (Hay, Rastogi, Miklau,
Suciu 2010, doi:10.14778/1920841.1920970; for the census: arXiv:2603.10099).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np

from sfumato.arrays import Array, Floats, Ints

Columns = tuple[int, ...]
Effects = dict[Columns, Floats]
"""By subset of columns: the residuals of all nodes of a level, nodes along the first axis."""


class LevelResiduals:
    """Pooled residuals of the noisy marginals of all nodes of one level."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.sums: Effects = {}
        self.precision: dict[Columns, float] = {}

    def add(self, columns: Columns, noisy: Floats, *, variance: float) -> None:
        """Add a noisy marginal of every node."""
        for size in range(len(columns) + 1):
            for part in combinations(columns, size):
                away = tuple(1 + axis for axis, column in enumerate(columns) if column not in part)
                effect = np.asarray(noisy.sum(axis=away) if away else noisy, dtype=np.float64)
                for axis in range(1, effect.ndim):
                    effect = effect - effect.mean(axis=axis, keepdims=True)
                weight = 1 / (variance * prod(noisy.shape[axis] for axis in away))
                self.sums[part] = self.sums.get(part, 0.0) + effect * weight
                self.precision[part] = self.precision.get(part, 0.0) + weight


def tree_estimate(levels: Sequence[LevelResiduals], parents: Sequence[Ints]) -> list[Effects]:
    """The residuals of every level, from the root down, that fit all noisy tables best and add up.

    ``parents[i]`` holds for each node of level i + 1 the number of its parent in level i.
    """
    estimates: list[Effects] = [{} for _ in levels]
    for part in sorted({part for level in levels for part in level.precision}):
        up, variances = _upwards(levels, parents, part)
        down = up[0]
        estimates[0][part] = down
        for number, parent in enumerate(parents):
            nodes = len(down)
            spread = np.isinf(variances[number + 1]).astype(np.float64)
            weights = np.where(np.bincount(parent, spread, nodes)[parent] > 0, spread, variances[number + 1])
            weights = weights / np.maximum(np.bincount(parent, weights, nodes), 1e-300)[parent]
            gap = (down - sum_children(up[number + 1], parent, nodes))[parent]
            down = up[number + 1] + gap * _wide(weights, gap.ndim)
            estimates[number + 1][part] = down
    return estimates


def _upwards(
    levels: Sequence[LevelResiduals], parents: Sequence[Ints], part: Columns
) -> tuple[list[Floats], list[Floats]]:
    """Estimates from a node and everything below it, with their variances; infinite if nothing was measured."""
    size = [n for c, n in enumerate(levels[0].shape) if c in part]
    up: list[Floats] = [np.empty(0)] * len(levels)
    variances: list[Floats] = [np.empty(0)] * len(levels)
    for number in range(len(levels) - 1, -1, -1):
        nodes = len(parents[number - 1]) if number else 1
        precision = np.full(nodes, levels[number].precision.get(part, 0.0))
        weighted = np.broadcast_to(levels[number].sums.get(part, np.zeros(())), (nodes, *size)).astype(np.float64)
        if number + 1 < len(levels):
            below = np.bincount(parents[number], variances[number + 1], nodes)
            gain = np.where(np.isfinite(below) & (below > 0), 1 / np.maximum(below, 1e-300), 0.0)
            weighted = weighted + sum_children(up[number + 1], parents[number], nodes) * _wide(gain, weighted.ndim)
            precision = precision + gain
        known = precision > 0
        variances[number] = np.where(known, 1 / np.where(known, precision, 1), np.inf)
        up[number] = weighted * _wide(np.where(known, variances[number], 0.0), weighted.ndim)
    return up, variances


def sum_children(values: Array, parent: Ints, nodes: int) -> Array:
    """The sums of the lines of each parent, zero for a parent without lines."""
    order = np.argsort(parent, kind="stable")
    ordered = values if (np.diff(parent) >= 0).all() else values[order]
    first = np.flatnonzero(np.diff(parent[order], prepend=-1))  # an empty segment would be given the line behind it
    sums = np.zeros((nodes, *values.shape[1:]), dtype=values.dtype)
    sums[parent[order[first]]] = np.add.reduceat(ordered, first, axis=0)
    return sums


def _wide(values: Floats, dimensions: int) -> Floats:
    return values.reshape(-1, *[1] * (dimensions - 1))


def marginal_of(effects: Mapping[Columns, Floats], columns: Columns, shape: Sequence[int], nodes: Ints) -> Floats:
    """The estimated marginal of some nodes, one axis per column after that of the nodes."""
    estimate = np.zeros((len(nodes), *(shape[column] for column in columns)))
    for part, effect in effects.items():
        if set(part) <= set(columns):
            wide = [shape[column] if column in part else 1 for column in columns]
            spread = prod(shape[column] for column in columns if column not in part)
            estimate += effect[nodes].reshape(len(nodes), *wide) / spread
    return estimate
