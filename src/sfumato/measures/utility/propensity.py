"""Propensity score utility (pMSE): logistic regression on released against original rows."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._selection import drawn
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Propensity(Measure):
    """Mean squared propensity score (pMSE) of a logistic regression that tells release from original.

    Scaled to 0..1: 0 when no row can be told apart, 1 when every row can. The detail gives the plain pMSE, its
    expectation when the release is drawn from a correct model of the original (``null``, Snoke et al.) and their ratio,
    about 1 for a perfect synthesis; a fresh sample of the same population has ``null_fresh`` in expectation (twice as
    much for tables of the same size). A masked copy of the same people can lie below both. The model has main effects
    of all columns, and their products with ``interactions``.
    """

    about: ClassVar[About] = About.UTILITY
    examples = ({}, {"interactions": True, "repeats": 5})
    reference: ClassVar[str] = (
        "Woo, Reiter, Oganian, Karr: Global measures of data utility (2009), doi:10.29012/jpc.v1i1.568; Snoke, Raab, "
        "Nowok, Dibben, Slavkovic: General and specific utility measures (2018), doi:10.1111/rssa.12358"
    )

    interactions: bool = False
    """Whether products of every two features are used too (at most 150 features in all)."""
    rows: Annotated[int, Field(ge=100)] = 20_000
    """Most rows of each table that are used, drawn at random."""
    repeats: Annotated[int, Field(ge=0, le=1000)] = 20
    """Bootstrap repeats for the interval; 0 for none."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        random = rng.generator
        (before, _), (after, _) = drawn(pair, self.rows, random, one_hot=True)
        design = np.concatenate([before, after])
        truth = np.concatenate([np.zeros(len(before)), np.ones(len(after))])
        if self.interactions:
            design = _with_products(design)
        design = np.column_stack([np.ones(len(design)), design])
        share = float(truth.mean())
        scores, rank = logistic(design, truth)
        pmse = float(((scores - share) ** 2).mean())
        fresh = (rank - 1) * (1 - share) * share / len(truth)
        null = fresh * (1 - share)
        scale = share * (1 - share)
        repeated = []
        with progress.task("propensity", self.repeats) as tick:
            for _ in range(self.repeats):
                rows = random.integers(len(truth), size=len(truth))
                if 0 < truth[rows].mean() < 1:
                    again, _rank = logistic(design[rows], truth[rows])
                    repeated.append(float(((again - truth[rows].mean()) ** 2).mean()) / scale)
                tick(1)
        # A bootstrap of a fit to noise lies higher than the fit itself, so only its spread is used.
        centre = pmse / scale
        spread = float(np.std(repeated, ddof=1)) if len(repeated) > 1 else None
        return MeasureResult(
            measure=self.part_name(),
            value=centre,
            low=None if spread is None else max(0.0, centre - 1.96 * spread),
            high=None if spread is None else min(1.0, centre + 1.96 * spread),
            detail={
                "pmse": pmse,
                "null": null,
                "ratio": pmse / null if null > 0 else None,
                "null_fresh": fresh,
                "parameters": rank,
            },
        )


def _with_products(design: Floats) -> Floats:
    count = design.shape[1]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)][: max(0, 150 - count)]
    if not pairs:
        return design
    return np.column_stack([design, *(design[:, i] * design[:, j] for i, j in pairs)])


def logistic(design: Floats, truth: Floats) -> tuple[Floats, int]:
    """Fitted probabilities and the number of parameters, by Newton's method with a very small ridge for separation."""
    rank = int(np.linalg.matrix_rank(design.T @ design, hermitian=True))
    ridge = 1e-6 * len(truth) * np.eye(design.shape[1])
    weights = np.zeros(design.shape[1])
    share = float(truth.mean())
    weights[0] = np.log(share / (1 - share))
    for _ in range(15):
        scores = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        spread = np.maximum(scores * (1 - scores), 1e-9)
        slope = design.T @ (truth - scores)
        move = np.linalg.solve(design.T @ (design * spread[:, None]) + ridge, slope)
        weights += move
        if np.abs(move).max() < 1e-8:
            break
    return 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30))), rank
