"""Private partition of a box into cells with noisy counts: halves of halves, deeper where people are.

Level by level, every cell whose noisy count is clearly above the noise is cut in half along the feature that varies
most, by the noisy moments. One row is in one cell of every level, so a level has sensitivity 1 whatever its number of
cells.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats
from sfumato.learning.noisy_sums import COUNT_STEPS, NoisySums
from sfumato.rationals import Number, rational

_LEVELS = 12
_CLEAR = 4.0
"""Standard deviations of noise above which a cell is cut."""


def noisy_cells(
    points: Floats, spread: Floats, *, share: Number, sums: NoisySums
) -> tuple[npt.NDArray[np.int64], Floats]:
    """The cell of every point (secret) and the noisy count of every cell (public). Points lie in -1 .. 1.

    ``spread`` is the noisy standard deviation of every feature.
    """
    part = rational(share) / _LEVELS
    deviation = sums.deviation(distance=COUNT_STEPS**2, share=part) / COUNT_STEPS
    lows, highs = [np.full(points.shape[1], -1.0)], [np.full(points.shape[1], 1.0)]
    cell = np.zeros(len(points), dtype=np.int64)
    counts = np.array([np.inf])
    for _ in range(_LEVELS):
        cut = np.flatnonzero(counts > _CLEAR * deviation)
        if not len(cut):
            break
        for old in cut.tolist():
            feature = int(np.argmax(spread * (highs[old] - lows[old])))
            middle = (lows[old][feature] + highs[old][feature]) / 2
            inside = (cell == old) & (points[:, feature] >= middle)
            cell[inside] = len(lows)
            lows.append(lows[old].copy())
            highs.append(highs[old].copy())
            lows[-1][feature] = highs[old][feature] = middle
        exact = np.bincount(cell, minlength=len(lows)) * COUNT_STEPS
        counts = sums.measure(exact, distance=COUNT_STEPS**2, share=part) / COUNT_STEPS
    return cell, counts
