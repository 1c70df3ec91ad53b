"""Exact lattice search by branch and bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.masking.model import Monotonicity
from sfumato.masking.search.lattice import kernels
from sfumato.masking.search.lattice.level_range import LevelRange, SearchResult
from sfumato.masking.search.lattice.space import LatticeSpace, Node
from sfumato.progress import SILENT, Progress

LARGEST = 20_000_000
"""Maximum number of combinations for exact search."""


def floors(space: LatticeSpace, within: LevelRange, extra: Floats | None = None) -> list[Floats]:
    """By column and level: a lower bound of the column score, with ``extra`` loss for suppressed rows."""
    cells = space.base if extra is None else space.base + extra
    parts = space.metric.columns(cells.T, space.losses).T
    return [parts[i, low : high + 1] for i, (low, high) in enumerate(zip(within.low, within.high, strict=True))]


def outer_sum(parts: Sequence[Floats]) -> Floats:
    """The sum of one entry per column, for all combinations of levels."""
    total = np.zeros(())
    for part in parts:
        total = total[..., None] + part
    return total


def search(
    space: LatticeSpace,
    within: LevelRange,
    *,
    seconds: float | None = None,
    evaluations: int | None = None,
    progress: Progress = SILENT,
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """The combination of levels with the lowest score that meets all models.

    Combinations are visited by increasing lower bound. Before one is evaluated, the search climbs from it as far as a
    better score is possible and evaluates there: if that fails, everything below is pruned. An interrupt (Ctrl-C,
    ``seconds``, ``evaluations``) returns the best so far and a bound.
    """
    walk = _ExactSearch(space, within)
    stop = None if seconds is None else clock() + seconds
    optimal = True
    try:
        with progress.task("search", within.nodes) as tick:
            done = 0
            for number, node in walk:
                walk.visit(node)
                if number - done >= 256:
                    tick(number - done)
                    done = number
                late = stop is not None and clock() > stop
                if late or (evaluations is not None and space.evaluated >= evaluations):
                    optimal = False
                    break
            tick(within.nodes - done)
    except KeyboardInterrupt:
        optimal = False
    best, evaluated = walk.best, space.evaluated
    bound = (best.score if best is not None else float("inf")) if optimal else walk.bound()
    return SearchResult(
        best=finest(space, within, best) if optimal and best is not None else best,
        bound=bound,
        optimal=optimal or (best is not None and best.score <= bound),
        evaluated=evaluated,
        nodes=within.nodes,
    )


def finest(space: LatticeSpace, within: LevelRange, best: Node) -> Node:
    """Finer levels with the same score: a column with one value need not become ``*``."""
    for column, low in enumerate(within.low):
        while best.levels[column] > low:
            finer = space.evaluate([level - (i == column) for i, level in enumerate(best.levels)])
            if not finer.meets or finer.score > best.score:
                break
            best = finer
    return best


class _ExactSearch:
    """State of a search: a lower bound for every open combination."""

    def __init__(self, space: LatticeSpace, within: LevelRange) -> None:
        self.space, self.within = space, within
        self.low = np.array(within.low)
        self.best: Node | None = None
        self.best_score = float("inf")
        bottom = space.evaluate(within.low)
        self.sums = outer_sum(floors(space, within))
        self.floor = self._above(self.sums, bottom)
        # metrics over class sizes favour fine tables, so failures are found half-way up rather than at the top
        self._share = 0.5 if space.counts_classes and space.limit else 1.0
        self.open: Floats = self.floor.copy()
        self.order = np.argsort(self.floor, axis=None, kind="stable")
        self.flat = self.open.reshape(-1)
        self._shape = np.array(self.open.shape)
        self._strides = np.array(self.open.strides) // self.open.itemsize
        self._learn(np.zeros_like(self.low), bottom)
        self._learn(np.array(self.open.shape) - 1, space.evaluate(within.high))

    def __iter__(self) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
        """Iterate over open combinations by increasing bound, with their position; one is repeated until it is
        closed."""
        number = 0
        while True:
            number = self.space.skip(
                self.flat, self.order, number, self.best_score, self._shape, self._strides, self.low
            )
            number = int(kernels.next_open(self.flat, self.order, number, self.best_score))
            if number == len(self.order):
                return
            yield number, self.order[number] // self._strides % self._shape

    def bound(self) -> float:
        left = float(self.flat.min(initial=np.inf))
        return min(left, self.best_score)

    def visit(self, at: npt.NDArray[np.int64]) -> None:
        node = np.empty_like(at)
        kernels.climb(self.flat, self._shape, self._strides, at, self.best_score, self._share, node)
        explain = kernels.any_open(self.flat, self._strides, node, self.best_score)
        self._learn(node, self.space.evaluate(node + self.low, explain=explain))

    def _learn(self, at: npt.NDArray[np.int64], node: Node) -> None:
        """Update the bounds of a combination and of all finer and coarser ones from its evaluation."""
        space = self.space
        if node.meets and node.score < self.best_score:
            self.best, self.best_score = node, node.score
        here = tuple(at.tolist())
        if node.hopeless:
            kernels.close_box(self.flat, self._strides, np.zeros_like(at), at)
        elif node.extra is not None:
            part = [p[: i + 1] for p, i in zip(floors(space, self.within, node.extra), here, strict=True)]
            below = tuple(slice(0, i + 1) for i in here)
            coarser = replace(node.shape, suppressed=node.certain)
            bound = space.metric.below(outer_sum(part), space.losses, coarser, least=space.least)
            np.maximum(self.open[below], bound, out=self.open[below])
        if node.settled and space.metric.grows:
            kernels.close_box(self.flat, self._strides, at, self._shape - 1)
        elif space.counts_classes:
            above = tuple(slice(i, None) for i in here)
            bound = self._above(self.sums[above], node)
            np.maximum(self.open[above], bound, out=self.open[above])
        self.open[here] = np.inf

    def _above(self, sums: Floats, finer: Node) -> Floats:
        space = self.space
        stay = space.monotonicity is Monotonicity.ANY
        return space.metric.above(sums, space.losses, finer.shape, least=space.least, stay=stay)
