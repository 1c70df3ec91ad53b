"""The distance that links most: every distance that is linear in its parameters, fitted by one solver.

A distance d = θ·φ(a − b) links a person correctly when her true row is nearer than every other row, that is when
θ·(φ(a − b') − φ(a − b)) > 0 for all other rows b'. The solver maximizes the number of people linked: a smooth margin
loss on the hardest competitors gives a start, a linear program that gives up on as few people as it can goes on from
there (:mod:`sfumato.attacks.record_linkage.learned_linkage.lp_relaxation`), then exact line searches count. Along a
line through θ each person is linked on one interval, so the best point of the line is where most intervals overlap.

Reference: Abril, D., Navarro-Arribas, G., Torra, V. (2012). Improving record linkage with supervised learning for
disclosure risk assessment. Information Fusion 13(4). doi:10.1016/j.inffus.2011.05.001
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.optimize import minimize, nnls

from sfumato.attacks.record_linkage.learned_linkage.distances import Form, matrix_of
from sfumato.attacks.record_linkage.learned_linkage.lp_relaxation import elastic
from sfumato.errors import OutOfTime
from sfumato.progress import SILENT, Progress, Tick

__all__ = ["Lesson", "LinkageProblem", "learn"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LinkageProblem:
    """People whose rows are known, and for each the feature differences to the rows that compete with the true one."""

    gaps: Floats
    """One row per competitor: φ(a − b') − φ(a − b)."""
    starts: Ints
    """Where each person's competitors start."""

    @property
    def people(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(
        cls,
        form: Form,
        known: Floats,
        rows: Floats,
        truth: Ints,
        *,
        pool: Ints | None = None,
    ) -> LinkageProblem:
        """``truth``: the place among ``rows`` (distinct points) of each person's own.

        All rows compete, or those of ``pool``, which has the places of a few near rows per person: the rows that are
        looked at when linking. Who is not in her own pool cannot be linked, and is left out.
        """
        found, starts = [np.empty((0, len(form.plain)))], [0]
        every = np.arange(len(rows))
        for number, (person, own) in enumerate(zip(known, truth, strict=True)):
            rivals = every if pool is None else pool[number]
            if pool is not None and own not in rivals:
                continue
            gap = rows[rivals[rivals != own]] - person
            found.append(form.features(gap) - form.features(rows[own] - person))
            starts.append(starts[-1] + len(gap))
        return cls(gaps=np.ascontiguousarray(np.vstack(found)), starts=np.array(starts, dtype=np.int64))

    def margins(self, theta: Floats) -> Floats:
        """Per person, how much nearer the true row is than the next."""
        if len(self.gaps) == 0:
            return np.full(self.people, np.inf)
        least: Floats = np.minimum.reduceat(self.gaps @ theta, self.starts[:-1])
        return least

    def linked(self, theta: Floats) -> int:
        return int((self.margins(theta) > 0).sum())

    def nearest(self, theta: Floats, count: int) -> Ints:
        """The places of each person's ``count`` nearest competitors under ``theta``."""
        return _smallest(self.gaps @ theta, self.starts, count)[0]

    def owner(self, places: Ints) -> Ints:
        """Whose competitors stand at these places."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def credit(self, form: Form, theta: Floats) -> Floats:
        """Per column, its share in what keeps the nearest wrong row away from the people linked under ``theta``.

        The margin of a linked person is a sum over parameters, and so over columns; shares add up to one. A column that
        pulls wrong rows nearer has a share of nothing.
        """
        if len(self.gaps) == 0:
            return np.full(form.width, 1 / form.width)
        score = self.gaps @ theta
        worst = _argmin(score, self.starts)
        held = worst[score[worst] > 0]
        relative = self.gaps[held] * theta / score[held, None]
        parts = np.maximum(np.median(relative @ form.shares, axis=0) if len(held) else np.zeros(form.width), 0.0)
        found: Floats = parts / parts.sum() if parts.sum() > 0 else np.full(form.width, 1 / form.width)
        return found

    def hardest(self, theta: Floats, count: int) -> LinkageProblem:
        """Only each person's ``count`` nearest competitors under ``theta``."""
        kept, starts = _smallest(self.gaps @ theta, self.starts, count)
        return replace(self, gaps=self.gaps[kept], starts=starts)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """Parameters, and how many of the people they were learned from they link."""

    theta: Floats
    linked: int


def learn(
    form: Form,
    problem: LinkageProblem,
    draw: np.random.Generator,
    *,
    starts: tuple[Floats, ...] = (),
    patience: int | None = None,
    progress: Progress = SILENT,
) -> Lesson:
    """Maximize the number of people linked; never worse than any of the ``starts`` or the plain distance.

    After ``patience`` line searches without a gain it stops; when left out, the more the family has to offer the more.
    When time is up, it is the best of the stages that were done.
    """
    if len(problem.gaps) == 0:
        return Lesson(theta=starts[0] if starts else form.plain, linked=problem.people)
    best = max(((start, problem.linked(start)) for start in (form.plain, *starts)), key=lambda pair: pair[1])
    candidates = [start / np.linalg.norm(start) for start in (form.plain, *starts)]
    constraints, generators = form.constraints, form.generators
    patience = 60 + 4 * len(generators) if patience is None else patience
    found = Lesson(theta=best[0], linked=best[1])
    with suppress(OutOfTime), progress.task("learning a distance", None) as tick:
        for start in candidates:
            tick(0)
            smooth = _descend(generators, problem, start)
            if (constraints @ smooth >= -1e-12).all() and _definite(form, smooth):
                linked = problem.linked(smooth)
                if linked >= found.linked:
                    found = Lesson(theta=smooth, linked=linked)
        found = _climb(form, problem, found.theta / np.linalg.norm(found.theta), patience, draw, tick)
        for near in (False, True) if not form.definite else ():
            if found.linked < problem.people:
                theta = elastic(form, problem, found.theta, near=near, progress=progress)
                found = max(found, _climb(form, problem, theta, patience, draw, tick), key=lambda lesson: lesson.linked)
    return found


def _climb(
    form: Form, problem: LinkageProblem, theta: Floats, patience: int, draw: np.random.Generator, tick: Tick
) -> Lesson:
    """Line searches from ``theta`` on, each exact, until none of the last ``patience`` brought a gain."""
    constraints, generators = form.constraints, form.generators
    linked = problem.linked(theta)
    idle = 0
    while idle < patience and linked < problem.people:
        # Few competitors decide; a move that looks good among them is counted again among all before it is made.
        tick(0)
        part = problem.hardest(theta, 40)
        score = part.gaps @ theta
        sideways = False
        for direction in _directions(part, theta, generators, draw):
            idle += 1
            low, high = _range(form, constraints, theta, direction)
            if not low < high:
                continue
            step, count = _line(score, part.gaps @ direction, part.starts, low, high)
            if not np.isfinite(step) or count < linked or (count == linked and sideways):
                continue
            moved = theta + step * direction
            size = np.linalg.norm(moved)
            reached = problem.linked(moved / size) if size > 0 else -1
            if reached > linked:
                idle = 0
            if reached > linked or (reached == linked and not sideways):
                theta, linked, sideways = moved / size, reached, reached == linked
                score = part.gaps @ theta
    return Lesson(theta=theta, linked=linked)


def _descend(generators: Floats, problem: LinkageProblem, start: Floats) -> Floats:
    """A smooth loss on softened margins, sharper and sharper; scale does not matter, so the norm is divided out.

    Where the family has generators, their shares are what is fitted, and kept from being negative.
    """
    theta = start
    share = nnls(generators.T, start)[0] if len(generators) else start
    for sharpness in (3.0, 1.0, 0.3):
        part = problem.hardest(theta, 25)
        if len(generators):
            part = replace(part, gaps=part.gaps @ generators.T)
        share = _fitted(part, share / np.linalg.norm(share), sharpness, bounded=len(generators) > 0)
        theta = share @ generators if len(generators) else share
    found: Floats = theta / np.linalg.norm(theta)
    return found


def _fitted(part: LinkageProblem, start: Floats, sharpness: float, *, bounded: bool) -> Floats:
    spread = np.median(np.abs(part.margins(start)))
    scale = sharpness * (spread if spread > 0 else 1.0)

    def loss(point: Floats) -> tuple[float, Floats]:
        size = float(np.linalg.norm(point)) + 1e-300
        unit = point / size
        value, weight = _softened(part.gaps @ unit / scale, part.starts)
        slope = (weight @ part.gaps) / scale
        return value, (slope - unit * (unit @ slope)) / size

    bounds = [(0.0, None)] * len(start) if bounded else None
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}).x
    return found if np.isfinite(found).all() and np.linalg.norm(found) > 0 else start


