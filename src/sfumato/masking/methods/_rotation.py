"""Random orthogonal matrix masking (ROMM) in blocks of records, in linear time.

Records are dealt at random into blocks; in each block the records' deviations from the block's mean are multiplied by a
random orthogonal matrix. Sums and cross-products of every block stay, hence mean and covariance of the table.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.errors import TooFewRows

_SIZE = 16
_BATCH = 8192


def rotate(matrix: Floats, ratio: float, random: np.random.Generator) -> None:
    """Rotate the rows of ``matrix`` in place; E|new - old|^2 is ``ratio`` times the variance.

    Rows with missing values are rotated with rows of the same missing pattern, in their present columns. Fewer than 3
    such rows are refused: two records can only be exchanged.
    """
    missing = np.isnan(matrix)
    patterns, which = np.unique(missing, axis=0, return_inverse=True) if missing.any() else (missing[:1], None)
    for number, pattern in enumerate(patterns):
        rows = np.arange(len(matrix)) if which is None else np.flatnonzero(which.reshape(-1) == number)
        if pattern.all():
            continue
        if len(rows) < 3:
            raise TooFewRows(
                f"noise: {len(rows)} rows share one pattern of missing values; rotating records needs at least 3.",
                fix="Mask fewer columns together, use coarser strata, or another variant.",
                rows=len(rows),
            )
        columns = np.flatnonzero(~pattern)
        order = random.permutation(rows)
        whole = max(len(order) // _SIZE - 1, 0) * _SIZE
        for start in range(0, whole, _BATCH * _SIZE):
            chunk = order[start : min(start + _BATCH * _SIZE, whole)].reshape(-1, _SIZE)
            _rotate_blocks(matrix, chunk, columns, ratio, random)
        _rotate_blocks(matrix, order[whole:].reshape(1, -1), columns, ratio, random)


def _rotate_blocks(
    matrix: Floats,
    blocks: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    ratio: float,
    random: np.random.Generator,
) -> None:
    count, size = blocks.shape
    basis = _centring_basis(size)
    values = matrix[blocks[:, :, None], columns]
    mean = values.mean(axis=1, keepdims=True)
    inner = np.einsum("sa,bsd->bad", basis, values - mean, optimize=True)
    skew = _skew(count, size - 1, random)
    skew *= _strength(size - 1, min(ratio * size / (size - 1), 3.9))  # the mean of the block does not move
    eye = np.eye(size - 1)
    turned = np.linalg.solve(eye - skew, (eye + skew) @ inner)
    matrix[blocks[:, :, None], columns] = mean + np.einsum("sa,bad->bsd", basis, turned, optimize=True)


def _centring_basis(size: int) -> Floats:
    """Orthonormal columns that span the vectors with sum zero."""
    square = np.eye(size)
    square[:, 0] = 1.0
    return np.linalg.qr(square)[0][:, 1:]


def _skew(count: int, size: int, random: np.random.Generator) -> Floats:
    draw = random.standard_normal((count, size, size)) / np.sqrt(size)
    skew: Floats = draw - draw.transpose(0, 2, 1)
    return skew


@cache
def _strength(size: int, ratio: float) -> float:
    """The scale of the skew matrix at which its Cayley transform moves a vector by ``ratio`` of its squared length.

    An eigenvalue i*w turns by the angle 2*atan(w) and moves by 2*(1 - cos) = 4 w^2/(1 + w^2). The spectrum is taken
    from matrices of a fixed stream: the scale is a public constant of size and ratio, not a secret.
    """
    turns = np.linalg.eigvalsh(1j * _skew(200, size, np.random.default_rng(0))).reshape(-1)
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        moved = float(np.mean(4 * (middle * turns) ** 2 / (1 + (middle * turns) ** 2)))
        low, high = (middle, high) if moved < ratio else (low, middle)
    return (low + high) / 2
