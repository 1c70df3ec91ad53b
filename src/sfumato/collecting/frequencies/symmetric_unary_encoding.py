"""Symmetric unary encoding (SUE), also called basic one-time RAPPOR."""

from __future__ import annotations

from fractions import Fraction

from sfumato.collecting.random_source import ONE, exp_share
from sfumato.collecting.unary_encoding import UnaryEncoding


class SymmetricUnaryEncoding(UnaryEncoding):
    """Send one bit per value and flip each with the same probability 1 / (e**(epsilon/2) + 1).

    Two values differ in two bits, so that each bit has half of epsilon. Basic RAPPOR with one report is this protocol.
    """

    examples = ({"epsilon": 1, "values": 8}, {"epsilon": 3, "values": 100})
    reference = "Erlingsson, Pihur, Korolova (2014), doi:10.1145/2660267.2660348; Wang et al. (2017), section 3.3"

    def chances(self) -> tuple[int, int]:
        keep = exp_share(self.epsilon / 2, Fraction(1))
        return keep, ONE - keep
