"""Plain ways to decide what sums disclose, for checking the auditors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter
from sfumato.query.auditing.atoms import Ints


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Between which values a person's number must lie."""

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def intervals(
    queries: list[Ints], sums: list[float], *, people: int, low: float, high: float, whom: Ints | None = None
) -> Bounds:
    """For each person (or those of ``whom``), the smallest and largest value that agrees with all sums.

    Values are real numbers between ``low`` and ``high``, which the adversary knows. Two linear programs per person, so
    for one person at a time or a few hundred; a width of nearly nothing is a disclosure as good as an exact one.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    rows = np.concatenate([np.full(len(q), i) for i, q in enumerate(queries)])
    matrix = coo_array((np.ones(len(rows)), (rows, np.concatenate(queries))), shape=(len(queries), people)).tocsr()
    chosen = np.arange(people) if whom is None else np.asarray(whom)
    ends = np.empty((2, len(chosen)))
    for place, person in enumerate(chosen):
        for side, sign in enumerate((1.0, -1.0)):
            cost = np.zeros(people)
            cost[person] = sign
            solved = linprog(cost, A_eq=matrix, b_eq=np.asarray(sums, float), bounds=(low, high), method="highs")
            if solved.status != 0:
                raise BadParameter("no values between these bounds have these sums.")
            ends[side, place] = solved.x[person]
    return Bounds(low=ends[0], high=ends[1])


def in_span(rows: list[list[int]], vector: list[int]) -> bool:
    """Whether a vector is a combination of rows, in fractions: the plain way, for checking the incremental one.

    >>> in_span([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 0, 0])
    True
    >>> in_span([[1, 1, 0], [0, 1, 1]], [1, 0, 0])
    False
    """
    basis: list[tuple[int, list[Fraction]]] = []

    def reduced(row: list[Fraction]) -> list[Fraction]:
        for pivot, other in basis:
            if row[pivot]:
                share = row[pivot]
                row = [a - share * b for a, b in zip(row, other, strict=True)]
        return row

    for row in rows:
        left = reduced([Fraction(v) for v in row])
        pivot = next((i for i, v in enumerate(left) if v), None)
        if pivot is not None:
            basis.append((pivot, [v / left[pivot] for v in left]))
    return not any(reduced([Fraction(v) for v in vector]))
