"""Numbers that decide what is charged are read as everybody writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.errors import BadParameter
from sfumato.rationals import rational


@pytest.mark.parametrize(
    ("text", "number"),
    [("0.05", Fraction(1, 20)), ("1/3", Fraction(1, 3)), (" 2 ", Fraction(2)), ("1e-5", Fraction(1, 100_000))],
)
def test_decimals_and_fractions_are_exact(text: str, number: Fraction) -> None:
    assert rational(text) == number


@pytest.mark.parametrize("text", ["1_0", "\u0661", "1e1_0", "1/1_0", "0x1", "1e9999", "inf", "nan", "", "1/0", "1e5/3"])
def test_other_spellings_are_refused(text: str) -> None:
    """Python reads the first as 10: ten times the budget that was meant."""
    with pytest.raises(BadParameter):
        rational(text)
