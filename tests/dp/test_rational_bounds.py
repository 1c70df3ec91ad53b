"""Bounds with few digits are still bounds, and a certificate can state them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.dp.mechanisms.top_keys import TopKeys
from sfumato.dp.rational_bounds import short_up
from sfumato.dp.spending import exact, stated_loss
from sfumato.proof.losses import StatedLoss


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(7, 10**3000), Fraction(10**2000 + 1, 10**2000)])
def test_a_short_bound_is_no_smaller(value: Fraction) -> None:
    short = short_up(value)
    assert value <= short <= value + Fraction(1, 1 << 4096)
    assert len(exact(short)) < 4000


def test_a_chance_far_below_all_that_matters_can_be_stated() -> None:
    """An epsilon of a million is the cost without noise: its delta had a million digits, which no certificate reads."""
    for loss in (
        ThresholdedLaplace(scale="1/1000000", limit=3, max_contribution=1).loss(1),
        TopKeys(rate=10**6, count=1, limit=3, most=2).loss(1),
    ):
        stated = stated_loss(loss)
        assert StatedLoss.read(stated, "loss").delta == loss.delta > 0
        assert len(str(stated)) < 20_000