@njit(cache=True)
def _softened(score: Floats, starts: Ints) -> tuple[float, Floats]:  # pragma: no cover - compiled
    """Sum of log(1 + sum over competitors of exp(-score)), and its derivative by each score."""
    weight = np.empty(len(score))
    total = 0.0
    for person in range(len(starts) - 1):
        start, stop = starts[person], starts[person + 1]
        lowest = 0.0
        for place in range(start, stop):
            lowest = min(lowest, score[place])
        mass = np.exp(lowest)
        for place in range(start, stop):
            weight[place] = np.exp(lowest - score[place])
            mass += weight[place]
        value = np.log(mass) - lowest
        # A loss that saturates: people who cannot be linked must not outvote those who can.
        total += value / (1 + value)
        slope = 1 / ((1 + value) * (1 + value))
        for place in range(start, stop):
            weight[place] *= -slope / mass
    return total, weight


def _directions(problem: LinkageProblem, theta: Floats, generators: Floats, draw: np.random.Generator) -> list[Floats]:
    score = problem.gaps @ theta
    worst = _argmin(score, problem.starts)
    margin = score[worst]
    found = []
    for share in (0.02, 0.1, 0.3):
        lost = margin[margin <= 0]
        if len(lost) == 0:
            break
        reach = np.quantile(-lost, share) + 1e-12
        weight = np.exp(-np.abs(margin) / reach)
        found.append(weight @ problem.gaps[worst])
    # One person at a time, those nearest to being linked first.
    near = np.argsort(np.where(margin <= 0, -margin, np.inf))[:4]
    found.extend(problem.gaps[worst[person]] for person in near if margin[person] <= 0)
    axes = draw.permutation(len(theta))[:4]
    found.extend(np.eye(len(theta))[axis] for axis in axes)
    found.extend(draw.normal(size=(3, len(theta))) * (np.abs(theta) + 0.05))
    if len(generators) > len(theta):
        # Steps that the constraints of a measure leave open where those above are blocked at once.
        some = draw.permutation(len(generators))[:8]
        found.extend(generators[some])
        found.extend(generators[some[:4]] - generators[np.roll(some, 1)[:4]])
        found.append((draw.exponential(size=len(some)) * draw.choice([-1.0, 1.0], len(some))) @ generators[some])
        pull = generators @ (np.exp(-np.abs(margin) / (np.median(np.abs(margin)) + 1e-12)) @ problem.gaps[worst])
        found.append(np.maximum(pull, 0.0) @ generators)
    return [direction / np.linalg.norm(direction) for direction in found if np.linalg.norm(direction) > 0]


