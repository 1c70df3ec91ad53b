"""Bins of features with about equal counts, learned from noisy histograms.

Every feature has public fine cells: equal parts of a number's bounds, or the declared categories and one cell for all
other values. Their counts are measured once. Neighbouring cells of a number are then merged into bins, which is
post-processing: bins follow the data as far as its noisy histogram shows it, and cost nothing beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Array, Floats, Ints
from sfumato.dataset import RangeDomain, ValuesDomain
from sfumato.errors import BadParameter
from sfumato.learning.base import PrivateClassifier
from sfumato.learning.domain import FeatureDomain, category_codes
from sfumato.learning.noisy_sums import COUNT_STEPS, NoisySums
from sfumato.rationals import Number

FINE_CELLS = 256
"""Fine cells of a number."""


def fine_codes(domain: FeatureDomain, rows: Array) -> Ints:
    """The fine cell of every value: one line per feature."""
    lines = [
        category_codes(column, values)
        if isinstance(column, ValuesDomain)
        else np.minimum((column.position(values) * FINE_CELLS).astype(np.int64), FINE_CELLS - 1)
        for column, values in domain.read(rows)
    ]
    return np.array(lines, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class BinnedFeatures:
    """The bin of every fine cell, per feature. Public."""

    bins: tuple[Ints, ...]
    counts: tuple[Floats, ...]
    """The noisy number of rows in every bin."""
    ordered: tuple[bool, ...]
    """Whether the bins of a feature are intervals of a number."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of bins per feature."""
        return tuple(len(count) for count in self.counts)

    @property
    def rows(self) -> float:
        """The noisy number of rows: the mean over features, weighted by the precision of their sums."""
        weights = [1 / len(bins) for bins in self.bins]
        return max(1.0, float(np.average([count.sum() for count in self.counts], weights=weights)))


def learn_bins(domain: FeatureDomain, fine: Ints, *, bins: int, share: Number, sums: NoisySums) -> BinnedFeatures:
    """Measure the histograms of all features at a share of the budget, and merge the cells of numbers into bins."""
    sizes = [c.size + 1 if isinstance(c, ValuesDomain) else FINE_CELLS for c in domain.columns]
    exact = np.concatenate([np.bincount(line, minlength=size) for line, size in zip(fine, sizes, strict=True)])
    distance = len(sizes) * COUNT_STEPS**2
    noisy = sums.measure(exact * COUNT_STEPS, distance=distance, share=share) / COUNT_STEPS
    deviation = sums.deviation(distance=distance, share=share) / COUNT_STEPS
    counts = np.split(noisy, np.cumsum(sizes)[:-1])
    ordered = tuple(isinstance(column, RangeDomain) for column in domain.columns)
    merged = [
        _merge(count, deviation, bins) if number else np.arange(len(count))
        for count, number in zip(counts, ordered, strict=True)
    ]
    return BinnedFeatures(
        bins=tuple(merged),
        counts=tuple(
            np.bincount(groups, weights=count).astype(np.float64) for groups, count in zip(merged, counts, strict=True)
        ),
        ordered=ordered,
    )


def _merge(counts: Floats, deviation: float, bins: int) -> Ints:
    """Bins of about equal counts. A cell that is as large as a bin stays alone; cells below the noise count nothing."""
    seen = np.where(counts < 2 * deviation, 0.0, counts)
    target = max(float(seen.sum()) / bins, 3 * deviation)
    groups, current, total = np.zeros(len(counts), dtype=np.int64), 0, 0.0
    for cell, count in enumerate(seen):
        if total >= target or (total > 0 and count >= target):
            current, total = current + 1, 0.0
        groups[cell] = current
        total += float(count)
    return groups


def bins_of(bins: Sequence[npt.ArrayLike], fine: Ints) -> Ints:
    """The bins of coded rows, one line per feature."""
    return np.array([np.asarray(groups)[line] for groups, line in zip(bins, fine, strict=True)], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class BinnedFit:
    """What a fit on bins starts from, after the charge."""

    codes: Ints
    """The class of every row."""
    sums: NoisySums
    binned: BinnedFeatures
    lines: Ints
    """The bin of every row: one line per feature."""


class BinnedClassifier(PrivateClassifier):
    """A private classifier on bins of its features, which are learned with a share of the budget."""

    bins_: list[Ints]
    """Per feature, the bin of every fine cell."""

    def _fit_bins(self, X: object, y: object, *, share: Number, most: Mapping[str, int | None]) -> BinnedFit:  # noqa: N803
        """Check the input, charge the budget, and learn the bins. ``most`` bounds parameters that are whole numbers."""
        self._check_budget()
        for name, largest in most.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= (largest or value):
                allowed = "a whole number, 1 or larger" if largest is None else f"a whole number in 1 .. {largest}"
                raise BadParameter(f"`{name}` must be {allowed}.")
        rows, y = self._checked_rows(X, y, reset=True)
        codes, domain = self._codes(y), self._domain()
        fine, sums = fine_codes(domain, rows), self._charge()
        binned = learn_bins(domain, fine, bins=getattr(self, "bins"), share=share, sums=sums)  # noqa: B009
        self.bins_ = list(binned.bins)
        return BinnedFit(codes=codes, sums=sums, binned=binned, lines=bins_of(binned.bins, fine))

    def _lines(self, X: object) -> Ints:  # noqa: N803
        """The bin of every row of the input of a fitted model: one line per feature."""
        rows = self._fitted_rows(X)
        return bins_of(self.bins_, fine_codes(self._domain(), rows))
