"""Heuristic lattice search (top-down, then genetic) with a lower bound on the optimum."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from sfumato.masking.search.lattice.bound import lower_bound
from sfumato.masking.search.lattice.level_range import LevelRange, SearchResult
from sfumato.masking.search.lattice.optimal import floors
from sfumato.masking.search.lattice.optimal import search as prove
from sfumato.masking.search.lattice.space import LatticeSpace, Node
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

Levels = npt.NDArray[np.int64]

_SMALL = 200_000
"""Lattices up to this size are searched exactly."""
_POPULATION = 32
_TRIES = 20
"""Mutations of a child until it is a combination that was not evaluated before."""
_STALLED, _PATIENCE = 60, 240
"""Generations without a better combination until the population starts again around the best one, until the end."""
_FAR = 1e12
"""Seconds that no time limit reaches."""


def search(
    space: LatticeSpace,
    within: LevelRange,
    *,
    seconds: float,
    rng: Rng,
    evaluations: int | None = None,
    progress: Progress = SILENT,
    clock: Callable[[], float] = time.monotonic,
) -> SearchResult:
    """A combination of levels that meets the models, improved until nothing better is found, and a lower bound.

    ``seconds`` is the longest it takes; ``evaluations`` ends the search after so much work instead, wherever it runs.

    First top-down: from the coarsest table, take the best step down while the models hold. Then a genetic search: good
    combinations are crossed and mutated by a level, and each new best one is improved by local search; a population
    that finds nothing starts again around the best one. The lower bound is computed at the same time, in a second
    thread. An interrupt returns the best so far.
    """
    if within.nodes <= _SMALL:
        return prove(space, within, seconds=seconds, evaluations=evaluations, progress=progress, clock=clock)
    start = clock()
    seconds = min(seconds, _FAR / 2)  # the clock of the bound jumps by more than that when the search has ended
    hunt = _HeuristicSearch(space, within, stop=start + seconds, evaluations=evaluations, clock=clock)
    bottom = space.evaluate(within.low)
    ended = threading.Event()

    def other_clock() -> float:
        return clock() + (_FAR if ended.is_set() else 0.0)

    # the compiled kernels run without the interpreter's lock, so the bound takes a second core
    with progress.task("search", seconds) as tick, ThreadPoolExecutor(1) as pool:
        bounding = pool.submit(
            lower_bound, space, within, bottom, seconds=seconds, rng=rng.child("bound"), clock=other_clock
        )
        try:
            hunt.descend(np.array(within.high))
            tick(clock() - start)
            hunt.breed(rng.generator, tick)
            ended.set()
        except KeyboardInterrupt:
            ended.set()
        bound = bounding.result()
    best = hunt.best
    proven = (best is not None and best.score <= bound) or (best is None and bound == float("inf"))
    return SearchResult(
        best=best,
        bound=min(bound, best.score) if best is not None else bound,
        optimal=proven,
        evaluated=space.evaluated,
        nodes=within.nodes,
    )


class _HeuristicSearch:
    def __init__(
        self,
        space: LatticeSpace,
        within: LevelRange,
        *,
        stop: float,
        evaluations: int | None,
        clock: Callable[[], float],
    ) -> None:
        self.space, self.stop, self.clock = space, stop, clock
        self.left = float("inf") if evaluations is None else evaluations
        self.low, self.high = np.array(within.low), np.array(within.high)
        self.floors = floors(space, within)
        self.best: Node | None = None
        self.seen: dict[bytes, float] = {}

    @property
    def late(self) -> bool:
        return self.left <= 0 or self.clock() > self.stop

    def evaluate(self, at: Levels) -> float:
        """The score, or infinity if the models fail."""
        self.left -= 1  # of combinations seen before too, or a search that finds no new one would not end
        name = at.tobytes()
        if name not in self.seen:
            node = self.space.evaluate(at)
            self.seen[name] = node.score
            if node.meets and (self.best is None or node.score < self.best.score):
                self.best = node
        return self.seen[name]

    def descend(self, at: Levels) -> Levels:
        """Local search: steps of one level in one column, and exchanges between two columns."""
        score = self.evaluate(at)
        while not self.late:
            step = self._better(at, score, self._single(at)) or self._better(at, score, self._exchange(at))
            if step is None:
                break
            at, score = step
        return at

    def _better(self, at: Levels, score: float, moves: list[Levels]) -> tuple[Levels, float] | None:
        best: tuple[Levels, float] | None = None
        for move in moves:
            if self.late:
                break
            value = self.evaluate(move)
            if value < score and (best is None or value < best[1]):
                best = (move, value)
        return best

    def _single(self, at: Levels) -> list[Levels]:
        moves = []
        for column in range(len(at)):
            for change in (-1, 1):
                if self.low[column] <= at[column] + change <= self.high[column]:
                    move = at.copy()
                    move[column] += change
                    moves.append(move)
        return moves

    def _exchange(self, at: Levels) -> list[Levels]:
        """Exchanges: one column a level down and another a level up, if the column losses decrease."""

        def loss(column: int, level: int) -> float:
            return float(self.floors[column][level - self.low[column]])

        moves = []
        for down in range(len(at)):
            for up in range(len(at)):
                if down == up or at[down] <= self.low[down] or at[up] >= self.high[up]:
                    continue
                gain = loss(down, at[down]) - loss(down, at[down] - 1)
                if gain > loss(up, at[up] + 1) - loss(up, at[up]):
                    move = at.copy()
                    move[down] -= 1
                    move[up] += 1
                    moves.append(move)
        return moves

    def breed(self, generator: np.random.Generator, tick: Callable[[float], None]) -> None:
        """Genetic search until the time limit, or until many generations in a row are no better."""
        first = np.array(self.best.levels) if self.best is not None else self.high
        people = [first, self.high]
        while len(people) < _POPULATION:
            people.append(np.minimum(first + generator.integers(0, 2, len(first)), self.high))
        last, idle = self.clock(), 0
        while not self.late and idle < _PATIENCE:
            before = self.best.score if self.best is not None else float("inf")
            people.sort(key=self.evaluate)
            people = people[: _POPULATION // 2]
            if idle % _STALLED == _STALLED - 1:
                # all of them are alike by now: around the best one again, farther away each time
                steps = 2 * (idle // _STALLED + 1)
                people = [people[0], *(self._around(people[0], steps, generator) for _ in people[1:])]
            while len(people) < _POPULATION and not self.late:
                one, other = generator.integers(0, _POPULATION // 2, 2)
                child = np.where(generator.random(len(first)) < 0.5, people[one], people[other])
                for _ in range(_TRIES):
                    change = generator.integers(-1, 2, len(first)) * (generator.random(len(first)) < 2 / len(first))
                    child = np.clip(child + change, self.low, self.high)
                    if child.tobytes() not in self.seen:
                        break
                self.evaluate(child)
                people.append(child)
            if self.best is not None and self.best.score < before:
                people[-1] = self.descend(np.array(self.best.levels))
                idle = -1
            idle += 1
            tick(self.clock() - last)
            last = self.clock()

    def _around(self, at: Levels, steps: int, generator: np.random.Generator) -> Levels:
        """Some columns at any of their levels."""
        columns = generator.integers(0, len(at), steps)
        there = at.copy()
        there[columns] = generator.integers(self.low[columns], self.high[columns] + 1)
        return there
