"""The best row for a person: highest score wins, equal scores are chosen among at random, in one pass.

Compiled once and called by every attack that scores rows, so that a tie is broken in one way everywhere: an intruder
who cannot tell two rows apart tosses a coin. Scores come in pieces, as many at a time as stay in the cache.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["FAR", "PIECE", "Held", "best_of", "share_of", "start", "toss"]

Floats = npt.NDArray[np.float64]

PIECE = 512
"""So many scores at a time."""

Held = tuple[float, float, int, int, np.uint64]
"""What is known of the rows seen so far: highest score, sum of exp(score - highest), how many rows share the highest,
which of them is held, and the state of the coin."""

FAR = 30.0
"""A row whose score lies so far below the highest adds nothing to the sum, were there a million of them."""


@njit(cache=True)
def toss(state: np.uint64) -> tuple[np.uint64, float]:  # pragma: no cover - compiled
    """The next state of the generator (xorshift, never zero) and a number from 0 to 1."""
    state = np.uint64(state)  # called from Python it comes as a signed number
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state, (state >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True)
def start(seed: int) -> Held:  # pragma: no cover - compiled
    """Nothing seen yet; the seed is positive."""
    return -np.inf, 0.0, 0, -1, np.uint64(seed)


@njit(cache=True)
def best_of(held: Held, scores: Floats, count: int, first: int) -> Held:  # pragma: no cover - compiled
    """Look at ``count`` more scores, those of the rows from ``first`` on."""
    best, total, ties, found, state = held
    for place in range(count):
        score = scores[place]
        if score > best:
            total = total * np.exp(best - score) + 1.0
            best = score
            found = first + place
            ties = 1
        elif score > best - FAR:
            total += np.exp(score - best)
            if score == best:
                # Reservoir: each of the equally good rows is equally likely to be held at the end.
                ties += 1
                state, chance = toss(state)
                if chance * ties < 1.0:
                    found = first + place
    return best, total, ties, found, state


@njit(cache=True)
def share_of(held: Held) -> float:  # pragma: no cover - compiled
    """The probability of the row that is held, among all rows seen, when scores are logarithms of odds."""
    return 1.0 / held[1] if held[3] >= 0 else 0.0
