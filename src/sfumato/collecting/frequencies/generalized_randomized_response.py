"""Generalized randomized response: report the true value, or another one at random."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.collecting.frequency_protocol import Flags, FrequencyProtocol, Reports
from sfumato.collecting.random_source import ONE, RandomSource, below, chosen, exp_share


class GeneralizedRandomizedResponse(FrequencyProtocol):
    """Report the true value with probability p, otherwise one of the other values, each equally likely.

    The best protocol for few values (about d < 3 e**epsilon + 2). With two values and p = 3/4 it is the classical
    two-coin survey, whose loss is ln 3.

    >>> float(GeneralizedRandomizedResponse(epsilon="1.0986122886", values=2).probabilities()[0])  # doctest: +ELLIPSIS
    0.7499999...
    """

    examples = ({"epsilon": 1, "values": 2}, {"epsilon": 2, "values": 5})
    reference = (
        "Warner (1965), doi:10.1080/01621459.1965.10480775; Kairouz, Oh, Viswanath (2016), "
        "https://www.jmlr.org/papers/v17/15-135.html"
    )

    @property
    def width(self) -> int:
        return -(-(self.values - 1).bit_length() // 8)

    @property
    def _keep(self) -> int:
        return exp_share(self.epsilon, Fraction(self.values - 1))

    def probabilities(self) -> tuple[Fraction, Fraction]:
        keep = Fraction(self._keep, ONE)
        return keep, (1 - keep) / (self.values - 1)

    def ratio(self) -> Fraction:
        keep, other = self.probabilities()
        return max(keep / other, other / keep)

    def client_parameters(self) -> dict[str, int]:
        return {"values": self.values, "keep": self._keep}

    def _randomize(self, codes: Ints, source: RandomSource) -> Reports:
        kept = chosen(self._keep, len(codes), source)
        others = below(self.values - 1, len(codes), source)
        reported = np.where(kept, codes, others + (others >= codes))
        return np.ascontiguousarray(reported.astype("<u4").view(np.uint8).reshape(-1, 4)[:, : self.width])

    def supported(self, reports: Reports) -> Flags:
        flags: Flags = self._reported(reports)[:, None] == np.arange(self.values)
        return flags

    def _count(self, reports: Reports) -> Ints:
        reported = self._reported(reports)
        # A dishonest client may send a number that is no value; it counts as a report that supports nothing.
        counts: npt.NDArray[np.int64] = np.bincount(reported[reported < self.values], minlength=self.values)
        return counts

    def _reported(self, reports: Reports) -> Ints:
        padded = np.zeros((len(reports), 4), dtype=np.uint8)
        padded[:, : self.width] = reports
        return padded.view("<u4").ravel().astype(np.int64)
