"""Square wave: the distribution of a number, reconstructed by expectation maximization."""

from __future__ import annotations

from math import exp
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.collecting.local.band_protocol import BandProtocol
from sfumato.collecting.local.estimates import NumberTally
from sfumato.collecting.local.number_protocol import STEPS, Floats, Ints
from sfumato.errors import BadParameter

__all__ = ["SquareWave"]

_ROUNDS = 10_000


class SquareWave(BandProtocol):
    """Report a point near the number more likely than one far from it; the collector reconstructs the histogram.

    The band has the width that maximizes the information of a report about the number. ``histogram`` and ``quantiles``
    use expectation maximization with smoothing; ``mean`` is unbiased as for any band, but noisier than piecewise.
    """

    examples = ({"epsilon": 1, "low": 0, "high": 100}, {"epsilon": 3, "low": 0, "high": 1, "bins": 64})
    reference = "Li et al. (2020), doi:10.1145/3318464.3389700"

    bins: Annotated[int, Field(ge=2, le=4096)] = 256
    """Bins of the reconstructed histogram."""

    @property
    def band(self) -> int:
        e = float(self.epsilon)
        half = 0.5 - e / 3 if e < 1e-3 else (e * exp(e) - exp(e) + 1) / (2 * exp(e) * (exp(e) - 1 - e))
        return max(1, round(2 * half * STEPS))

    def histogram(self, tally: NumberTally) -> Floats:
        """Estimated share of respondents in each bin between the bounds."""
        observed = self._observed(tally)
        return _maximize(observed, self._channel(len(observed)), float(self.epsilon))

    def quantiles(
        self, tally: NumberTally, chances: npt.ArrayLike, *, confidence: float = 0.95, resamples: int = 100
    ) -> tuple[Floats, Floats, Floats]:
        """Quantiles of the respondents with bootstrap intervals: estimate, low, high."""
        observed = self._observed(tally)
        channel, wanted = self._channel(len(observed)), np.asarray(chances, dtype=np.float64)
        epsilon = float(self.epsilon)
        centre = self._quantile(_maximize(observed, channel, epsilon), wanted)
        generator = np.random.default_rng(0)
        total, shares = int(observed.sum()), observed / max(1.0, observed.sum())
        drawn = [
            self._quantile(_maximize(generator.multinomial(total, shares).astype(float), channel, epsilon), wanted)
            for _ in range(resamples)
        ]
        tail = (1 - confidence) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
        return centre, low, high

    def _bins(self, reports: Ints) -> Ints:
        size = max(self.bins, round(self.bins * (STEPS + 1 + self.band) / (STEPS + 1)))
        return np.histogram(reports, bins=size, range=(0, STEPS + self.band + 1))[0].astype(np.int64)

    def _observed(self, tally: NumberTally) -> Floats:
        if tally.design != self.design() or tally.reports < 1:
            raise BadParameter("The tally is empty, or belongs to another protocol or other parameters.")
        return tally.bins.astype(np.float64)

    def _channel(self, outputs: int) -> Floats:
        """Probability of each output bin for each input bin, exact for numbers in the middle of an input bin."""
        edges = np.linspace(0, STEPS + self.band + 1, outputs + 1)
        start = (np.arange(self.bins) + 0.5) * STEPS / self.bins
        overlap = np.minimum(edges[1:, None], start + self.band) - np.maximum(edges[:-1, None], start)
        inside = np.clip(overlap, 0, None)
        chance = self.near_chance()
        width = np.diff(edges)[:, None]
        channel = chance * inside / self.band + (1 - chance) * (width - inside) / (STEPS + 1)
        return np.asarray(channel / channel.sum(axis=0))

    def _quantile(self, shares: Floats, chances: Floats) -> Floats:
        low, span = float(self.low), float(self.high - self.low)
        reached = np.concatenate([[0.0], np.cumsum(shares)])
        return np.asarray(low + span * np.interp(chances, reached / reached[-1], np.linspace(0, 1, self.bins + 1)))


def _maximize(observed: Floats, channel: Floats, epsilon: float) -> Floats:
    """Expectation maximization with binomial smoothing, stopped when the likelihood hardly grows."""
    shares = np.full(channel.shape[1], 1 / channel.shape[1])
    likelihood = -np.inf
    for _ in range(_ROUNDS):
        expected = channel @ shares
        shares = shares * (channel.T @ (observed / np.maximum(expected, 1e-300)))
        padded = np.concatenate([shares[:1], shares, shares[-1:]])
        shares = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
        shares /= shares.sum()
        now = float(observed @ np.log(np.maximum(channel @ shares, 1e-300)))
        if now - likelihood < 1e-3 * exp(epsilon):
            break
        likelihood = now
    return shares
