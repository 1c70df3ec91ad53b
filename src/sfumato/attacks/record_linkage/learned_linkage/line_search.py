"""Exact line search: the step along a direction that links the most people, within the constraints of a family."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.attacks.record_linkage.learned_linkage.distances import Form, matrix_of
from sfumato.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def feasible_steps(form: Form, constraints: Floats, theta: Floats, direction: Floats) -> tuple[float, float]:
    """The feasible range of steps along a direction."""
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


def best_step(score: Floats, slope: Floats, starts: Ints, low: float, high: float) -> tuple[float, int]:
    """The step that links the most people: each is linked on one interval; sweep over the interval ends."""
    first, last = _intervals(score, slope, starts, low, high)
    first.sort()
    last.sort()
    step, count = _most_covered(first, last)
    return float(step), int(count)


@kernel()
def _intervals(
    score: Floats, slope: Floats, starts: Ints, low: float, high: float
) -> tuple[Floats, Floats]:  # pragma: no cover - compiled
    """Ends of the intervals of steps on which a person is linked."""
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
    return first[:count], last[:count]


@kernel()
def _most_covered(opening: Floats, closing: Floats) -> tuple[float, int]:  # pragma: no cover - compiled
    """A point in the most intervals, given their sorted ends, and how many these are."""
    best, best_width, step = 0, -1.0, np.nan
    count, closed = len(opening), 0
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
