"""The Fellegi–Sunter model of record linkage, estimated by expectation maximization.

Every pair of a known and a released record has a comparison pattern (one level per column), which is encoded as one
number. Patterns are counted for a sample of targets; the probabilities of levels among matches (m) and non-matches (u)
are estimated from the counts. Then the weight of every pair is looked up by its pattern. Pairs are never stored.

Reference: Fellegi, I. P., Sunter, A. B. (1969). A theory for record linkage. Journal of the American Statistical
Association 64. doi:10.1080/01621459.1969.10501049
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.attacks.best_row import PIECE, best_of, share_of, start
from sfumato.attacks.record_linkage.probabilistic_linkage.blocking import Blocks
from sfumato.attacks.record_linkage.probabilistic_linkage.comparisons import Labels, Numbers
from sfumato.deadline import batches
from sfumato.kernels import kernel
from sfumato.progress import SILENT, Progress
from sfumato.threads import map_slices

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_MAX_TARGETS = 4000
_MAX_PAIRS = 20_000_000
"""Weights are estimated from at most this many targets and pairs, but from at least 100 targets."""
_PORTION = 50_000_000
"""Number of pairs compared, in a fraction of a second, between two checks of the deadline."""


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """Both files in a layout for fast computation of patterns. Release rows are sorted by block."""

    blocks: Blocks
    known: Floats
    released: Floats
    """One row per numeric column."""
    cuts: Floats
    known_codes: Ints
    released_codes: npt.NDArray[np.int32]
    """One row per label column; labels are numbered consecutively over all columns."""
    starts: Ints
    fits: npt.NDArray[np.int32]
    level: Bytes
    """For each known value (numbered consecutively over all label columns) the labels that do not simply disagree."""
    rest: Bytes
    """The level of each label for values that it does not match."""
    levels: Ints
    """Number of levels per column, numbers first; plus one for unknown values where they occur."""
    blank: npt.NDArray[np.bool_]
    """Columns whose last level means "unknown"."""

    @property
    def stride(self) -> Ints:
        """The contribution of one level of each column to the number of the pattern."""
        return np.cumprod(np.concatenate([[1], self.levels[:0:-1]]))[::-1].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Model:
    """Match weights: the logarithm of m / u for each level of each column."""

    weight: Floats
    matches: Floats
    others: Floats
    rounds: int

    @property
    def bits(self) -> list[float]:
        """Expected evidence of each column for a true match, in bits."""
        gain = (self.matches * self.weight).sum(axis=1) / np.log(2)
        return [float(value) for value in gain]


def patterns(near: list[Numbers], fitted: list[Labels], cuts: Floats, blocks: Blocks) -> Patterns:
    """Lay out the columns: one row per numeric column, labels numbered consecutively over all columns."""
    people, rows = len(blocks.first), len(blocks.order)
    value_at = np.cumsum([0, *(len(column.starts) - 1 for column in fitted)])
    label_at = np.cumsum([0, *(column.labels for column in fitted)])
    fit_at = np.cumsum([0, *(len(column.fits) for column in fitted)])
    starts = [column.starts[:-1] + at for column, at in zip(fitted, fit_at, strict=False)]
    fits = [column.fits + at for column, at in zip(fitted, label_at, strict=False)]
    known_codes = [column.known + at for column, at in zip(fitted, value_at, strict=False)]
    released_codes = [column.released[blocks.order] + at for column, at in zip(fitted, label_at, strict=False)]
    rest = [np.full(column.labels, column.levels - 1, dtype=np.uint8) for column in fitted]
    count = cuts.shape[1] + 1
    blank = np.array([column.blank for column in near] + [column.blank for column in fitted], dtype=np.bool_)
    return Patterns(
        blocks=blocks,
        known=np.column_stack([column.known for column in near]) if near else np.empty((people, 0)),
        released=np.stack([column.released[blocks.order] for column in near]) if near else np.empty((0, rows)),
        cuts=np.ascontiguousarray(cuts),
        known_codes=np.column_stack(known_codes) if fitted else np.empty((people, 0), np.int64),
        released_codes=np.array(released_codes, dtype=np.int32).reshape(len(fitted), rows),
        starts=np.concatenate([*starts, fit_at[-1:]]).astype(np.int64),
        fits=np.concatenate([*fits, np.empty(0)]).astype(np.int32),
        level=np.concatenate([*(column.level for column in fitted), np.empty(0)]).astype(np.uint8),
        rest=np.concatenate([*rest, np.empty(0)]).astype(np.uint8),
        levels=np.array([count] * len(near) + [column.levels for column in fitted], dtype=np.int64) + blank,
        blank=blank,
    )


def fit(pattern: Patterns, *, rounds: int = 200, draw: np.random.Generator) -> Model:
    """Estimate the weights from both files without known matches."""
    blocks = pattern.blocks
    size = blocks.last - blocks.first
    chosen = draw.permutation(np.flatnonzero(size))[:_MAX_TARGETS]
    enough = max(100, int(np.searchsorted(np.cumsum(size[chosen]), _MAX_PAIRS)))
    chosen = np.sort(chosen[:enough])
    layout, combinations = _layout(pattern), int(np.prod(pattern.levels))
    counts = np.sum(
        map_slices(lambda part: _counted(chosen[part], *layout, combinations), slice(0, len(chosen))), axis=0
    )
    present = np.flatnonzero(counts)
    count = counts[present].astype(np.float64)
    level = np.column_stack(np.unravel_index(present, tuple(pattern.levels))).astype(np.uint8)
    # Every target has one true row, so the share of matches among pairs is known.
    prior = min(0.5, len(chosen) / count.sum())
    informative = pattern.levels - pattern.blank
    width, most = len(informative), int(pattern.levels.max())
    matches, others = np.ones((width, most)), np.ones((width, most))
    marginal = _mass(level, count, width, most)
    for column, size_of in enumerate(informative):
        # Initially, the probability of a match halves from level to level.
        matches[column, :size_of] = _shares(0.5 ** np.arange(size_of))
        others[column, :size_of] = _shares(marginal[column, :size_of])
    done = 0
    for step in range(rounds):
        done = step + 1
        expected = _mass(level, count * _belief(level, np.log(matches / others), prior), width, most)
        change = 0.0
        for column, size_of in enumerate(informative):
            updated = _shares(expected[column, :size_of])
            change = max(change, float(np.abs(updated - matches[column, :size_of]).max()))
            matches[column, :size_of] = updated
            others[column, :size_of] = _shares(marginal[column, :size_of] - expected[column, :size_of])
        if change < 1e-7:
            break
    return Model(weight=np.log(matches / others), matches=matches, others=others, rounds=done)


def link(
    pattern: Patterns, model: Model, draw: np.random.Generator, progress: Progress = SILENT
) -> tuple[Ints, Floats]:
    """For each target the row with the highest weight (ties at random), and its probability within the block.

    A target whose block has no rows gets -1 and a probability of 0. If time is up, the result contains the targets
    processed, from the first on.
    """
    people = len(pattern.blocks.first)
    seeds = draw.integers(1, 2**62, size=people, dtype=np.int64)
    table = np.zeros(1)
    for column, levels in enumerate(pattern.levels):
        table = (table[:, None] + model.weight[column, :levels]).ravel()
    best, share = np.full(people, -1, dtype=np.int64), np.zeros(people)
    done = 0
    size = max(1, _PORTION * people // max(1, pattern.blocks.pairs))
    layout, order = _layout(pattern), np.arange(people)

    def link_some(some: slice) -> None:
        _linked(order[some], *layout, table, seeds, best, share)

    for part in batches(progress, "probabilistic linkage", people, size):
        # Targets of one block are processed together, because their rows are in the cache.
        order[part] = part.start + np.argsort(pattern.blocks.first[part], kind="stable")
        map_slices(link_some, part)
        done = part.stop
    row = np.where(best >= 0, pattern.blocks.order[best], -1)
    return row[:done], share[:done]


def _shares(mass: Floats) -> Floats:
    """Probabilities from counts, with half a pseudo-observation spread over all levels."""
    kept = np.maximum(mass, 0.0) + 0.5 / len(mass)
    return np.asarray(kept / kept.sum())


Layout = tuple[
    Ints, Ints, Floats, Floats, Floats, Ints, npt.NDArray[np.int32], Ints, npt.NDArray[np.int32], Bytes, Bytes, Ints,
    npt.NDArray[np.bool_],
]  # fmt: skip


def _layout(pattern: Patterns) -> Layout:
    return (
        pattern.blocks.first, pattern.blocks.last, pattern.known, pattern.released, pattern.cuts, pattern.known_codes,
        pattern.released_codes, pattern.starts, pattern.fits, pattern.level, pattern.rest, pattern.stride,
        pattern.blank,
    )  # fmt: skip


@kernel()
def _mass(level: Bytes, weight: Floats, width: int, most: int) -> Floats:  # pragma: no cover - compiled
    total = np.zeros((width, most))
    for place in range(len(level)):
        for column in range(width):
            total[column, level[place, column]] += weight[place]
    return total


@kernel()
def _belief(level: Bytes, weight: Floats, prior: float) -> Floats:  # pragma: no cover - compiled
    belief = np.empty(len(level))
    base = np.log(prior / (1.0 - prior))
    for place in range(len(level)):
        score = base
        for column in range(level.shape[1]):
            score += weight[column, level[place, column]]
        belief[place] = 1.0 / (1.0 + np.exp(-score))
    return belief


@kernel()
def _codes(
    code: Ints, first: int, count: int, person: int, known: Floats, released: Floats, cuts: Floats,
    codes: npt.NDArray[np.int32], meaning: Bytes, stride: Ints, blank: npt.NDArray[np.bool_],
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """The patterns of one target and ``count`` rows from ``first`` on."""
    for place in range(count):
        code[place] = 0
    for column in range(known.shape[1]):
        value, step = known[person, column], stride[column]
        line = released[column, first : first + count]
        # One pass per cut is vectorized by the compiler; a search for the level would not be.
        for cut in cuts[column]:
            for place in range(count):
                code[place] += 0 if abs(line[place] - value) <= cut else step
        if blank[column]:
            for place in range(count):
                code[place] += step if line[place] - value != line[place] - value else 0
    for column in range(codes.shape[0]):
        step = stride[known.shape[1] + column]
        word = codes[column, first : first + count]
        for place in range(count):
            code[place] += step * meaning[word[place]]


@kernel()
def _mean(
    meaning: Bytes, values: Ints, starts: Ints, fits: npt.NDArray[np.int32], level: Bytes
) -> None:  # pragma: no cover - compiled
    """Set the level of each label for a target with these values."""
    for value in values:
        for place in range(starts[value], starts[value + 1]):
            meaning[fits[place]] = level[place]


@kernel()
def _forget(
    meaning: Bytes, values: Ints, starts: Ints, fits: npt.NDArray[np.int32], rest: Bytes
) -> None:  # pragma: no cover - compiled
    for value in values:
        for place in range(starts[value], starts[value + 1]):
            meaning[fits[place]] = rest[fits[place]]


@kernel(nogil=True)
def _counted(
    chosen: Ints, begin: Ints, end: Ints, known: Floats, released: Floats, cuts: Floats, values: Ints,
    codes: npt.NDArray[np.int32], starts: Ints, fits: npt.NDArray[np.int32], level: Bytes, rest: Bytes, stride: Ints,
    blank: npt.NDArray[np.bool_], size: int,
) -> Ints:  # pragma: no cover - compiled  # fmt: skip
    counts = np.zeros(size, dtype=np.int64)
    meaning = rest.copy()
    code = np.empty(PIECE, dtype=np.int64)
    for person in chosen:
        _mean(meaning, values[person], starts, fits, level)
        for first in range(begin[person], end[person], PIECE):
            count = min(PIECE, end[person] - first)
            _codes(code, first, count, person, known, released, cuts, codes, meaning, stride, blank)
            for place in range(count):
                counts[code[place]] += 1
        _forget(meaning, values[person], starts, fits, rest)
    return counts


@kernel(nogil=True)
def _linked(
    order: Ints, begin: Ints, end: Ints, known: Floats, released: Floats, cuts: Floats, values: Ints,
    codes: npt.NDArray[np.int32], starts: Ints, fits: npt.NDArray[np.int32], level: Bytes, rest: Bytes, stride: Ints,
    blank: npt.NDArray[np.bool_], table: Floats, seeds: Ints, best: Ints, share: Floats,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    meaning = rest.copy()
    code = np.empty(PIECE, dtype=np.int64)
    score = np.empty(PIECE)
    for person in order:
        _mean(meaning, values[person], starts, fits, level)
        state = start(seeds[person])
        for first in range(begin[person], end[person], PIECE):
            count = min(PIECE, end[person] - first)
            _codes(code, first, count, person, known, released, cuts, codes, meaning, stride, blank)
            for place in range(count):
                score[place] = table[code[place]]
            state = best_of(state, score, count, first)
        best[person] = state[3]
        share[person] = share_of(state)
        _forget(meaning, values[person], starts, fits, rest)
