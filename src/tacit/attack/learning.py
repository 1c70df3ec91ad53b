"""The distance that links most: every distance that is linear in its parameters, fitted by one solver.

A distance d = θ·φ(a − b) links a person correctly when her true row is nearer than every other row, that is when
θ·(φ(a − b') − φ(a − b)) > 0 for all other rows b'. The solver maximizes the number of people linked: a smooth margin
loss on the hardest competitors gives a start, then exact line searches count. Along a line through θ each person is
linked on one interval, so the best point of the line is where most intervals overlap.

Reference: Abril, D., Navarro-Arribas, G., Torra, V. (2012). Improving record linkage with supervised learning for
disclosure risk assessment. Information Fusion 13(4). doi:10.1016/j.inffus.2011.05.001
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.optimize import minimize

__all__ = ["Form", "Lesson", "Problem", "learn", "matrix_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Shape = Literal["weighted", "owa", "choquet", "bilinear"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """A family of distances over ``width`` columns."""

    shape: Shape
    width: int
    additive: int | None = None
    """For the Choquet integral: 2 keeps only interactions of two columns."""
    definite: bool = False
    """For the bilinear form: keep the matrix positive semi-definite, so that distances are never negative."""

    def features(self, gap: Floats) -> Floats:
        """φ of differences, along the last axis."""
        square = gap * gap
        match self.shape:
            case "weighted":
                return square
            case "owa":
                return -np.sort(-square, axis=-1)
            case "bilinear":
                left, right = np.triu_indices(self.width)
                return gap[..., left] * gap[..., right] * np.where(left == right, 1.0, 2.0)
            case "choquet" if self.additive == 2:
                left, right = np.triu_indices(self.width, 1)
                return np.concatenate([square, np.minimum(square[..., left], square[..., right])], axis=-1)
            case "choquet":
                order = np.argsort(square, axis=-1)
                rising = np.take_along_axis(square, order, axis=-1)
                steps = np.diff(rising, axis=-1, prepend=0.0)
                # The columns from place i on, as a set: the bits of those not yet passed.
                bits = np.cumsum((1 << order)[..., ::-1], axis=-1)[..., ::-1]
                found = np.zeros((*gap.shape[:-1], (1 << self.width) - 1))
                np.put_along_axis(found, bits - 1, steps, axis=-1)
                return found
            case _:  # pragma: no cover - a new shape needs its features here
                raise NotImplementedError(self.shape)

    @property
    def plain(self) -> Floats:
        """The parameters of the plain (arithmetic mean) distance."""
        match self.shape:
            case "weighted" | "owa":
                return np.full(self.width, 1 / self.width)
            case "bilinear":
                left, right = np.triu_indices(self.width)
                return np.where(left == right, 1 / self.width, 0.0)
            case "choquet" if self.additive == 2:
                return np.concatenate(
                    [np.full(self.width, 1 / self.width), np.zeros(self.width * (self.width - 1) // 2)]
                )
            case _:
                sets = np.arange(1, 1 << self.width)
                return np.bitwise_count(sets) / self.width

    def from_weights(self, weights: Floats) -> Floats:
        """The parameters under which this form is the weighted mean with these weights (not for OWA)."""
        match self.shape:
            case "weighted":
                return weights.copy()
            case "bilinear":
                left, right = np.triu_indices(self.width)
                return np.where(left == right, weights[left], 0.0)
            case "choquet" if self.additive == 2:
                return np.concatenate([weights, np.zeros(self.width * (self.width - 1) // 2)])
            case "choquet":
                sets = np.arange(1, 1 << self.width)
                return ((sets[:, None] >> np.arange(self.width)) & 1) @ weights
            case _:
                return self.plain

    @property
    def constraints(self) -> Floats:
        """Rows g with g·θ ≥ 0: weights are not negative, measures grow with the set."""
        match self.shape:
            case "weighted" | "owa":
                return np.eye(self.width)
            case "bilinear":
                return np.empty((0, self.width * (self.width + 1) // 2))
            case "choquet" if self.additive == 2:
                return self._two_additive()
            case _:
                return self._monotone()

    def _monotone(self) -> Floats:
        rows = []
        count = (1 << self.width) - 1
        for subset in range(1, count + 1):
            for column in range(self.width):
                if subset >> column & 1:
                    row = np.zeros(count)
                    row[subset - 1] = 1.0
                    if subset != 1 << column:
                        row[(subset ^ (1 << column)) - 1] = -1.0
                    rows.append(row)
        return np.array(rows)

    def _two_additive(self) -> Floats:
        couples = list(combinations(range(self.width), 2))
        rows = []
        for column in range(self.width):
            others = [other for other in range(self.width) if other != column]
            for size in range(len(others) + 1):
                for chosen in combinations(others, size):
                    row = np.zeros(self.width + len(couples))
                    row[column] = 1.0
                    for other in chosen:
                        row[self.width + couples.index((min(column, other), max(column, other)))] = 1.0
                    rows.append(row)
        return np.array(rows)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """People whose rows are known, and for each the feature differences to the rows that compete with the true one."""

    gaps: Floats
    """One row per competitor: φ(a − b') − φ(a − b)."""
    starts: Ints
    """Where each person's competitors start."""

    @property
    def people(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of(cls, form: Form, known: Floats, rows: Floats, truth: Ints, keep: int = 400) -> Problem:
        """``truth``: the place among ``rows`` (distinct points) of each person's own; the ``keep`` nearest compete."""
        found, starts = [], [0]
        for person, own in zip(known, truth, strict=True):
            gap = rows - person
            if len(rows) > keep + 1:
                near = np.argpartition((gap * gap).sum(axis=1), keep)[: keep + 1]
                gap = gap[near[near != own]]
            else:
                gap = np.delete(gap, own, axis=0)
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

    def hardest(self, theta: Floats, count: int) -> Problem:
        """Only each person's ``count`` nearest competitors under ``theta``."""
        kept, starts = _smallest(self.gaps @ theta, self.starts, count)
        return replace(self, gaps=self.gaps[kept], starts=starts)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """Parameters, and how many of the people they were learned from they link."""

    theta: Floats
    linked: int


def learn(
    form: Form, problem: Problem, draw: np.random.Generator, *, starts: tuple[Floats, ...] = (), patience: int = 60
) -> Lesson:
    """Maximize the number of people linked; never worse than any of the ``starts`` or the plain distance."""
    best = max(((start, problem.linked(start)) for start in (form.plain, *starts)), key=lambda pair: pair[1])
    candidates = [start / np.linalg.norm(start) for start in (form.plain, *starts)]
    constraints = form.constraints
    for start in candidates:
        smooth = _descend(form, problem, start)
        if (constraints @ smooth >= -1e-12).all() and _definite(form, smooth):
            linked = problem.linked(smooth)
            if linked >= best[1]:
                best = (smooth, linked)
    theta, linked = best[0] / np.linalg.norm(best[0]), best[1]
    idle = 0
    while idle < patience and linked < problem.people:
        # Few competitors decide; a move that looks good among them is counted again among all before it is made.
        part = problem.hardest(theta, 40)
        score = part.gaps @ theta
        sideways = False
        for direction in _directions(part, theta, draw):
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


def _descend(form: Form, problem: Problem, start: Floats) -> Floats:
    """A smooth loss on softened margins, sharper and sharper; scale does not matter, so the norm is divided out."""
    if form.shape == "choquet" and form.additive is None:
        # In its Möbius coordinates, kept from being negative, a measure is monotone without further constraints.
        sets = np.arange(1, 1 << form.width)
        inside = ((sets[:, None] & sets) == sets).astype(np.float64)
        point = np.maximum(np.linalg.solve(inside, start), 0.0)
        found: Floats = inside @ _lower(replace(problem, gaps=problem.gaps @ inside), point, bounded=True)
        return found
    return _lower(problem, start, bounded=form.shape != "bilinear")


def _lower(problem: Problem, start: Floats, *, bounded: bool) -> Floats:
    theta = start / np.linalg.norm(start)
    bounds = [(0.0, None)] * len(theta) if bounded else None
    for sharpness in (3.0, 1.0, 0.3):
        part = problem.hardest(theta, 25)
        spread = np.median(np.abs(part.margins(theta)))
        scale = sharpness * (spread if spread > 0 else 1.0)

        def loss(point: Floats, part: Problem = part, scale: float = scale) -> tuple[float, Floats]:
            size = float(np.linalg.norm(point)) + 1e-300
            score = part.gaps @ (point / size) / scale
            value, weight = _softened(score, part.starts)
            slope = (weight @ part.gaps) / scale
            unit = point / size
            return value, (slope - unit * (unit @ slope)) / size

        fit = minimize(loss, theta, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60})
        if np.isfinite(fit.x).all() and np.linalg.norm(fit.x) > 0:
            theta = fit.x / np.linalg.norm(fit.x)
    return theta


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


def _directions(problem: Problem, theta: Floats, draw: np.random.Generator) -> list[Floats]:
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


def matrix_of(theta: Floats, width: int) -> Floats:
    """The symmetric matrix of a bilinear form's parameters."""
    found = np.zeros((width, width))
    left, right = np.triu_indices(width)
    found[left, right] = theta
    found[right, left] = theta
    return found


def _definite(form: Form, theta: Floats) -> bool:
    return not form.definite or bool(np.linalg.eigvalsh(matrix_of(theta, form.width))[0] >= -1e-9)


def _range(form: Form, constraints: Floats, theta: Floats, direction: Floats) -> tuple[float, float]:
    """How far one may go along a direction, back and forth, without leaving the family."""
    low, high = -np.inf, np.inf
    if len(constraints):
        here, there = np.maximum(constraints @ theta, 0.0), constraints @ direction
        with np.errstate(divide="ignore", invalid="ignore"):
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
