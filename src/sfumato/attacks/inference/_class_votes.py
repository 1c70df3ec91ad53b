"""Votes of the matching equivalence classes for the values of a sensitive column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import Match, match
from sfumato.attacks.counterfeit_weights import counterfeit_weights
from sfumato.data.row_codes import positions
from sfumato.errors import NotApplicable

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Window = tuple[Ints, Ints]

_NARROWER = (1, 3, 9)
_WINDOW_WEIGHTS = (1.0, 0.01, 0.0001)


@dataclass(frozen=True, kw_only=True)
class Votes:
    """The released values of the sensitive column, and the votes of the rows that match a target."""

    index: pl.Series
    """The distinct released values, sorted; votes are for positions in it."""
    prior: Floats
    """Frequency of each value in the whole release."""
    matched: Match
    _starts: Ints
    _values: Ints
    _counts: Floats | Ints

    @classmethod
    def of(cls, view: View, *, in_release: bool = False) -> Votes:
        assert view.secret is not None
        secret = view.release.table.column(view.secret)
        index = secret.drop_nulls().unique().sort()
        if len(index) == 0:
            raise NotApplicable(f"The released column `{view.secret}` is empty.")
        codes = positions(secret, index).fill_null(-1).to_numpy()
        prior = np.bincount(codes[codes >= 0], minlength=len(index)) / max(1, int((codes >= 0).sum()))
        matched = match(view, in_release=in_release)
        sorted_codes = codes[matched.order]
        classes = np.repeat(np.arange(len(matched.starts) - 1), np.diff(matched.starts))
        present = sorted_codes >= 0
        keys, place = np.unique(classes[present] * len(index) + sorted_codes[present], return_inverse=True)
        weights = counterfeit_weights(view)
        counts = np.bincount(place, weights=None if weights is None else weights[matched.order][present])
        return cls(
            index=index,
            prior=prior,
            matched=matched,
            _starts=np.searchsorted(keys // len(index), np.arange(len(matched.starts))).astype(np.int64),
            _values=keys % len(index),
            _counts=counts,
        )

    def cast(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """For each combination of known values: its targets, the values that get votes, and the votes."""
        for targets, candidates in self.matched.candidates():
            classes = candidates.classes
            lengths = self._starts[classes + 1] - self._starts[classes]
            first = np.repeat(self._starts[classes] - (np.cumsum(lengths) - lengths), lengths)
            place = np.arange(int(lengths.sum())) + first
            values, where = np.unique(self._values[place], return_inverse=True)
            weight = self._counts[place] * np.repeat(candidates.weight, lengths)
            yield targets, values, np.bincount(where, weights=weight).astype(np.float64)


def tolerance_windows(index: pl.Series, tolerance: float) -> list[Window]:
    """For each of the sorted values the range of true values for which it is a correct guess (first, last position).

    Followed by the ranges for narrower tolerances, which break ties between guesses that are correct equally often:
    released amounts are seldom exact, so the centre of the likely values is a better guess than their edge. Empty
    without a tolerance.
    """
    if tolerance == 0 or not index.dtype.is_numeric():
        return []
    level = index.cast(pl.Float64).to_numpy()
    windows = []
    for narrower in _NARROWER:
        ends = level / (1 + tolerance / narrower), level / (1 - tolerance / narrower)
        first = np.searchsorted(level, np.minimum(*ends), "left")
        last = np.searchsorted(level, np.maximum(*ends), "right")
        windows.append((first.astype(np.int64), last.astype(np.int64)))
    return windows


def votes_within(count: Floats, values: Ints, windows: list[Window]) -> Floats:
    """The votes for each value (ascending positions), or with windows the votes within the window of each value.

    Each narrower window has a hundredth of the weight of the one before. Votes of several targets are rows.
    """
    if not windows:
        return count
    total = np.concatenate([np.zeros_like(count[..., :1]), np.cumsum(count, axis=-1)], axis=-1)
    within = np.zeros_like(count)
    for weight, window in zip(_WINDOW_WEIGHTS, windows, strict=True):
        first, last = (np.searchsorted(values, ends[values], "left") for ends in window)
        within += weight * (total[..., last] - total[..., first])
    return within / sum(_WINDOW_WEIGHTS)
