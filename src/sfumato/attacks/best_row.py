"""The row with the highest score, with ties broken at random, in one pass (compiled).

Scores come in pieces that
stay in the cache.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.kernels import kernel

Floats = npt.NDArray[np.float64]

PIECE = 512
"""Number of scores per piece."""

Best = tuple[float, float, int, int, np.uint64]
"""The state after some rows: highest score, sum of exp(score - highest), number of rows with the highest score, the
chosen one of them, and the state of the random number generator."""

_FAR = 30.0
"""A row whose score is this far below the highest is negligible in the sum, even a million of them."""


@kernel()
def next_random(state: np.uint64) -> tuple[np.uint64, float]:  # pragma: no cover - compiled
    """The next state of the generator (xorshift, never zero) and a number in [0, 1)."""
    state = np.uint64(state)  # called from Python, it is a signed number
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state, (state >> np.uint64(11)) / 9007199254740992.0


@kernel()
def start(seed: int) -> Best:  # pragma: no cover - compiled
    """The state before the first row; the seed is positive."""
    return -np.inf, 0.0, 0, -1, np.uint64(seed)


@kernel()
def best_of(state: Best, scores: Floats, count: int, first: int) -> Best:  # pragma: no cover - compiled
    """The state after ``count`` more scores, those of the rows from ``first`` on."""
    best, total, ties, row, random = state
    for place in range(count):
        score = scores[place]
        if score > best:
            total = total * np.exp(best - score) + 1.0
            best = score
            row = first + place
            ties = 1
        elif score > best - _FAR:
            total += np.exp(score - best)
            if score == best:
                # Reservoir sampling: each of the tied rows is equally likely to be chosen at the end.
                ties += 1
                random, chance = next_random(random)
                if chance * ties < 1.0:
                    row = first + place
    return best, total, ties, row, random


@kernel()
def share_of(state: Best) -> float:  # pragma: no cover - compiled
    """The probability of the chosen row among all rows, if scores are log-odds."""
    return 1.0 / state[1] if state[3] >= 0 else 0.0
