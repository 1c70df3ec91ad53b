"""Transition matrices of PRAM, and unbiased estimation of the original frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats
from sfumato.errors import BadParameter, ColumnsDiffer, SingularData
from sfumato.kernels import kernel

Codes = npt.NDArray[np.uint32]

_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Frequencies:
    """Estimated counts of the original by category, with the standard error that the masking causes."""

    categories: tuple[Any, ...]
    counts: Floats
    """Unbiased estimates; negative values are possible for rare categories."""
    standard_errors: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class TransitionMatrix:
    """Row i, column j: the probability that category i is released as category j.

    >>> flip = TransitionMatrix.generated(["no", "yes"], keep=0.8)
    >>> flip.probabilities.round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    >>> masked = pl.Series(["yes"] * 38 + ["no"] * 62)
    >>> flip.estimate(masked).counts.round(6).tolist()
    [70.0, 30.0]
    """

    categories: tuple[Any, ...]
    probabilities: Floats

    def __post_init__(self) -> None:
        size, matrix = len(self.categories), self.probabilities
        if matrix.shape != (size, size):
            raise BadParameter(f"A transition matrix of {size} categories must be {size} × {size}.")
        if not np.isfinite(matrix).all() or (matrix < 0).any():
            raise BadParameter("A transition matrix holds probabilities: numbers from 0 to 1.")
        off = np.abs(matrix.sum(axis=1) - 1)
        if (off > _TOLERANCE).any():
            raise BadParameter(
                f"{int((off > _TOLERANCE).sum())} rows of the transition matrix do not sum to 1 "
                f"(off by up to {off.max():.3g}).",
                fix="Row i holds the probabilities that category i is released as each category.",
            )

    @classmethod
    def generated(
        cls, categories: Sequence[object], *, keep: float, groups: Sequence[Sequence[int]] | None = None
    ) -> TransitionMatrix:
        """Each category stays with probability ``keep``, else it becomes another of its group with equal probability.

        ``groups`` are lists of positions in ``categories``; a category alone in its group always stays.
        """
        size = len(categories)
        matrix = np.zeros((size, size))
        for group in groups if groups is not None else [range(size)]:
            members = np.array(list(group), dtype=np.int64)
            away = (1 - keep) / (len(members) - 1) if len(members) > 1 else 0.0
            matrix[np.ix_(members, members)] = away
            matrix[members, members] = keep if len(members) > 1 else 1.0
        return cls(categories=tuple(categories), probabilities=matrix)

    def invariant(self, counts: Floats) -> TransitionMatrix:
        """The two-stage matrix that leaves these counts as they are in expectation (Gouweleeuw et al. 1998).

        The first stage is this matrix; the second draws back by Bayes' rule. Categories that do not occur stay.
        """
        joint = self.probabilities * counts[:, None]
        reached = joint.sum(axis=0)
        back = np.eye(len(counts))
        back[reached > 0] = joint.T[reached > 0] / reached[reached > 0, None]
        product = self.probabilities @ back
        return TransitionMatrix(categories=self.categories, probabilities=product / product.sum(axis=1, keepdims=True))

    def encode(self, series: pl.Series) -> Codes:
        """Position of each value in the categories; the number of categories if it is missing."""
        gap = np.iinfo(np.uint32).max
        known = pl.Series(list(self.categories), dtype=series.dtype, strict=False)
        codes = series.replace_strict(
            known, pl.Series(range(len(known)), dtype=pl.UInt32), default=None, return_dtype=pl.UInt32
        )
        unknown = codes.null_count() - series.null_count()
        if unknown:
            raise ColumnsDiffer(
                f"{unknown} values of `{series.name}` are not among the {len(self.categories)} categories of the "
                "transition matrix.",
                fix="Give the matrix a row and a column for every category.",
                count=unknown,
            )
        return codes.fill_null(gap).to_numpy()

    def decode(self, codes: Codes, like: pl.Series) -> pl.Series:
        """The categories at these positions, in the type of ``like``."""
        known = pl.Series(like.name, list(self.categories), dtype=like.dtype, strict=False)
        known = known.extend(pl.Series(like.name, [None], dtype=like.dtype))
        return known.gather(np.minimum(codes, len(self.categories)))

    def draw(self, codes: Codes, random: np.random.Generator) -> Codes:
        """Draw a released category for each original one; missing values stay missing."""
        return _draw(codes, np.cumsum(self.probabilities, axis=1), random)

    def estimate(self, masked: pl.Series, weights: Floats | None = None) -> Frequencies:
        """Unbiased estimates of the original's counts (weighted, with ``weights``) from a masked column."""
        codes = self.encode(masked)
        present = codes < len(self.categories)
        weight = np.ones(len(codes)) if weights is None else weights
        observed = np.bincount(codes[present], weight[present], minlength=len(self.categories))
        squared = np.bincount(codes[present], weight[present] ** 2, minlength=len(self.categories))
        if np.linalg.cond(self.probabilities) > 1e12:
            raise SingularData(
                "The transition matrix cannot be inverted: several originals lead to the same release.",
                fix="Use a matrix with larger probabilities to stay.",
            )
        back = np.linalg.inv(self.probabilities.T)
        counts, spread = back @ observed, np.clip(back @ squared, 0.0, None)
        covariance = np.diag(self.probabilities.T @ spread) - (self.probabilities.T * spread) @ self.probabilities
        errors = np.sqrt(np.clip(np.diag(back @ covariance @ back.T), 0.0, None))
        return Frequencies(categories=self.categories, counts=counts, standard_errors=errors)


@kernel()
def _draw(codes: Codes, cumulative: Floats, random: np.random.Generator) -> Codes:  # pragma: no cover - compiled
    size = cumulative.shape[0]
    out = codes.copy()
    for i in range(len(codes)):
        row = codes[i]
        if row < size:
            out[i] = min(np.searchsorted(cumulative[row], random.random(), side="right"), size - 1)
    return out


def published_transitions(step: Mapping[str, Any]) -> dict[str, TransitionMatrix]:
    """The matrices of a ``pram`` step in a release's manifest, by column.

    Of an invariant step it is the first-stage matrix; the frequencies of that release are estimates as they stand.
    """
    return {
        name: TransitionMatrix(
            categories=tuple(tuple(c) if isinstance(c, list) else c for c in entry["categories"]),
            probabilities=np.asarray(entry["matrix"], dtype=np.float64),
        )
        for name, entry in step["transitions"].items()
    }
