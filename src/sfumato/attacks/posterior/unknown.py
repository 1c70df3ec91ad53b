"""The channel of a column whose masking is not known: a mixture of all usual ones, with weights learned from the files.

| component | P(released \\| known) |
|---|---|
| kept | a value or label that equals or contains the known one, by its frequency; a blank stays blank |
| moved in rank | normal in ranks, for each of a few standard deviations; uniform in each of a few windows of ranks |
| moved in value | normal in values, for each of a few standard deviations |
| replaced | any released value, by its frequency; where both files have blanks, also with blanks that stay |
| suppressed | a blank |

Nobody's row is known. The weights are learned by expectation maximization, as in probabilistic record linkage: from the
current weights follow the probabilities of the rows of each person, and from these the weights of each column. A column
that tells little gets little weight in this way, and a rare value that was kept tells most.

Reference: Fellegi, I. P., Sunter, A. B. (1969). A theory for record linkage. doi:10.1080/01621459.1969.10501049
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import ndtr

from sfumato.arrays import Floats, Ints
from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.features import numbers
from sfumato.attacks.normalize import canonical
from sfumato.data.row_codes import positions
from sfumato.deadline import check_deadline
from sfumato.progress import Progress

Singles = npt.NDArray[np.float32]

_CELLS = 600
"""Cells of values on either side of a table."""
_LABELS = 400_000
"""Pairs of a known value and a released label that are compared one by one."""
_RANKS = (0.003, 0.01, 0.03, 0.1, 0.25)
"""Standard deviations of moves in rank, as shares of all ranks."""
_WINDOWS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Largest moves in rank, as shares of all ranks, where all moves up to them are equally likely."""
_VALUES = (0.003, 0.03, 0.1, 0.3, 0.6, 1.0)
"""Standard deviations of moves in value, in those of the known values."""
_START = (0.3, 0.25, 0.05)
"""Weights of kept, replaced and suppressed values to start from; the moves share the rest."""
_RESOLUTION = 0.003
"""Released values that are closer than this share of the standard deviation are ties."""
_ROUNDS = 30
_SCALINGS = 5
"""Rounds in which rows are given to different people."""
_PAIRS = 1_500_000
"""Pairs of a person and a row from which weights are learned."""
_TINY = 1e-30
_MOST = 0.2
"""The most weight of replaced values in one of the starts, as a share of the others. With much noise no row is told
from another, and replaced values explain everything before the moves are learned."""
_LEAST = 1e-4
"""The least weight of a replaced value, so that no column alone excludes a row."""


