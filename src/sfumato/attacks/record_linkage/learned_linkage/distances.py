"""Families of distances that are linear in their parameters: d = θ·φ(a − b).

The weighted mean of squared differences, ordered weighted averages (OWA), the Choquet integral over a fuzzy measure,
and the symmetric bilinear form. Each family is given by constraints on θ and by generators.

Reference: Abril, D., Navarro-Arribas, G., Torra, V. (2012). Choquet integral for record linkage. Annals of Operations
Research 195. doi:10.1007/s10479-011-0989-x
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, assert_never

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
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
        """Features φ of differences, along the last axis."""
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
                # The set of columns from position i on, as bits.
                bits = np.cumsum((1 << order)[..., ::-1], axis=-1)[..., ::-1]
                features = np.zeros((*gap.shape[:-1], (1 << self.width) - 1))
                np.put_along_axis(features, bits - 1, steps, axis=-1)
                return features
            case _:
                assert_never(self.shape)

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
            case "choquet":
                sets = np.arange(1, 1 << self.width)
                return np.bitwise_count(sets) / self.width

    @property
    def diagonal(self) -> npt.NDArray[np.bool_]:
        """For the bilinear form: which parameters are on the diagonal of its matrix."""
        left, right = np.triu_indices(self.width)
        on_diagonal: npt.NDArray[np.bool_] = left == right
        return on_diagonal

    @property
    def shares(self) -> Floats:
        """The share of each column in each parameter; a parameter of several columns is split evenly."""
        match self.shape:
            case "weighted":
                return np.eye(self.width)
            case "owa":
                return np.full((self.width, self.width), 1 / self.width)
            case "bilinear":
                left, right = np.triu_indices(self.width)
                halves: Floats = (np.eye(self.width)[left] + np.eye(self.width)[right]) / 2
                return halves
            case "choquet" if self.additive == 2:
                left, right = np.triu_indices(self.width, 1)
                return np.vstack([np.eye(self.width), (np.eye(self.width)[left] + np.eye(self.width)[right]) / 2])
            case "choquet":
                sets = np.arange(1, 1 << self.width)
                inside = ((sets[:, None] >> np.arange(self.width)) & 1).astype(np.float64)
                parts: Floats = inside / inside.sum(axis=1, keepdims=True)
                return parts

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
                measure: Floats = ((sets[:, None] >> np.arange(self.width)) & 1) @ weights
                return measure
            case "owa":
                return self.plain

    @property
    def constraints(self) -> Floats:
        """Rows g with g·θ ≥ 0: weights are non-negative, measures are monotone."""
        match self.shape:
            case "weighted" | "owa":
                return np.eye(self.width)
            case "bilinear":
                return np.empty((0, self.width * (self.width + 1) // 2))
            case "choquet" if self.additive == 2:
                return self._two_additive()
            case "choquet":
                return self._monotone()

    @property
    def generators(self) -> Floats:
        """Rows whose non-negative combinations are all in the family.

        For the Choquet integral these are the minimum and the maximum of the differences over every set of columns.
        Their combinations include the weighted mean, interactions of both signs and most monotone measures; the line
        search reaches the rest. Empty for the bilinear form, which has no constraints.
        """
        match self.shape:
            case "weighted" | "owa" | "bilinear":
                return self.constraints
            case "choquet" if self.additive == 2:
                both = np.eye(self.width * (self.width + 1) // 2)
                larger = -both[self.width :]
                for row, (left, right) in zip(larger, combinations(range(self.width), 2), strict=True):
                    row[[left, right]] = 1.0
                return np.vstack([both, larger])
            case "choquet":
                sets = np.arange(1, 1 << self.width)
                common = sets[:, None] & sets
                smallest, largest = common == sets[:, None], common != 0
                return np.vstack([smallest, largest[np.bitwise_count(sets) > 1]]).astype(np.float64)

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


def matrix_of(theta: Floats, width: int) -> Floats:
    """The symmetric matrix of a bilinear form's parameters."""
    matrix = np.zeros((width, width))
    left, right = np.triu_indices(width)
    matrix[left, right] = theta
    matrix[right, left] = theta
    return matrix
