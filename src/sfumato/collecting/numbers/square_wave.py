"""Square wave: the distribution of a number, reconstructed by expectation maximization."""

from __future__ import annotations

from math import exp
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.arrays import Floats, Ints
from sfumato.collecting.band_protocol import BandProtocol
from sfumato.collecting.estimates import NumberTally
from sfumato.collecting.number_protocol import STEPS
from sfumato.collecting.quantile_bounds import FittingHistograms
from sfumato.errors import BadParameter

_ROUNDS = 10_000
_INPUTS = 64
"""Most input bins of the linear programs of an interval."""
_EDGES = 32
"""Output edges whose shares an interval uses."""


class SquareWave(BandProtocol):
    """Report a point near the number more likely than one far from it; the collector reconstructs the histogram.

    The band has the width that maximizes the information of a report about the number. ``histogram`` and ``quantiles``
    use expectation maximization with smoothing, which is biased; the intervals of ``quantiles`` are those of all
    histograms that fit the reports. ``mean`` is unbiased as for any band, but noisier than piecewise.
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
        self, tally: NumberTally, chances: npt.ArrayLike, *, confidence: float = 0.95, copies: int = 1
    ) -> tuple[Floats, Floats, Floats]:
        """Quantiles of the respondents: estimate, and an interval that covers with at least this confidence.

        All intervals hold together (:mod:`~sfumato.collecting.quantile_bounds`). ``copies`` is the most often
        that one draw is among the reports.
        """
        if not 0 < confidence < 1:
            raise BadParameter("`confidence` must lie between 0 and 1.")
        observed, wanted = self._observed(tally), np.asarray(chances, dtype=np.float64)
        channel = self._channel(len(observed))
        centre = self._quantile(_maximize(observed, channel, float(self.epsilon)), wanted)
        fitting = self._fitting(observed, confidence, copies)
        inputs = fitting.below_low.shape[1]
        ends = np.array([fitting.quantile(float(chance)) for chance in wanted]).reshape(-1, 2) / inputs
        low, high = (float(self.low) + float(self.high - self.low) * ends).T
        # The fitted quantile may lie outside: it is regularized, the interval is not.
        return np.clip(centre, low, high), low, high

    def _fitting(self, observed: Floats, confidence: float, copies: int) -> FittingHistograms:
        outputs, inputs = len(observed), min(self.bins, _INPUTS)
        taken = np.unique(np.linspace(0, outputs, _EDGES + 2).round().astype(np.int64))[1:-1]
        # Reports below an edge are whole numbers 0 .. ceil(edge) - 1, as `numpy.histogram` counts them.
        edges = np.ceil(np.linspace(0, STEPS + self.band + 1, outputs + 1)[taken])
        ends = np.arange(inputs + 1) * STEPS / inputs
        # A number of a bin is rounded to a position between these; the chance falls with the position.
        first, last = np.floor(ends[:-1]), np.ceil(ends[1:])
        return FittingHistograms(
            below_low=self._below(edges, last), below_high=self._below(edges, first),
            shares=np.cumsum(observed)[taken - 1] / observed.sum(), reports=int(observed.sum()), copies=copies,
            confidence=confidence,
        )  # fmt: skip

    def _below(self, edges: Floats, positions: Floats) -> Floats:
        """Exact probability of a report below each edge from each position."""
        inside = np.clip(edges[:, None] - positions, 0, self.band)
        chance = self.near_chance()
        return np.asarray(chance * inside / self.band + (1 - chance) * (edges[:, None] - inside) / (STEPS + 1))

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
