"""Protocols for numbers between public bounds: mean, histogram and quantiles of all respondents.

Reports are whole numbers on a grid and every probability is exact, so that no report shows the low-order bits of a
floating-point computation.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, model_validator

from sfumato.arrays import Floats, Ints
from sfumato.collecting.estimates import MeanEstimate, NumberTally, two_sided
from sfumato.collecting.local_protocol import BATCH, LocalProtocol, self_tested
from sfumato.collecting.random_source import OS_ENTROPY, RandomSource, chance_below
from sfumato.errors import BadParameter, TooFewRows
from sfumato.rationals import rational

STEPS = 1 << 20
"""Grid steps between the bounds; a number is rounded to one of its two neighbours at random, without bias."""

Bound = Annotated[Fraction, BeforeValidator(rational)]


class NumberProtocol(LocalProtocol):
    """Base of protocols for numbers: a randomizer for one device, and estimates for the collector."""

    low: Bound
    """Public lower bound; smaller numbers count as this."""
    high: Bound
    """Public upper bound; larger numbers count as this."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.low >= self.high:
            raise ValueError("`low` must be below `high`")
        return self

    @abstractmethod
    def _randomize(self, positions: Ints, source: RandomSource) -> Ints:
        """Reports of grid positions 0 .. STEPS."""

    @abstractmethod
    def positions(self, reports: Ints) -> Floats:
        """An unbiased estimate of the grid position behind each report."""

    def histogram(self, tally: NumberTally) -> Floats | None:
        """Estimated share of respondents in each bin between the bounds; None where the mean alone is estimated."""
        return None

    def quantiles(
        self, tally: NumberTally, chances: npt.ArrayLike, *, confidence: float = 0.95, copies: int = 1
    ) -> tuple[Floats, Floats, Floats] | None:
        """Quantiles of the respondents with the ends of their intervals; None where the mean alone is estimated."""
        return None

    @abstractmethod
    def variance_at(self, position: int) -> float:
        """Variance of the estimated position of one person at a grid position."""

    def variance(self, reports: int) -> float:
        """Variance of the estimated mean in the worst case of all numbers, without the spread of the people.

        The variance of one report is quadratic and symmetric in the number, so that an end or the middle is the worst.
        """
        worst = max(self.variance_at(0), self.variance_at(STEPS // 2))
        return worst * (float(self.high - self.low) / STEPS) ** 2 / reports

    @abstractmethod
    def valid(self, reports: Ints) -> npt.NDArray[np.bool_]:
        """Which reports this protocol can send."""

    def randomize(self, numbers: npt.ArrayLike, *, source: RandomSource = OS_ENTROPY) -> Ints:
        """One report per person. The first call tests the randomizer and refuses to run if its mean is off."""
        given = np.asarray(numbers, dtype=np.float64)
        if given.ndim != 1 or not np.isfinite(given).all():
            raise BadParameter("Numbers must be a list of finite numbers; leave out people without an answer.")
        if source is OS_ENTROPY:
            self_tested(self)
        return self._randomize(self._on_grid(given, source), source)

    def _on_grid(self, given: Floats, source: RandomSource) -> Ints:
        low, span = float(self.low), float(self.high - self.low)
        place = np.clip((given - low) / span, 0.0, 1.0) * STEPS
        whole = np.floor(place)
        up = chance_below(((place - whole) * (1 << 32)).astype(np.int64), source)
        return np.asarray(whole.astype(np.int64) + up)

    def numbers(self, reports: npt.ArrayLike) -> Floats:
        """An unbiased estimate of the number behind each report; far outside the bounds one by one."""
        checked = self.checked(reports)
        span = float(self.high - self.low)
        return np.asarray(float(self.low) + self.positions(checked) * (span / STEPS))

    def checked(self, reports: npt.ArrayLike) -> Ints:
        """The reports as whole numbers; refused if this protocol cannot have sent one of them."""
        given = np.asarray(reports)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu") or not self.valid(given).all():
            raise BadParameter(f"Some reports are not reports of {self.part_name()} with these parameters.")
        return given.astype(np.int64)

    def tally(self, reports: npt.ArrayLike) -> NumberTally:
        """Sums of the reports; tallies of parts of the reports can be added."""
        checked = self.checked(reports)
        estimated = self.numbers(checked)
        return NumberTally(
            design=self.design(),
            reports=len(checked),
            total=float(estimated.sum()),
            squares=float((estimated**2).sum()),
            bins=self._bins(checked),
        )

    def _bins(self, reports: Ints) -> Ints:
        return np.zeros(0, dtype=np.int64)

    def mean(self, tally: NumberTally, *, confidence: float = 0.95, copies: int = 1) -> MeanEstimate:
        """The mean of all respondents, with an interval from the spread of the reports.

        ``copies`` is the most often that one draw is among the reports, as for frequencies.
        """
        n = tally.reports
        if tally.design != self.design():
            raise BadParameter("The tally belongs to another protocol or other parameters.")
        if n < 2 * copies:
            raise TooFewRows("A mean with an interval needs the reports of two people or more.")
        mean = tally.total / n
        variance = max(0.0, (tally.squares - n * mean**2) / (n - copies))
        radius = two_sided(confidence) * (copies * variance / n) ** 0.5
        return MeanEstimate(reports=n, mean=mean, low=mean - radius, high=mean + radius, confidence=confidence)

    def self_test(self) -> float:
        """Smallest p-value of a test of the share of likely reports at both ends of the grid."""
        from scipy.stats import binomtest

        tested = []
        for position in (0, STEPS):
            reports = self._randomize(np.full(BATCH, position), OS_ENTROPY)
            tested.append(binomtest(int(self.near(reports, position).sum()), BATCH, self.near_chance()).pvalue)
        return float(min(tested))

    @abstractmethod
    def extreme_reports(self) -> Ints:
        """The reports with the smallest and the largest estimate."""

    @abstractmethod
    def near(self, reports: Ints, position: int) -> npt.NDArray[np.bool_]:
        """Which reports are among the more likely ones of the grid position."""

    @abstractmethod
    def near_chance(self) -> float:
        """Probability of a report among the more likely ones at an end of the grid."""
