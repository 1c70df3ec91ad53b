"""Optimized unary encoding (OUE): one bit per value, ones kept with probability 1/2."""

from __future__ import annotations

from fractions import Fraction

from sfumato.collecting.random_source import ONE, exp_share
from sfumato.collecting.unary_encoding import UnaryEncoding


class OptimizedUnaryEncoding(UnaryEncoding):
    """Send one bit per value: the true value's bit is 1 with probability 1/2, every other with 1 / (e**epsilon + 1).

    The variance of a rare value is 4 e**epsilon / (e**epsilon - 1)**2 per person for any number of values, the smallest
    known; a report has one bit per value.
    """

    examples = ({"epsilon": 1, "values": 8}, {"epsilon": 3, "values": 100})
    reference = "Wang, Blocki, Li, Jha (2017), USENIX Security, section 4.2"

    def chances(self) -> tuple[int, int]:
        return ONE // 2, ONE - exp_share(self.epsilon, Fraction(1))
