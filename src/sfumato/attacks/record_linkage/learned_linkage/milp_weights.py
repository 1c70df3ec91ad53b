"""The weighted mean that links the most people, with a proof of optimality by a mixed-integer program.

A binary variable per person says that they are not linked. For all others, every competitor must be farther than the
true row. Dominated competitors are dropped, and each constraint has the smallest possible big-M. Solved by HiGHS as
shipped with SciPy.

Reference: Abril, D., Navarro-Arribas, G., Torra, V. (2012). doi:10.1016/j.inffus.2011.05.001
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.attacks.record_linkage.learned_linkage.linkage_problem import LinkageProblem

Floats = npt.NDArray[np.float64]

_MARGIN = 1e-6
"""Required margin, because solvers have tolerances."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Weights, the number of people they link, and an upper bound for all weights."""

    weights: Floats
    linked: int
    bound: int
    optimal: bool


def proven_weights(problem: LinkageProblem, *, known: int, seconds: float = 60.0) -> Proof | None:
    """Weights that link at least ``known`` people, with the bound reached in time; None if none were found."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_matrix

    columns = problem.gaps.shape[1]
    rows: list[Floats] = []
    owner: list[int] = []
    hopeless = certain = 0
    open_people = 0
    for start, stop in zip(problem.starts, problem.starts[1:], strict=False):
        gaps = problem.gaps[start:stop]
        gaps = gaps[(gaps < _MARGIN).any(axis=1)]
        if len(gaps) == 0:
            certain += 1
        elif (gaps.max(axis=1) < _MARGIN).any():
            hopeless += 1
        else:
            minimal = _minimal(gaps)
            rows.append(minimal)
            owner.extend([open_people] * len(minimal))
            open_people += 1
    if open_people == 0:
        return Proof(weights=np.full(columns, 1 / columns), linked=certain, bound=certain, optimal=True)
    gaps = np.vstack(rows)
    scale = np.abs(gaps).max(axis=1, keepdims=True)
    gaps = gaps / scale
    slack = _MARGIN / scale.ravel() - gaps.min(axis=1)
    count = len(gaps)
    left = np.arange(count)
    matrix = coo_matrix(
        (
            np.concatenate([gaps.ravel(), slack]),
            (
                np.concatenate([np.repeat(left, columns), left]),
                np.concatenate([np.tile(np.arange(columns), count), columns + np.array(owner)]),
            ),
        ),
        shape=(count, columns + open_people),
    ).tocsr()
    total = np.concatenate([np.ones(columns), np.zeros(open_people)])
    unlinked = np.concatenate([np.zeros(columns), np.ones(open_people)])
    result = milp(
        c=unlinked,
        constraints=[
            LinearConstraint(matrix, lb=_MARGIN / scale.ravel()),
            LinearConstraint(total[None, :], 1, 1),
            LinearConstraint(unlinked[None, :], -np.inf, open_people - max(0, known - certain)),
        ],
        integrality=unlinked,
        bounds=Bounds(0, 1),
        options={"time_limit": seconds},
    )
    least = result.mip_dual_bound
    bound = certain + open_people - (int(np.ceil(least - 1e-6)) if least is not None else 0)
    if result.x is None:
        return None
    weights = np.maximum(result.x[:columns], 0)
    return Proof(weights=weights, linked=problem.linked(weights), bound=bound, optimal=bool(result.status == 0))


def _minimal(gaps: Floats) -> Floats:
    """Competitors that no other competitor dominates."""
    order = np.argsort(gaps.sum(axis=1), kind="stable")
    kept: list[Floats] = []
    for row in gaps[order]:
        if not kept or not (np.array(kept) <= row).all(axis=1).any():
            kept.append(row)
    return np.array(kept)