@dataclass(kw_only=True)
class MixtureColumn:
    """One column: cells of known and released values, and the likelihood ratio of each pair of cells by component."""

    name: str
    known: Ints
    released: Ints
    parts: Singles
    """For each component, each known and each released cell: P(released | known) / P(released | anybody)."""
    weights: Floats
    equal: tuple[Ints, Ints, Floats] | None = None
    """Codes of values too many for cells, and the likelihood ratio of a kept value by its code."""
    kept: float = 0.0
    """The weight of these."""

    exact: int = -1
    """The component of kept values, if it is one."""
    moves: int = 0
    """The number of components that are moves, the last ones."""
    most: float = np.inf
    """The most weight of replaced values, as a share of the others."""

    def moved(self, *, most: float = np.inf) -> MixtureColumn:
        """The same column for another start: most values were moved, if they can be."""
        weights, kept = self.weights.copy(), self.kept
        if self.moves:
            weights[0] /= 6
            weights[self.exact] /= 30 if self.exact >= 0 else 1
            kept /= 30
        return replace(self, weights=weights, kept=kept, most=most if self.moves else np.inf)

    @property
    def log(self) -> Singles:
        """The logarithm of the likelihood ratio of each pair of cells."""
        return np.asarray(np.log(np.maximum(np.tensordot(self.weights, self.parts, axes=1), _TINY)), dtype=np.float32)

    def log_ratio(self, log: Singles, part: slice) -> Singles:
        """Logarithms of the likelihood ratios of some targets with every row; ``log`` is that of the table."""
        ratio = log[self.known[part]][:, self.released]
        if self.equal is not None:
            person, row = self._equal_pairs(part)
            ratio[person, row] = np.log(np.exp(ratio[person, row]) + self._boost(row))
        return ratio

    def log_pairs(self, log: Singles, person: Ints, row: Ints) -> Singles:
        """The same of single pairs."""
        ratio = log[self.known[person], self.released[row]]
        if self.equal is not None:
            same = self.equal[0][person] == self.equal[1][row]
            ratio[same] = np.log(np.exp(ratio[same]) + self._boost(row[same]))
        return ratio

    def _boost(self, row: Ints) -> Singles:
        assert self.equal is not None
        return np.asarray(self.kept * self.equal[2][self.equal[1][row]], dtype=np.float32)

    def _equal_pairs(self, part: slice) -> tuple[Ints, Ints]:
        """The pairs of some targets and rows with equal values."""
        assert self.equal is not None
        known, released = self.equal[0][part], self.equal[1]
        order = np.argsort(released, kind="stable")
        first = np.searchsorted(released[order], known, "left")
        count = np.searchsorted(released[order], known, "right") - first
        inside = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(np.arange(len(known)), count), order[np.repeat(first, count) + inside]

    def learn(self, chance: Singles, part: slice, log: Singles) -> None:
        """New weights from the probabilities of the rows of some targets."""
        total = float(chance.sum())
        ratio = chance / np.exp(log)
        if self.equal is not None:
            person, row = self._equal_pairs(part)
            self.kept = float((ratio[person, row] * self._boost(row)).sum()) / total
        place = self.known[part][:, None] * self.parts.shape[2] + self.released[None, :]
        share = np.bincount(place.ravel(), ratio.ravel(), self.parts[0].size).reshape(self.parts.shape[1:])
        self.weights = self.weights * np.tensordot(self.parts, share, axes=2) / total
        self.weights[0] = max(self.weights[0], _LEAST)
        rest = self.weights.sum() + self.kept - self.weights[0]
        if self.weights[0] > self.most * rest > 0:
            scale = self.weights[0] / (self.most * rest)
            self.weights[1:] *= scale
            self.kept *= scale
            total = self.weights.sum() + self.kept
            self.weights, self.kept = self.weights / total, self.kept / total


