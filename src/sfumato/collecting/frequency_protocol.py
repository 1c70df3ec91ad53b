"""Frequency protocols: each person reports one of d public values, the collector estimates how many have each.

Every protocol here is described by two probabilities (Wang, Blocki, Li, Jha 2017): a report *supports* the true value
with probability p and any other value with probability q. Two values whose support differs are told apart by one
likelihood ratio, whose logarithm is the privacy loss; it is computed exactly from the integer chances that the sampler
uses, and rounded up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.collecting.estimates import FrequencyEstimate, Tally, score_interval, two_sided
from sfumato.collecting.local_protocol import BATCH, LocalProtocol, self_tested
from sfumato.collecting.random_source import OS_ENTROPY, RandomSource
from sfumato.errors import BadParameter

Flags = npt.NDArray[np.bool_]
Reports = npt.NDArray[np.uint8]
"""One row of bytes per report."""

_TESTED_VALUES = 64


class FrequencyProtocol(LocalProtocol):
    """Base of frequency protocols: a randomizer for one device, a tally and an estimate for the collector."""

    main: ClassVar[str | None] = None
    shared_hashes: ClassVar[bool] = False
    """Whether all people use the same few public hash functions, so that two values may collide for good."""

    values: Annotated[int, Field(ge=2, le=1 << 24)]
    """Number of values; they are numbered from 0."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Bytes of one report."""

    @abstractmethod
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Exact probabilities p and q that a report supports the true value, and another one."""

    @abstractmethod
    def _randomize(self, codes: Ints, source: RandomSource) -> Reports:
        """Reports of a batch of valid value numbers."""

    @abstractmethod
    def supported(self, reports: Reports) -> Flags:
        """For each report and each value, whether the report supports the value."""

    @property
    def _batch(self) -> int:
        return max(1, min(BATCH, (1 << 26) // self.values))

    def collision_variance(self, counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | float:
        """Variance of the support that comes from public hash functions shared by all reports."""
        return 0.0

    def randomize(self, codes: npt.ArrayLike, *, source: RandomSource = OS_ENTROPY) -> Reports:
        """One report per person. The first call tests the randomizer and refuses to run if its rates are off."""
        checked = self._checked(codes)
        if source is OS_ENTROPY:
            self_tested(self)
        parts = [self._randomize(checked[i : i + self._batch], source) for i in range(0, len(checked), self._batch)]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), dtype=np.uint8)

    def _checked(self, codes: npt.ArrayLike) -> Ints:
        given = np.asarray(codes)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise BadParameter("Value numbers must be a list of whole numbers.")
        checked = given.astype(np.int64)
        if checked.size and not (checked.min() >= 0 and checked.max() < self.values):
            raise BadParameter("Value numbers must lie in 0 .. values - 1.")
        return checked

    def tally(self, reports: Reports) -> Tally:
        """Count the reports that support each value."""
        if reports.ndim != 2 or reports.shape[1] != self.width:
            raise BadParameter(f"A report of {self.part_name()} with these parameters has {self.width} bytes.")
        support = np.zeros(self.values, dtype=np.int64)
        for start in range(0, len(reports), self._batch):
            support += self._count(reports[start : start + self._batch])
        return Tally(design=self.design(), reports=len(reports), support=support)

    def _count(self, reports: Reports) -> Ints:
        """Number of reports that support each value."""
        counts: Ints = self.supported(reports).sum(axis=0, dtype=np.int64)
        return counts

    def estimate(
        self, tally: Tally, *, confidence: float = 0.95, together: bool = False, copies: int = 1
    ) -> FrequencyEstimate:
        """Unbiased counts with an interval each; ``together`` makes all intervals hold at once (Bonferroni).

        ``copies`` is the most often that one draw is among the reports. The noise of a draw that is counted w times has
        w² times its variance, and w² <= copies · w: intervals are wider by the square root of ``copies`` at most.
        """
        if tally.design != self.design():
            raise BadParameter("The tally belongs to another protocol or other parameters.")
        p, q = (float(chance) for chance in self.probabilities())
        support, n = tally.support.astype(np.float64), tally.reports
        counts = (support - n * q) / (p - q)
        z = two_sided(confidence, self.values if together else 1) * copies**0.5
        low, high = score_interval(support, n, p, q, self.collision_variance(counts), z)
        return FrequencyEstimate(reports=n, counts=counts, low=low, high=high, confidence=confidence)

    def variance(self, reports: int, share: float = 0.0) -> float:
        """Variance of the estimated count of a value that ``share`` of the people have."""
        p, q = (float(chance) for chance in self.probabilities())
        return reports * (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2

    def posterior(self, reports: Reports, prior: Sequence[float]) -> npt.NDArray[np.float64]:
        """Probability of each value for each person, given their report and a prior (Bayes)."""
        known = np.asarray(prior, dtype=np.float64)
        if known.shape != (self.values,) or (known < 0).any() or not known.sum() > 0:
            raise BadParameter("`prior` needs one probability for each value.")
        weights = known * np.where(self.supported(reports), float(self.ratio()), 1.0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def self_test(self) -> float:
        """Smallest p-value of a test of the randomizer's rates on a domain of at most 64 values.

        Reports of one value must support that value with probability p, and every other one with probability q.
        """
        from scipy.stats import binomtest

        small = self.model_copy(update={"values": min(self.values, _TESTED_VALUES)})
        p, q = small.probabilities()
        support = small._count(small._randomize(np.zeros(BATCH, dtype=np.int64), OS_ENTROPY))
        tested = [binomtest(int(support[0]), BATCH, float(p)).pvalue]
        if not self.shared_hashes:
            tested += [len(support) * binomtest(int(count), BATCH, float(q)).pvalue for count in support[1:]]
        return float(min(tested))
