"""Scores: the log-likelihood ratio of a released row for a person, summed over the terms of all columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Floats, Ints
from sfumato.attacks.candidate_rows import Match
from sfumato.attacks.posterior.unknown import MixtureColumn
from sfumato.masking.channel import IMPOSSIBLE, EqualChannel, PointChannel, StepChannel, TableChannel

Singles = npt.NDArray[np.float32]

_REMOVED_OTHERWISE = 0.1
"""Probability that rows of an ordered file were not removed at random."""
_GRID = 0.05
"""Step, in standard deviations of the noise, of the grid on which the density of released values is computed."""
_MOST_CELLS = 2_000_000
"""Points of that grid."""


@dataclass(frozen=True, kw_only=True)
class _Points:
    known: Singles
    released: Singles
    spread: Singles | None
    holes: bool


@dataclass(frozen=True, kw_only=True)
class RowEvidence:
    """Scores of pairs of a target and a released row."""

    targets: int
    rows: int
    columns: tuple[str, ...]
    """The columns that are compared."""
    bonus: Floats
    """For each row the part of its score that does not depend on the target: rare values are stronger evidence."""
    matched: Match | None = None
    """Columns whose released labels contain the known values."""
    equal: tuple[tuple[Ints, Ints], ...] = ()
    tables: tuple[tuple[Ints, Ints, Singles], ...] = ()
    points: tuple[_Points, ...] = ()
    forgiving: bool = False
    """Whether blanks are no evidence: cells were suppressed, or a blank means that the adversary does not know."""
    position: tuple[Ints, int] | None = None
    """The place of each target in the original whose order was kept, and how many rows were removed."""
    estimated: tuple[str, ...] = ()
    """Columns whose channel was estimated by rerunning the published steps, or by distance."""
    rounds: int = 0
    """How often the published steps were rerun for them."""
    unknown: tuple[tuple[MixtureColumn, Singles], ...] = ()
    """Columns whose masking is not known, and the logarithms of their likelihood ratios."""

    def block(self, part: slice) -> Singles:
        """The scores of some targets with every row."""
        count = len(range(*part.indices(self.targets)))
        scores = np.tile(self.bonus.astype(np.float32), (count, 1))
        for known, released, table in self.tables:
            scores += table[known[part]][:, released]
        for points in self.points:
            scores += self._distances(points, part)
        for column, log in self.unknown:
            scores += column.log_ratio(log, part)
        for known, released in self.equal:
            scores[known[part][:, None] != released[None, :]] += IMPOSSIBLE
        if self.position is not None:
            scores += self._place(self.position[0][part][:, None], np.arange(self.rows)[None, :], self.position[1])
        if self.matched is not None:
            scores[~self.matched.fits_every_row(part)] += IMPOSSIBLE
        return scores

    def pairs(self, person: Ints, row: Ints) -> Singles:
        """The scores of single pairs."""
        scores = self.bonus[row].astype(np.float32)
        for known, released, table in self.tables:
            scores += table[known[person], released[row]]
        for points in self.points:
            scores += self._distance(points.known[person], points.released[row], points.spread, person)
        for column, log in self.unknown:
            scores += column.log_pairs(log, person, row)
        for known, released in self.equal:
            scores[known[person] != released[row]] += IMPOSSIBLE
        if self.position is not None:
            scores += self._place(self.position[0][person], row, self.position[1])
        if self.matched is not None:
            scores[~self.matched.fits(person, row)] += IMPOSSIBLE
        return scores

    def _place(self, place: Ints, row: Ints, removed: int) -> Singles:
        """The evidence of a kept order: as many rows stand before a person as were released of those before them.

        If rows were removed at random, that number is hypergeometric, here by its normal approximation. Rows that were
        not may have any place that is possible, with a small probability.
        """
        before = place - row
        possible = (before >= 0) & (before <= removed)
        others = max(self.rows + removed - 1, 1)
        share = (self.rows - 1) / others
        variance = place * share * (1 - share) * (others - place) / max(others - 1, 1) + 0.25
        normal = np.exp(-0.5 * (row - place * share) ** 2 / variance) / np.sqrt(2 * np.pi * variance)
        likely = (1 - _REMOVED_OTHERWISE) * normal + _REMOVED_OTHERWISE / (removed + 1)
        return np.where(possible, np.log(likely * self.rows), IMPOSSIBLE).astype(np.float32)

    def _distances(self, points: _Points, part: slice) -> Singles:
        known, spread = points.known[part], points.spread
        if points.holes:
            total = np.zeros((len(known), self.rows), dtype=np.float32)
            person = np.arange(self.targets)[part]
            for left, number, out in zip(known, person, total, strict=True):
                out[:] = self._distance(left[None, :], points.released, spread, np.array([number]))
            return total
        square = (known**2).sum(axis=1)[:, None] + (points.released**2).sum(axis=1)[None, :]
        square -= 2 * (known @ points.released.T)
        np.maximum(square, 0.0, out=square)
        if spread is not None:
            square = square / spread[part][:, None] ** 2 + 2 * known.shape[1] * np.log(spread[part])[:, None]
        return np.asarray(-0.5 * square, dtype=np.float32)

    def _distance(self, known: Singles, released: Singles, spread: Singles | None, person: Ints) -> Singles:
        gap = known - released
        if spread is not None:
            gap = gap / spread[person][:, None]
        square = -0.5 * gap**2
        blank, gone = np.isnan(known), np.isnan(released)
        square = np.where(blank | gone, 0.0 if self.forgiving else np.where(blank & gone, 0.0, IMPOSSIBLE), square)
        total = square.sum(axis=1, dtype=np.float32)
        if spread is not None:
            total = total - known.shape[1] * np.log(spread[person])
        return np.asarray(total, dtype=np.float32)


class ChannelTerms:
    """The terms of the score that follow from channels, as they are added."""

    def __init__(self, rows: int) -> None:
        self.bonus = np.zeros(rows)
        self.equal: list[tuple[Ints, Ints]] = []
        self.tables: list[tuple[Ints, Ints, Singles]] = []
        self.points: list[_Points] = []

    @property
    def empty(self) -> bool:
        return not (self.equal or self.tables or self.points)

    def add(self, channel: StepChannel) -> None:
        if isinstance(channel, EqualChannel):
            self.equal.append((channel.known, channel.released))
            number, count = np.unique(channel.released, return_counts=True)
            self.bonus -= np.log(count / len(self.bonus))[np.searchsorted(number, channel.released)]
        elif isinstance(channel, TableChannel):
            anybody = channel.weight @ np.exp(channel.log)
            table = channel.log - np.log(np.maximum(anybody, np.exp(IMPOSSIBLE)))[None, :]
            self.tables.append((channel.known, channel.released, np.maximum(table, IMPOSSIBLE).astype(np.float32)))
        elif isinstance(channel, PointChannel):
            known, released = channel.known, channel.released
            middle = np.nanmean(np.where(np.isfinite(released), released, np.nan), axis=0)
            known, released = known - middle, released - middle  # so that single precision suffices
            for place in range(known.shape[1]):
                self.bonus -= _log_density(known[:, place], released[:, place])
            holes = bool(np.isnan(known).any() or np.isnan(released).any())
            spread = None if channel.spread is None else channel.spread.astype(np.float32)
            self.points.append(
                _Points(
                    known=known.astype(np.float32), released=released.astype(np.float32), spread=spread, holes=holes
                )
            )
        else:  # pragma: no cover - a new form of channel needs its term here
            raise TypeError(type(channel))


def _log_density(known: Floats, released: Floats) -> Floats:
    """The log-density of released values for anybody: known values with standard normal noise, without its constant."""
    known, seen = known[np.isfinite(known)], np.isfinite(released)
    result = np.zeros(len(released))
    if not len(known) or not seen.any():
        return result
    low, high = min(known.min(), released[seen].min()) - 6, max(known.max(), released[seen].max()) + 6
    cells = int(np.clip((high - low) / _GRID, 200, _MOST_CELLS))
    width = (high - low) / cells
    count = np.bincount(np.minimum(((known - low) / width).astype(np.int64), cells - 1), minlength=cells)
    reach = max(1, int(np.ceil(6 / width)))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * width) ** 2)
    from scipy.signal import fftconvolve

    density = np.maximum(fftconvolve(count / len(known), kernel, mode="same"), 1e-12)
    place = np.minimum(((released[seen] - low) / width).astype(np.int64), cells - 1)
    result[seen] = np.log(density[place])
    return result