def learned(targets: int, rows: int, columns: list[MixtureColumn], progress: Progress) -> list[MixtureColumn]:
    """Learn the weights of all columns together from some of the targets, who come in random order.

    Where values were exchanged, equal values mislead at first, and with much noise replaced ones: learning starts with
    and without them, and the most likely weights stay.
    """
    part = slice(0, max(1, min(targets, _PAIRS // max(rows, 1))))
    found = []
    for first in (columns, *([column.moved(most=most) for column in columns] for most in (np.inf, _MOST))):
        tried = list(first)
        for _ in range(_ROUNDS):
            check_deadline(progress)
            logs = [column.log_ratio(column.log, part) for column in tried]
            score = np.sum(logs, axis=0)
            top = score.max(axis=1, keepdims=True)
            chance = np.exp(score - top)
            total = chance.sum(axis=1, keepdims=True)
            likely = float((np.log(total) + top).sum())
            chance /= total
            for _ in range(_SCALINGS):
                # Different people have different rows.
                chance /= np.maximum(chance.sum(axis=0), 1.0)
                chance /= chance.sum(axis=1, keepdims=True)
            for column, log in zip(tried, logs, strict=True):
                column.learn(chance, part, log)
        found.append((likely, tried))
    return max(found, key=lambda one: one[0])[1]


def unknown_column(
    known: pl.Series, released: pl.Series, hierarchy: object, *, recoding: object, blanks_unknown: bool
) -> MixtureColumn | None:
    """A column with its components; None if it says nothing."""
    if released.n_unique() < 2:
        return None
    before, after = numbers(known), numbers(released)
    amounts = before is not None and after is not None and released.dtype != pl.String
    if amounts:
        assert before is not None
        assert after is not None
        seen = after[np.isfinite(after)]
        amounts = bool(np.isfinite(before).any()) and len(seen) > 0 and float(np.ptp(seen)) > 0
    few = known.n_unique() * released.n_unique() <= _LABELS
    if not amounts and not few:
        return _by_code(known, released)
    if few:
        read = compare(known, released, hierarchy, recoding=recoding)  # type: ignore[arg-type]
        left, right, sizes = read.known, read.released, (len(read.values), len(read.labels))
    else:
        assert before is not None
        assert after is not None
        left, right, sizes = _cells(before, after)
    share = np.bincount(right, minlength=sizes[1]) / len(right)
    blank_after = np.zeros(sizes[1], dtype=bool)
    blank_after[right[released.is_null().to_numpy()]] = True
    blank_before = np.zeros(sizes[0], dtype=bool)
    blank_before[left[known.is_null().to_numpy()]] = True
    parts = [np.ones(sizes)]
    start = [_START[1]]
    if blank_after.any():
        lost = np.zeros(sizes)
        lost[:, blank_after] = 1 / share[blank_after].sum()
        parts.append(lost)
        start.append(_START[2])
    if blank_after.any() and blank_before.any():
        stay = np.zeros(sizes)
        stay[np.ix_(blank_before, blank_after)] = 1 / share[blank_after].sum()
        stay[np.ix_(~blank_before, ~blank_after)] = 1 / max(share[~blank_after].sum(), 1e-12)
        parts.append(stay)
        start.append(_START[2])
    equal, kept, exact = None, 0.0, -1
    if few:
        fits = np.zeros(sizes)
        fits[np.repeat(np.arange(sizes[0]), np.diff(read.starts)), read.fits] = 1.0
        if blank_after.any() and blank_before.any():
            fits[np.ix_(blank_before, blank_after)] = 1.0
        total = (fits * share).sum(axis=1, keepdims=True)
        parts.append(np.divide(fits, total, out=np.zeros(sizes), where=total > 0))
        start.append(_START[0])
        exact = len(parts) - 1
    else:
        code, kept = _codes(known, released), _START[0]
        equal = code
    if amounts:
        assert before is not None
        assert after is not None
        moves = _moves(before, after, left, right, sizes, blank_before, blank_after)
        parts += moves
        start += [(1 - sum(_START)) / len(moves)] * len(moves)
    if blanks_unknown:
        for part in parts:
            part[blank_before] = 1.0
    weights = np.array(start) / (sum(start) + kept)
    stacked = np.stack(parts).astype(np.float32)
    return MixtureColumn(
        name=known.name, known=left, released=right, parts=stacked, weights=weights, equal=equal,
        kept=kept / (sum(start) + kept), exact=exact, moves=len(moves) if amounts else 0,
    )  # fmt: skip


def _by_code(known: pl.Series, released: pl.Series) -> MixtureColumn | None:
    """A text with many values: kept or replaced."""
    equal = _codes(known, released)
    if not np.isin(equal[0], equal[1]).any():
        return None
    return MixtureColumn(
        name=known.name, known=np.zeros(len(known), np.int64), released=np.zeros(len(released), np.int64),
        parts=np.ones((1, 1, 1), np.float32), weights=np.array([0.5]), equal=equal, kept=0.5,
    )  # fmt: skip


def _codes(known: pl.Series, released: pl.Series) -> tuple[Ints, Ints, Floats]:
    """Codes of equal values in both files, and one over the frequency of each released one."""
    labels = canonical(released)
    index = labels.drop_nulls().unique()
    right = positions(labels, index).fill_null(len(index)).to_numpy().astype(np.int64)
    left = positions(canonical(known), index).fill_null(-1).to_numpy().astype(np.int64)
    left[known.is_null().to_numpy()] = len(index)
    count = np.bincount(right, minlength=len(index) + 1)
    return left, right, len(right) / np.maximum(count, 1)


def _cells(before: Floats, after: Floats) -> tuple[Ints, Ints, tuple[int, int]]:
    """Numbers in intervals of equally many released values; the last cell is for blanks."""
    ordered = np.sort(after[np.isfinite(after)])
    edges = np.unique(ordered[(np.arange(1, _CELLS) * len(ordered)) // _CELLS])
    size = len(edges) + 2
    left, right = (
        np.where(np.isfinite(values), np.searchsorted(edges, np.nan_to_num(values), "right"), size - 1)
        for values in (before, after)
    )
    return left.astype(np.int64), right.astype(np.int64), (size, size)


def _moves(
    before: Floats, after: Floats, left: Ints, right: Ints, sizes: tuple[int, int], *blanks: Floats
) -> list[Floats]:
    """Normal moves in rank and in value, as ratios to the frequencies of released cells."""
    share = np.bincount(right, minlength=sizes[1]) / len(right)
    same = 1 / max(share[blanks[1]].sum(), 1e-12) if blanks[1].any() else 1.0
    ordered = np.sort(after[np.isfinite(after)])
    many = 2 * np.isfinite(before).sum() >= len(ordered)
    own = before[np.isfinite(before)] if many else ordered
    result = []
    scales: tuple[float, ...]
    for ranks in (True, False):
        if ranks:
            one, other = _rank(before, np.sort(own)), _rank(after, ordered)
            scales, anybody = (*_RANKS, *(-window for window in _WINDOWS)), np.ones(sizes[1])
        else:
            middle, spread = (own.mean(), own.std()) if own.std() > 0 else (ordered.mean(), ordered.std())
            if not 1e-150 < spread < 1e150:
                continue
            one, other = (np.clip((values - middle) / spread, -1e4, 1e4) for values in (before, after))
            scales, anybody = _VALUES, _density(other, right, sizes[1])
        start, end = _means(one, left, sizes[0]), _means(other, right, sizes[1])
        for scale in scales:
            if scale < 0:
                low, high = np.maximum(start + scale, 0), np.minimum(start - scale, 1)
                density = (np.abs(end[None, :] - start[:, None]) <= -scale) / np.maximum(high - low, 1e-9)[:, None]
            else:
                density = np.exp(-0.5 * np.minimum(((end[None, :] - start[:, None]) / scale) ** 2, 200.0))
                density /= (2 * np.pi) ** 0.5 * scale * anybody
                if ranks:
                    density /= np.maximum(ndtr((1 - start) / scale) - ndtr(-start / scale), 1e-9)[:, None]
            density[:, blanks[1]] = 0.0
            # Ties make the density of anybody uncertain; no person can be more likely than all rows together.
            part = density / np.maximum(density @ share, 1.0)[:, None]
            part[blanks[0]] = 0.0
            part[np.ix_(blanks[0], blanks[1])] = same
            result.append(part)
    return result


def _density(values: Floats, cells: Ints, size: int) -> Floats:
    """The density of released values in each cell: how far apart the nearest ones are."""
    ordered = np.sort(values[np.isfinite(values)])
    near = max(2, int(len(ordered) ** 0.5) // 2)
    place = np.searchsorted(ordered, values)
    low, high = np.maximum(place - near, 0), np.minimum(place + near, len(ordered) - 1)
    width = np.maximum(ordered[high] - ordered[np.minimum(low, high)], _RESOLUTION)
    return np.exp(np.minimum(_means(np.log((high - low) / width / len(ordered)), cells, size), 50.0))


def _rank(values: Floats, ordered: Floats) -> Floats:
    place = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    return np.where(np.isfinite(values), place / len(ordered), np.nan)


def _means(values: Floats, cells: Ints, size: int) -> Floats:
    """The mean value of each cell; far away where a cell is empty."""
    there = np.isfinite(values)
    count = np.bincount(cells[there], minlength=size)
    total = np.bincount(cells[there], values[there], size)
    return np.asarray(np.divide(total, count, out=np.full(size, 1e6), where=count > 0))
