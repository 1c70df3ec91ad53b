"""Means and covariances, plain and robust, and matrix square roots for collinear columns."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.arrays import Floats
from sfumato.errors import SingularData, TooFewRows, WrongKind
from sfumato.extras import missing_extra

_SAMPLE = 5_000
"""A robust covariance is found on at most this many rows."""


def moments(matrix: Floats, part: str) -> tuple[Floats, Floats]:
    """Mean and covariance over complete rows."""
    complete = matrix[~np.isnan(matrix).any(axis=1)] if np.isnan(matrix).any() else matrix
    if len(complete) < 2:
        raise TooFewRows(
            f"{part}: {len(complete)} rows have a value in all chosen columns; a covariance needs at least 2.",
            fix="Mask fewer columns together, or use coarser strata.",
            rows=len(complete),
        )
    with np.errstate(over="ignore", invalid="ignore"):
        mean, covariance = complete.mean(axis=0), np.atleast_2d(np.cov(complete, rowvar=False))
    if not np.isfinite(covariance).all():
        raise WrongKind(
            f"{part}: the numbers are too large to compute a variance.",
            fix="Divide the column by a power of ten first.",
        )
    return mean, covariance


def square_root(covariance: Floats) -> Floats:
    """A matrix R with R R' = covariance, also for collinear and constant columns."""
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = vectors * np.sqrt(np.clip(values, 0.0, None))
    return root


def robust_moments(matrix: Floats, part: str) -> tuple[Floats, Floats]:
    """Location and scatter by the minimum covariance determinant (breakdown point one half).

    They are a function of the rows alone: the subsets that the search starts from are always the same. So whoever
    knows the rows can compute them, and masking the same rows again, as attacks do, does not search again.
    Columns that depend linearly on others are handled by working in the space the rows span.
    """
    complete = matrix[~np.isnan(matrix).any(axis=1)]
    mean, covariance = moments(complete, part)
    if len(complete) > _SAMPLE:
        complete = complete[np.random.default_rng(0).choice(len(complete), _SAMPLE, replace=False)]
    scale = np.sqrt(np.diag(covariance))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    basis = vectors[:, values > 1e-10 * max(values[-1], 1e-300)]
    if basis.shape[1] == 0:
        return mean, covariance
    reduced = (complete - mean) / scale @ basis
    if len(reduced) <= 2 * reduced.shape[1]:
        raise TooFewRows(
            f"{part}: {len(reduced)} complete rows are too few for a robust covariance of {reduced.shape[1]} columns.",
            fix="Use a plain covariance, or mask fewer columns together.",
            rows=len(reduced),
        )
    try:
        found = _least_determinant(np.ascontiguousarray(reduced).tobytes(), reduced.shape[1])
    except ImportError:
        raise missing_extra("learning", "scikit-learn", needed_by=f"{part} with a robust covariance") from None
    if found is None:
        raise SingularData(
            f"{part}: more than half of the rows lie on a line or plane, so their robust covariance is singular.",
            fix="Leave out columns with one dominant value, or use a plain covariance.",
        )
    location, scatter = found
    back = basis.T * scale
    return mean + location @ back, back.T @ scatter @ back


@lru_cache(maxsize=4)
def _least_determinant(rows: bytes, columns: int) -> tuple[Floats, Floats] | None:
    """Location and scatter of rows; None where the scatter is singular."""
    import warnings

    from sklearn.covariance import MinCovDet

    matrix = np.frombuffer(rows, dtype=np.float64).reshape(-1, columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator = MinCovDet(random_state=0).fit(matrix)
        except ValueError:
            return None
    if np.linalg.eigvalsh(estimator.covariance_)[0] <= 1e-12:
        return None
    return estimator.location_, estimator.covariance_
