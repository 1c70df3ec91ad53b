"""Residuals of a classifier in whole grid steps, with a bounded L2 norm for every row."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Floats
from sfumato.learning.noisy_sums import WEIGHT_STEPS


def residuals(errors: Floats) -> Floats:
    """Errors of probabilities in grid steps, rounded towards zero.

    The squared norm of a row is at most ``WEIGHT_STEPS``² for one output, and twice that for several: probabilities of
    the wrong classes add up to the error of the right one. A row beyond it, by the rounding of floats, counts zero.
    """
    steps = np.trunc(np.clip(np.nan_to_num(errors), -1, 1) * WEIGHT_STEPS)
    steps[(steps * steps).sum(axis=1) > min(errors.shape[1], 2) * float(WEIGHT_STEPS) ** 2] = 0
    return steps
