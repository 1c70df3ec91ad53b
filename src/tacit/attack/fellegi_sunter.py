"""Probabilistic record linkage: how much agreement in each column says that two records are one person's.

Every pair of a known and a released record falls into a pattern of comparison levels (how far apart numbers are,
whether categories fit). Patterns are counted once; the probabilities of levels among true matches come from expectation
maximization on the counts, those among all pairs from the counts themselves. Pairs are never stored.

Reference: Fellegi, I. P., Sunter, A. B. (1969). A theory for record linkage. Journal of the American Statistical
Association 64. doi:10.1080/01621459.1969.10501049
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit, prange

__all__ = ["Comparison", "Model", "fit", "link", "thresholds"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Both files, ready to be compared: numbers by distance, categories by a table of levels."""

    known: Floats
    released: Floats
    cuts: Floats
    """Per number column, the distances at which one level ends and the next begins."""
    known_codes: Ints
    released_codes: Ints
    fits: Bytes
    """Per category column, the level of each pair of values."""
    levels: Ints
    """Levels per column, numbers first."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Log of how much more likely each level is among matches than among all pairs."""

    weight: Floats
    matches: Floats
    pairs: Floats
    rounds: int


def thresholds(known: Floats, released: Floats, levels: int, draw: np.random.Generator) -> Floats:
    """Distances that random pairs rarely stay under: finer where a match would be."""
    count = min(200_000, 20 * max(len(known), len(released)))
    left, right = draw.integers(len(known), size=count), draw.integers(len(released), size=count)
    gap = np.abs(known[left] - released[right])
    share = np.geomspace(0.002, 0.5, levels - 1)
    return np.ascontiguousarray(np.quantile(gap, share, axis=0).T)


def fit(comparison: Comparison, *, rounds: int = 200, draw: np.random.Generator) -> Model:
    """Learn the weights from the files alone; nobody tells which pairs match."""
    people = len(comparison.known)
    # A few hundred people tell the weights well enough; every row of the release is compared with each of them.
    sample = int(np.clip(20_000_000 // max(1, len(comparison.released)), 100, 400))
    chosen = np.sort(draw.choice(people, sample, replace=False)) if people > sample else np.arange(people)
    counts = _patterns(
        comparison.known[chosen],
        comparison.released,
        comparison.cuts,
        comparison.known_codes[chosen],
        comparison.released_codes,
        comparison.fits,
        comparison.levels,
    )
    present = np.flatnonzero(counts)
    count = counts[present].astype(np.float64)
    level = np.column_stack(np.unravel_index(present, tuple(comparison.levels)))
    # Every person has one true row: the share of matches among pairs is known and need not be estimated.
    prior = 1 / len(comparison.released)
    width = len(comparison.levels)
    most = int(comparison.levels.max())
    pairs = np.full((width, most), 1e-12)
    matches = np.full((width, most), 1e-12)
    for column in range(width):
        size = int(comparison.levels[column])
        pairs[column, :size] += np.bincount(level[:, column], weights=count, minlength=size) / count.sum()
        # To begin with, a match is mostly in the nearest level, and less in each further one.
        start = 0.5 ** np.arange(size)
        matches[column, :size] = start / start.sum()
    done = 0
    for step in range(rounds):
        done = step + 1
        odds = prior / (1 - prior) * np.exp(sum(np.log(matches[c] / pairs[c])[level[:, c]] for c in range(width)))
        belief = count * odds / (1 + odds)
        updated = matches.copy()
        for column in range(width):
            size = int(comparison.levels[column])
            mass = np.bincount(level[:, column], weights=belief, minlength=size) + 0.5 / size
            updated[column, :size] = mass / mass.sum()
        change = float(np.abs(updated - matches).max())
        matches = updated
        if change < 1e-7:
            break
    return Model(weight=np.log(matches / pairs), matches=matches, pairs=pairs, rounds=done)


def link(comparison: Comparison, model: Model, draw: np.random.Generator) -> tuple[Ints, Floats]:
    """For each person the row of highest weight (ties at random), and its probability among all rows."""
    seeds = draw.integers(1, 2**62, size=len(comparison.known), dtype=np.int64)
    # Small blocks are done before two threads have started.
    best = _best if len(comparison.known) * len(comparison.released) > 2_000_000 else _best_alone
    return best(
        comparison.known,
        comparison.released,
        comparison.cuts,
        comparison.known_codes,
        comparison.released_codes,
        comparison.fits,
        model.weight,
        seeds,
    )


@njit(cache=True, parallel=True)
def _patterns(
    known: Floats, released: Floats, cuts: Floats, left: Ints, right: Ints, fits: Bytes, levels: Ints
) -> Ints:  # pragma: no cover - compiled
    size = 1
    for value in levels:
        size *= value
    parts = min(8, max(1, len(known)))
    counts = np.zeros((parts, size), dtype=np.int64)
    for part in prange(parts):
        for person in range(part, len(known), parts):
            for row in range(len(released)):
                code = 0
                for column in range(known.shape[1]):
                    gap = abs(known[person, column] - released[row, column])
                    level = 0
                    while level < cuts.shape[1] and gap > cuts[column, level]:
                        level += 1
                    code = code * levels[column] + level
                for column in range(left.shape[1]):
                    place = known.shape[1] + column
                    code = code * levels[place] + fits[column, left[person, column], right[row, column]]
                counts[part, code] += 1
    total = np.zeros(size, dtype=np.int64)
    for part in range(parts):
        total += counts[part]
    return total


@njit(cache=True, parallel=True)
def _best(
    known: Floats, released: Floats, cuts: Floats, left: Ints, right: Ints, fits: Bytes, weight: Floats, seeds: Ints
) -> tuple[Ints, Floats]:  # pragma: no cover - compiled
    found = np.zeros(len(known), dtype=np.int64)
    share = np.zeros(len(known))
    for person in prange(len(known)):
        state = np.uint64(seeds[person])
        best = -np.inf
        ties = 0
        total = 0.0
        for row in range(len(released)):
            score = 0.0
            for column in range(known.shape[1]):
                gap = abs(known[person, column] - released[row, column])
                level = 0
                while level < cuts.shape[1] and gap > cuts[column, level]:
                    level += 1
                score += weight[column, level]
            for column in range(left.shape[1]):
                score += weight[known.shape[1] + column, fits[column, left[person, column], right[row, column]]]
            if score > best:
                total = total * np.exp(best - score) + 1.0
                best = score
                found[person] = row
                ties = 1
            elif score > best - 40.0:
                total += np.exp(score - best)
                if score == best:
                    ties += 1
                    state ^= state << np.uint64(13)
                    state ^= state >> np.uint64(7)
                    state ^= state << np.uint64(17)
                    if (state >> np.uint64(11)) / 9007199254740992.0 * ties < 1.0:
                        found[person] = row
        share[person] = 1.0 / total
    return found, share


_best_alone = njit(cache=True)(_best.py_func)