@njit(cache=True)
def _smallest(score: Floats, starts: Ints, count: int) -> tuple[Ints, Ints]:  # pragma: no cover - compiled
    kept = np.empty(len(score), dtype=np.int64)
    edges = np.zeros(len(starts), dtype=np.int64)
    total = 0
    for person in range(len(starts) - 1):
        part = score[starts[person] : starts[person + 1]]
        limit = np.partition(part, count - 1)[count - 1] if len(part) > count else np.inf
        taken = 0
        for place in range(len(part)):
            if part[place] <= limit and taken < count:
                kept[total] = starts[person] + place
                total += 1
                taken += 1
        edges[person + 1] = total
    return kept[:total].copy(), edges


@njit(cache=True)
def _argmin(score: Floats, starts: Ints) -> Ints:  # pragma: no cover - compiled
    found = np.empty(len(starts) - 1, dtype=np.int64)
    for person in range(len(starts) - 1):
        found[person] = starts[person]
        for place in range(starts[person], starts[person + 1]):
            if score[place] < score[found[person]]:
                found[person] = place
    return found


def _definite(form: Form, theta: Floats) -> bool:
    return not form.definite or bool(np.linalg.eigvalsh(matrix_of(theta, form.width))[0] >= -1e-9)


def _range(form: Form, constraints: Floats, theta: Floats, direction: Floats) -> tuple[float, float]:
    """How far one may go along a direction, back and forth, without leaving the family."""
    low, high = -np.inf, np.inf
    if len(constraints):
        here, there = np.maximum(constraints @ theta, 0.0), constraints @ direction
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            bound = -here / there
        low = max(low, float(np.max(bound[there > 1e-15], initial=-np.inf)))
        high = min(high, float(np.min(bound[there < -1e-15], initial=np.inf)))
    if form.definite:
        base = matrix_of(theta, form.width) + 1e-12 * np.eye(form.width)
        values, vectors = np.linalg.eigh(base)
        root = vectors / np.sqrt(np.maximum(values, 1e-12))
        change = np.linalg.eigvalsh(root.T @ matrix_of(direction, form.width) @ root)
        if change[-1] > 0:
            low = max(low, -1 / change[-1])
        if change[0] < 0:
            high = min(high, -1 / change[0])
    return low, high


@njit(cache=True)
def _line(
    score: Floats, slope: Floats, starts: Ints, low: float, high: float
) -> tuple[float, int]:  # pragma: no cover - compiled
    """The step with most people linked: each is linked on one interval; sweep over their ends."""
    people = len(starts) - 1
    first, last = np.empty(people), np.empty(people)
    count = 0
    for person in range(people):
        left, right = low, high
        for place in range(starts[person], starts[person + 1]):
            value, rise = score[place], slope[place]
            if rise > 0.0:
                left = max(left, -value / rise)
            elif rise < 0.0:
                right = min(right, -value / rise)
            elif value <= 0.0:
                right = -np.inf
            if left >= right:
                break
        if left < right:
            first[count], last[count] = left, right
            count += 1
    if count == 0:
        return np.nan, 0
    opening, closing = np.sort(first[:count]), np.sort(last[:count])
    best, best_width, step = 0, -1.0, np.nan
    closed = 0
    for opened in range(count):
        while closing[closed] <= opening[opened]:
            closed += 1
        inside = opened + 1 - closed
        following = opening[opened + 1] if opened + 1 < count else np.inf
        end = min(closing[closed], following)
        width = end - opening[opened]
        if inside > best or (inside == best and width > best_width):
            begin = opening[opened]
            if begin == -np.inf and end == np.inf:
                point = 0.0
            elif begin == -np.inf:
                point = end - 1.0
            elif end == np.inf:
                point = begin + 1.0
            else:
                point = 0.5 * (begin + end)
            best, best_width, step = inside, width, point
    return step, best
