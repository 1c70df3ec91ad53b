"""Fit a distance that links the most people, for all families that are linear in their parameters.

A distance d = θ·φ(a − b) links a person correctly if their true row is nearer than every other row, that is if
θ·(φ(a − b') − φ(a − b)) > 0 for all other rows b'. The solver maximizes the number of linked people: a smooth margin
loss on the hardest competitors gives a start, an LP relaxation
(:mod:`sfumato.attacks.record_linkage.learned_linkage.lp_relaxation`) improves it, and exact line searches finish. Along
a line through θ each person is linked on one interval, so the best point is where most intervals overlap.

Reference: Abril, D., Navarro-Arribas, G., Torra, V. (2012). Improving record linkage with supervised learning for
disclosure risk assessment. Information Fusion 13(4). doi:10.1016/j.inffus.2011.05.001
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.attacks.record_linkage.learned_linkage.distances import Form, matrix_of
from sfumato.attacks.record_linkage.learned_linkage.line_search import best_step, feasible_steps
from sfumato.attacks.record_linkage.learned_linkage.linkage_problem import LinkageProblem, nearest_competitors
from sfumato.attacks.record_linkage.learned_linkage.lp_relaxation import lp_relaxation
from sfumato.errors import OutOfTime
from sfumato.kernels import kernel
from sfumato.progress import SILENT, Progress, Tick

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Learned parameters, and the number of people they link."""

    theta: Floats
    linked: int


def learn(
    form: Form,
    problem: LinkageProblem,
    draw: np.random.Generator,
    *,
    starts: tuple[Floats, ...] = (),
    patience: int | None = None,
    relax: bool = True,
    progress: Progress = SILENT,
) -> Fit:
    """Maximize the number of linked people; never worse than any of the ``starts`` or the plain distance.

    The search stops after ``patience`` line searches without a gain; if omitted, it grows with the size of the family.
    Without ``relax`` the LP relaxation is left out, which takes most of the time: for a distance that is only a start.
    If time is up, the best result so far is returned.
    """
    if len(problem.gaps) == 0:
        return Fit(theta=starts[0] if starts else form.plain, linked=problem.people)
    best = max(((start, problem.linked(start)) for start in (form.plain, *starts)), key=lambda pair: pair[1])
    candidates = [start / np.linalg.norm(start) for start in (form.plain, *starts)]
    constraints, generators = form.constraints, form.generators
    patience = 60 + 4 * len(generators) if patience is None else patience
    best_fit = Fit(theta=best[0], linked=best[1])
    with suppress(OutOfTime), progress.task("learning a distance", None) as tick:
        for start in candidates:
            tick(0)
            smooth = _descend(generators, problem, start)
            if (constraints @ smooth >= -1e-12).all() and _definite(form, smooth):
                linked = problem.linked(smooth)
                if linked >= best_fit.linked:
                    best_fit = Fit(theta=smooth, linked=linked)
        best_fit = _climb(form, problem, best_fit.theta / np.linalg.norm(best_fit.theta), patience, draw, tick)
        for near in (False, True) if relax and not form.definite else ():
            if best_fit.linked < problem.people:
                theta = lp_relaxation(form, problem, best_fit.theta, near=near, progress=progress)
                climbed = _climb(form, problem, theta, patience, draw, tick)
                best_fit = max(best_fit, climbed, key=lambda fit: fit.linked)
    return best_fit


def _climb(
    form: Form, problem: LinkageProblem, theta: Floats, patience: int, draw: np.random.Generator, tick: Tick
) -> Fit:
    """Exact line searches from ``theta`` on, until none of the last ``patience`` improved the result."""
    constraints, generators = form.constraints, form.generators
    linked = problem.linked(theta)
    idle = 0
    while idle < patience and linked < problem.people:
        # Search with few competitors; an improvement is verified with all competitors before it is accepted.
        tick(0)
        part = problem.hardest(theta, 40)
        score = part.gaps @ theta
        sideways = False
        for direction in _directions(part, theta, generators, draw):
            idle += 1
            low, high = feasible_steps(form, constraints, theta, direction)
            if not low < high:
                continue
            step, count = best_step(score, part.gaps @ direction, part.starts, low, high)
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
    return Fit(theta=theta, linked=linked)


