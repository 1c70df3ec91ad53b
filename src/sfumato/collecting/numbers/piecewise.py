"""Piecewise mechanism: report a point near the number, or far from it, so that the mean is unbiased."""

from __future__ import annotations

from sfumato.collecting.band_protocol import BandProtocol
from sfumato.collecting.number_protocol import STEPS
from sfumato.dp.rational_bounds import exp_bracket


class Piecewise(BandProtocol):
    """Report a uniform point of a band of relative width e**(-epsilon/2) around the number, or of the rest.

    The best protocol for a mean at large epsilon; its variance is smallest for numbers in the middle of the range.
    """

    examples = ({"epsilon": 1, "low": 0, "high": 100}, {"epsilon": 4, "low": -1, "high": 1})
    reference = "Wang et al. (2019), Collecting and Analyzing Multidimensional Data, doi:10.1109/ICDE.2019.00063"

    @property
    def band(self) -> int:
        return max(1, round(STEPS / exp_bracket(self.epsilon / 2, 20)[0]))
