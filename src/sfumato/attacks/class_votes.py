"""What the rows that may be a person's say about her sensitive value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import Match, match
from sfumato.attacks.counterfeit_weights import trust_in_rows
from sfumato.data.row_codes import positions
from sfumato.errors import NotApplicable

__all__ = ["Votes", "near", "reach_of"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Votes:
    """The released values of the secret column, and how rows that fit a person vote for them."""

    index: pl.Series
    """The distinct released values, sorted; votes are for places in it."""
    prior: Floats
    """Share of each value in the whole release."""
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
        held = sorted_codes >= 0
        keys, place = np.unique(classes[held] * len(index) + sorted_codes[held], return_inverse=True)
        trust = trust_in_rows(view)
        counts = np.bincount(place, weights=None if trust is None else trust[matched.order][held])
        return cls(
            index=index,
            prior=prior,
            matched=matched,
            _starts=np.searchsorted(keys // len(index), np.arange(len(matched.starts))).astype(np.int64),
            _values=keys % len(index),
            _counts=counts,
        )

    def cast(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        """For each combination of known values: its targets, the values that get votes, and how many."""
        for targets, candidates in self.matched.candidates():
            classes = candidates.classes
            lengths = self._starts[classes + 1] - self._starts[classes]
            first = np.repeat(self._starts[classes] - (np.cumsum(lengths) - lengths), lengths)
            place = np.arange(int(lengths.sum())) + first
            values, where = np.unique(self._values[place], return_inverse=True)
            weight = self._counts[place] * np.repeat(candidates.weight, lengths)
            yield targets, values, np.bincount(where, weights=weight).astype(np.float64)


def reach_of(index: pl.Series, tolerance: float) -> list[tuple[Ints, Ints]]:
    """For each of the sorted values, the first and the last place of those that it is near enough to be right for.

    Then the same for narrower tolerances, by which guesses that are right equally often are told apart: released
    amounts are seldom exact, so that the middle of what is likely is a better guess than its edge.
    """
    if tolerance == 0 or not index.dtype.is_numeric():
        return []
    level = index.cast(pl.Float64).to_numpy()
    found = []
    for narrower in (1, 3, 9):
        ends = level / (1 + tolerance / narrower), level / (1 - tolerance / narrower)
        first = np.searchsorted(level, np.minimum(*ends), "left")
        last = np.searchsorted(level, np.maximum(*ends), "right")
        found.append((first.astype(np.int64), last.astype(np.int64)))
    return found


def near(count: Floats, values: Ints, reaches: list[tuple[Ints, Ints]]) -> Floats:
    """The votes for each value (places, rising) and, where a guess may be off, for those within its reach.

    Votes within a narrower reach count a hundredth more each time. Votes of several people are rows.
    """
    if not reaches:
        return count
    total = np.concatenate([np.zeros_like(count[..., :1]), np.cumsum(count, axis=-1)], axis=-1)
    found = np.zeros_like(count)
    for weight, reach in zip((1.0, 0.01, 0.0001), reaches, strict=True):
        first, last = (np.searchsorted(values, ends[values], "left") for ends in reach)
        found += weight * (total[..., last] - total[..., first])
    return found / 1.0101
