"""Plain ways to decide what sums disclose, for checking the auditors."""

from __future__ import annotations

from fractions import Fraction


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
