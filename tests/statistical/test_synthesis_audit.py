"""Black-box audit of private synthesis: a canary row must not show more than the stated loss allows."""

from __future__ import annotations

from fractions import Fraction
from math import log

import numpy as np
import polars as pl
import pytest

from sfumato.dp import concentrated
from sfumato.dp.loss import approximate
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.ledger import Charge, Ledger
from sfumato.progress import SILENT
from sfumato.release.guarantee import Guarantee
from sfumato.synthesis.column_domain import category_cells
from sfumato.synthesis.fit import FitRun, SynthesisPlan, fit_model

RUNS = 1200
CANARIES = 2
BASE = pl.DataFrame({"a": ["x", "x", "y", "y"] * 30, "b": ["x", "y"] * 60})
CANARY = pl.concat([BASE, pl.DataFrame({"a": ["x"] * CANARIES, "b": ["x"] * CANARIES})])


def plan() -> SynthesisPlan:
    cells = category_cells("a", pl.String(), ("x", "y"))
    return SynthesisPlan(
        epsilon=Fraction(4), delta=Fraction(1, 10**5), mechanism="mst", declared={"a": cells, "b": cells},
        learned_categories=frozenset(), learn=Fraction(0), bins=20, max_contribution=1,
    )  # fmt: skip


def detections(frame: pl.DataFrame, wanted: SynthesisPlan) -> float:
    """How often a fitted model estimates more than 31 people in the canary's cell: the best simple test."""
    ledger = Ledger.open(":memory:")
    ledger.set_cap(concentrated(wanted.loss.size * (RUNS + 1)), dataset="d")
    receipt = ledger.charge(
        Charge(loss=concentrated(wanted.loss.size * RUNS), unit="row", what="q"), dataset="d", analyst="a"
    )
    promised = Guarantee(loss=approximate(4, "1e-5"), unit="row", proof="test")
    random, hits = np.random.default_rng(1), 0
    for _ in range(RUNS):
        [own] = receipt.split(wanted.loss)
        run = FitRun(plan=wanted, receipt=own, random=random, progress=SILENT, guarantee=promised)
        model = fit_model(frame, run)
        group = [merged.groups[1] for merged in model.merged]
        hits += model.estimates.residuals.marginal((0, 1))[tuple(group)] > 30 + CANARIES / 2
    return hits / RUNS


def audited_loss() -> float:
    """The Kullback-Leibler divergence of the detection with and without the canaries.

    By the data processing inequality and group privacy it is at most rho times the squared number of canaries (1.49).
    The honest mechanism has about 0.6 and one with half the noise about 2.1, both with a standard error of 0.1.
    """
    seen, unseen = detections(CANARY, plan()), detections(BASE, plan())
    return seen * log(seen / unseen) + (1 - seen) * log((1 - seen) / (1 - unseen))


def test_a_canary_shows_no_more_than_the_stated_loss() -> None:
    """And no less than 0.3: the test has power."""
    assert 0.3 < audited_loss() <= CANARIES**2 * float(plan().loss.size)


def test_the_audit_catches_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant draws noise of half the standard deviation and states the same loss."""
    draw = RoundedGaussian._draw

    def half(self: RoundedGaussian, count: int) -> np.ndarray:
        return draw(RoundedGaussian(variance=self.variance / 4, grid=self.grid), count)

    monkeypatch.setattr(RoundedGaussian, "_draw", half)
    assert audited_loss() > CANARIES**2 * float(plan().loss.size)
