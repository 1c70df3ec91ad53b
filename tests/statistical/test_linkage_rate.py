"""Linkage finds each person with chance one over the class size, and says so.

The expected number of hits is computed, so runs with different seeds agree. Attacks that name one row are counted: 100
classes of 4 people, 50 seeds: 20,000 tries, so that the share 0.25 has a standard error of 0.003. Smallest error
detected: a rate off by 0.012 (4 standard errors); an attack that is told the truth once in forty must be caught.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.attacks import AttackScenario, View, evaluate_attack
from sfumato.attacks.base import Guesses
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.progress import SILENT, Progress
from sfumato.release import Lineage, Release
from sfumato.rng import Rng
from sfumato.stats import wilson

FRAME = pl.DataFrame({"group": np.repeat(np.arange(100), 4), "who": np.arange(400)})
DATA = Data.of(Table(frame=FRAME), Schema(columns={"group": Column(role=Role.QUASI)}))


TRUTH: dict[str, np.ndarray] = {}  # type: ignore[type-arg]


def rate(attack: Linkage, seeds: int = 50) -> float:
    hits = 0.0
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(400)
        release = Release(table=Table(frame=FRAME[order]), manifest={})
        TRUTH["row"] = np.argsort(order)
        hits += evaluate_attack(
            attack, AttackScenario(original=DATA, release=release, lineage=Lineage(order)), rng=Rng(seed)
        ).main.hits
    return hits / (400 * seeds)


class Fixed(Linkage):
    """Names the first row that fits for one person in fifty, and a random one for the others."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        honest = super().guess(view, rng, progress)
        assert honest.row is not None
        row = honest.row.copy()
        groups = view.release.table.column("group").to_numpy()
        for place in range(0, len(row), 50):
            row[place] = int(np.flatnonzero(groups == view.targets["group"][place])[0])
        return Guesses.of_rows(row, honest.confidence)


class Peeking(Linkage):
    """A mutant that is told the true row of one person in forty."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        honest = super().guess(replace(view, knows=("group",)), rng, progress)
        assert honest.row is not None
        row = honest.row.copy()
        row[::40] = TRUTH["row"][view.targets["who"].to_numpy()[::40]]
        return Guesses.of_rows(row, honest.confidence)


def test_rate_is_one_over_the_class_size_for_every_seed() -> None:
    assert {rate(Linkage(), seeds) for seeds in (1, 2, 3)} == {0.25}


def test_the_expectation_is_the_mean_of_random_choices() -> None:
    """The same attack with its random choice counted: 20,000 choices agree with the expectation."""

    class Counted(Linkage):
        """Linkage whose random choice is counted."""

        def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
            return replace(super().guess(view, rng, progress), chance=None)

    assert abs(rate(Counted()) - rate(Linkage(), 1)) < 0.012


def test_overlapping_classes_count_every_row_that_is_equally_good() -> None:
    """Cells with ranges that overlap: who fits two classes is found with chance one over the rows of both."""
    known = pl.DataFrame({"age": [25, 25, 35, 35, 45]})
    shown = pl.DataFrame({"age": ["[20, 40)", "[20, 40)", "[30, 50)", "[20, 40)", "[30, 50)"]})
    data = Data.of(Table(frame=known), Schema(columns={"age": Column(role=Role.QUASI)}))
    scenario = AttackScenario(original=data, release=Release(table=Table(frame=shown), manifest={}), aligned=True)
    outcome = evaluate_attack(Linkage(), scenario, rng=Rng(1))
    assert np.allclose(outcome.hit, [1 / 3, 1 / 3, 1 / 5, 1 / 5, 1 / 2])
    assert outcome.main.hits == evaluate_attack(Linkage(), scenario, rng=Rng(2)).main.hits


def test_the_interval_of_an_expectation_covers_the_rate_of_all_people() -> None:
    """4,000 people in classes of 1 to 20, of whom 300 are drawn: 1,000 draws, nominal 95 %. A half-width 20 % too
    small covers fewer."""
    sizes = np.repeat(np.arange(1, 21), 20)
    chance = np.repeat(1 / sizes, sizes)
    draw = np.random.default_rng(8)

    def covered(shrink: float) -> float:
        inside = 0
        for _ in range(1000):
            hits = float(draw.choice(chance, 300).sum())
            low, high = wilson(hits, 300)
            middle, half = (low + high) / 2, shrink * (high - low) / 2
            inside += middle - half <= chance.mean() <= middle + half
        return inside / 1000

    assert covered(1.0) > 0.95
    assert covered(0.3) < 0.9


def test_the_identity_baseline_is_computed() -> None:
    release = Release(table=Table(frame=FRAME), manifest={})
    scenario = AttackScenario(original=DATA, release=release, aligned=True)
    outcome = evaluate_attack(Linkage(), scenario, rng=Rng(1), n_targets=100)
    assert outcome.baseline is not None
    assert outcome.baseline.rate == 1 / 400


def test_a_little_cheating_is_caught() -> None:
    assert abs(rate(Peeking(knows=("group", "who"))) - 0.25) > 0.012


def test_choosing_the_first_row_gives_nothing_away_in_a_shuffled_release() -> None:
    """The release is in random order, so a fixed choice is as good as a random one: the examiner adds no leak."""
    assert abs(rate(Fixed()) - 0.25) < 0.012


def test_confidence_is_calibrated() -> None:
    release = Release(table=Table(frame=FRAME), manifest={})
    outcome = evaluate_attack(Linkage(), AttackScenario(original=DATA, release=release, aligned=True), rng=Rng(1))
    assert np.allclose(outcome.confidence, 0.25)
    assert outcome.certain == 0
