"""LP relaxation of the linkage problem: link as many people as possible.

Linking the most people means satisfying the most sets of inequalities θ·gap > 0, which is NP-hard. The relaxation
allows each person a violation s ≥ 0 and minimizes the weighted sum of violations. Then people with large violations get
less weight, and the program is solved again. In each round the nearest competitors are added, so that the program stays
small. On small extracts it reaches the optimum that the mixed-integer program proves.

Reference: Candès, E. J., Wakin, M. B., Boyd, S. P. (2008). Enhancing sparsity by reweighted l1 minimization. Journal of
Fourier Analysis and Applications 14. doi:10.1007/s00041-008-9045-x
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.attacks.record_linkage.learned_linkage.distances import Form
from sfumato.attacks.record_linkage.learned_linkage.linkage_problem import LinkageProblem
from sfumato.deadline import check_deadline, seconds_left
from sfumato.progress import SILENT, Progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MARGIN = 1e-4
"""Required margin of the true row, as a share of the largest feature difference."""
_ROUNDS = 8
_COMPETITORS = 4
"""Number of nearest competitors per person that are added in each round."""
_PEOPLE = 200
"""Number of people, those with the smallest absolute margins, whose competitors are added in each round."""
_SIZE = 1_000_000
"""Maximum number of coefficients; larger programs take too long."""
_SECONDS = 2.0
"""Time limit of one program."""


def lp_relaxation(
    form: Form, problem: LinkageProblem, theta: Floats, *, near: bool = False, progress: Progress = SILENT
) -> Floats:
    """Parameters that link many people; initial weights are equal or, with ``near``, by the violations of ``theta``."""
    best, linked = theta, -1
    generators = form.generators
    weight = np.ones(problem.people)
    if near:
        missed = np.maximum(-problem.margins(theta), 0.0)
        usual = float(np.median(missed[missed > 0])) if (missed > 0).any() else 1.0
        weight = 1 / (missed / usual + 0.1)
    pool = np.empty(0, dtype=np.int64)
    idle = 0
    for _ in range(_ROUNDS):
        check_deadline(progress)
        close = np.argsort(np.abs(problem.margins(theta)), kind="stable")[:_PEOPLE]
        taken = np.zeros(problem.people, dtype=np.bool_)
        taken[close] = True
        joining = problem.nearest(theta, _COMPETITORS)
        pool = np.union1d(pool, joining[taken[problem.owner(joining)]])
        gaps = problem.gaps[pool] @ generators.T if len(generators) else problem.gaps[pool]
        if gaps.size > _SIZE or linked == problem.people or idle > 2:
            break
        people, owner = np.unique(problem.owner(pool), return_inverse=True)
        seconds = seconds_left(progress, _SECONDS)
        solved = _program(gaps, owner, weight[people], None if len(generators) else form.diagonal, seconds)
        if solved is None:
            break
        share, missed = solved
        theta = share @ generators if len(generators) else share
        if not np.linalg.norm(theta) > 0:
            break
        theta = theta / np.linalg.norm(theta)
        count = problem.linked(theta)
        idle = 0 if count > linked else idle + 1
        if count > linked:
            best, linked = theta, count
        weight[people] = 1 / (missed + 10 * _MARGIN)
        weight[people] /= weight[people].max()
    return best


def _program(
    gaps: Floats, owner: Ints, weight: Floats, diagonal: npt.NDArray[np.bool_] | None, seconds: float
) -> tuple[Floats, Floats] | None:
    """Non-negative shares that sum to one; for the bilinear form a matrix with trace one, within bounds."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, hstack

    largest = np.abs(gaps).max(axis=1, keepdims=True)
    gaps = gaps / np.where(largest > 0, largest, 1.0)
    count, width, people = len(gaps), gaps.shape[1], len(weight)
    misses = csr_matrix((np.ones(count), (np.arange(count), owner)), shape=(count, people))
    total = np.ones(width) if diagonal is None else diagonal.astype(np.float64)
    ends = (0.0, None) if diagonal is None else (-3.0, 3.0)
    result = linprog(
        np.concatenate([np.zeros(width), weight]),
        A_ub=-hstack([csr_matrix(gaps), misses]).tocsr(),
        b_ub=np.full(count, -_MARGIN),
        A_eq=np.concatenate([total, np.zeros(people)])[None, :],
        b_eq=[1.0],
        bounds=[ends] * width + [(0.0, None)] * people,
        method="highs",
        options={"time_limit": seconds},
    )
    if result.x is None:
        return None
    return result.x[:width], result.x[width:]