def _descend(generators: Floats, problem: LinkageProblem, start: Floats) -> Floats:
    """Minimize a smooth loss of soft margins with increasing sharpness, invariant to the norm of θ.

    If the family has generators, their non-negative coefficients are fitted.
    """
    from scipy.optimize import nnls

    theta = start
    share = nnls(generators.T, start)[0] if len(generators) else start
    for sharpness in (3.0, 1.0, 0.3):
        part = problem.hardest(theta, 25)
        if len(generators):
            part = replace(part, gaps=part.gaps @ generators.T)
        share = _fitted(part, share / np.linalg.norm(share), sharpness, bounded=len(generators) > 0)
        theta = share @ generators if len(generators) else share
    unit: Floats = theta / np.linalg.norm(theta)
    return unit


def _fitted(part: LinkageProblem, start: Floats, sharpness: float, *, bounded: bool) -> Floats:
    from scipy.optimize import minimize

    spread = np.median(np.abs(part.margins(start)))
    scale = sharpness * (spread if spread > 0 else 1.0)

    def loss(point: Floats) -> tuple[float, Floats]:
        size = float(np.linalg.norm(point)) + 1e-300
        unit = point / size
        value, weight = _softened(part.gaps @ unit / scale, part.starts)
        slope = (weight @ part.gaps) / scale
        return value, (slope - unit * (unit @ slope)) / size

    bounds = [(0.0, None)] * len(start) if bounded else None
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 60}).x
    return solution if np.isfinite(solution).all() and np.linalg.norm(solution) > 0 else start


@kernel()
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
        # The loss saturates, so that people who cannot be linked do not dominate.
        total += value / (1 + value)
        slope = 1 / ((1 + value) * (1 + value))
        for place in range(start, stop):
            weight[place] *= -slope / mass
    return total, weight


def _directions(problem: LinkageProblem, theta: Floats, generators: Floats, draw: np.random.Generator) -> list[Floats]:
    score = problem.gaps @ theta
    worst = nearest_competitors(score, problem.starts)
    margin = score[worst]
    directions = []
    for share in (0.02, 0.1, 0.3):
        lost = margin[margin <= 0]
        if len(lost) == 0:
            break
        reach = np.quantile(-lost, share) + 1e-12
        weight = np.exp(-np.abs(margin) / reach)
        directions.append(weight @ problem.gaps[worst])
    # Directions towards single people, those closest to being linked first.
    near = np.argsort(np.where(margin <= 0, -margin, np.inf))[:4]
    directions.extend(problem.gaps[worst[person]] for person in near if margin[person] <= 0)
    axes = draw.permutation(len(theta))[:4]
    directions.extend(np.eye(len(theta))[axis] for axis in axes)
    directions.extend(draw.normal(size=(3, len(theta))) * (np.abs(theta) + 0.05))
    if len(generators) > len(theta):
        # Directions that stay feasible where the constraints of a measure block those above.
        some = draw.permutation(len(generators))[:8]
        directions.extend(generators[some])
        directions.extend(generators[some[:4]] - generators[np.roll(some, 1)[:4]])
        directions.append((draw.exponential(size=len(some)) * draw.choice([-1.0, 1.0], len(some))) @ generators[some])
        pull = generators @ (np.exp(-np.abs(margin) / (np.median(np.abs(margin)) + 1e-12)) @ problem.gaps[worst])
        directions.append(np.maximum(pull, 0.0) @ generators)
    return [direction / np.linalg.norm(direction) for direction in directions if np.linalg.norm(direction) > 0]


def _definite(form: Form, theta: Floats) -> bool:
    return not form.definite or bool(np.linalg.eigvalsh(matrix_of(theta, form.width))[0] >= -1e-9)
