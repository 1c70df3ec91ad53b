"""Covariance matrix and its eigenvalues before and after."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._values import number_columns, number_matrix
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class CovarianceEigenvalues(Measure):
    """How much the eigenvalues of the covariance changed: sum of absolute differences over the sum before.

    Columns are scaled by the original's standard deviations first, so units do not matter. 0: the same spread in
    every principal direction; 0.1: a tenth of the total variance was added or lost. The detail gives both spectra and
    the mean absolute difference of the covariances themselves. Values by column are those of the variances.
    """

    about: ClassVar[About] = About.UTILITY
    reference: ClassVar[str] = "Templ, Kowarik, Meindl: sdcMicro (2015), doi:10.18637/jss.v067.i04"

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        names = number_columns(pair)
        before, after = number_matrix(pair, names)
        scale = before.std(axis=0)
        scale[scale == 0] = 1.0
        old, new = (np.atleast_2d(np.cov(values / scale, rowvar=False)) for values in (before, after))
        spectrum, masked = np.linalg.eigvalsh(old)[::-1], np.linalg.eigvalsh(new)[::-1]
        variances = np.abs(np.diag(new) - np.diag(old)) / np.diag(old)
        return MeasureResult(
            measure=self.part_name(),
            value=float(np.abs(masked - spectrum).sum() / spectrum.sum()),
            columns={name: float(change) for name, change in zip(names, variances, strict=True)},
            detail={
                "before": spectrum.tolist(),
                "after": masked.tolist(),
                "covariance_difference": float(np.abs(new - old).mean()),
            },
        )
