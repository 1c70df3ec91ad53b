"""Masking methods draw what they say. Each test names the smallest error it detects and a mutant that it catches."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._pram_matrix import TransitionMatrix
from sfumato.masking.methods.noise import Noise
from sfumato.masking.methods.pram import Pram
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.methods.shift_dates import ShiftDates
from sfumato.masking.methods.shuffle import Shuffle
from sfumato.rng import Rng

COUNT = 200_000
MIX = np.array([[1.0, 0.8, 0.2], [0.0, 0.6, 0.5], [0.0, 0.0, 0.9]])


def data(frame: pl.DataFrame) -> Data:
    return Data.of(Table(frame=frame), Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns}))


def masked(step: Step, table: Data, seed: int = 1) -> pl.DataFrame:
    return step.apply(table, Context(rng=Rng(seed))).table.frame


@pytest.fixture(scope="module")
def numbers() -> Data:
    values = np.random.default_rng(5).normal(size=(COUNT, 3)) @ MIX * [1, 20, 300] + [10, 100, 1000]
    return data(pl.DataFrame({name: values[:, j] for j, name in enumerate("abc")}))


def variance_ratio(step: Noise, table: Data) -> np.ndarray:
    before, after = table.table.frame.to_numpy(), masked(step, table).to_numpy()
    return np.asarray((after - before).var(axis=0) / before.var(axis=0))


@pytest.mark.parametrize("variant", ["additive", "correlated", "multiplicative"])
def test_noise_has_the_variance_that_is_published(numbers: Data, variant: str) -> None:
    """The ratio has a standard error of 0.3 to 0.5 % here: an error of 3 % is found, and a mutant of 3 % is."""
    found = variance_ratio(Noise(variance_ratio=0.2, variant=variant), numbers)
    assert np.allclose(found / 0.2, 1, atol=0.02)
    mutant = variance_ratio(Noise(variance_ratio=0.2 * 1.03, variant=variant), numbers)
    assert not np.allclose(mutant / 0.2, 1, atol=0.02)


@pytest.mark.parametrize("variant", ["additive", "correlated", "corrected", "multiplicative"])
def test_mean_and_covariance_are_recovered(numbers: Data, variant: str) -> None:
    """Covariances come back within 2 % of the product of standard deviations; without the correction they do not."""
    before = numbers.table.frame.to_numpy()
    scale = before.std(axis=0)
    step = Noise(variance_ratio=0.3, variant=variant)
    release = masked(step, numbers)
    mean, covariance = step.recover(release)
    assert np.allclose(mean, before.mean(axis=0), atol=0.01 * scale.max())
    assert np.allclose(covariance / np.outer(scale, scale), np.corrcoef(before.T), atol=0.02)
    if variant != "corrected":
        assert not np.allclose(np.cov(release.to_numpy().T) / np.outer(scale, scale), np.corrcoef(before.T), atol=0.02)


@pytest.mark.parametrize("variant", ["additive", "correlated"])
def test_covariance_is_recovered_with_strata_too(variant: str) -> None:
    """The strata differ in mean, so that dividing the whole covariance by 1 + ratio would be off by a third."""
    stratum = np.repeat(["u", "v"], COUNT // 2)
    values = np.random.default_rng(6).normal(size=(COUNT, 2)) @ MIX[:2, :2] + 3 * (stratum == "u")[:, None]
    table = data(pl.DataFrame({"a": values[:, 0], "b": values[:, 1], "s": stratum}))
    step = Noise(variance_ratio=1.0, variant=variant, strata=("s",), columns=("a", "b"))
    _, covariance = step.recover(masked(step, table))
    truth = np.cov(values.T)
    assert np.allclose(covariance, truth, atol=0.05)
    naive = Noise(variance_ratio=1.0, variant=variant, columns=("a", "b")).recover(masked(step, table))[1]
    assert not np.allclose(naive, truth, atol=0.5)


def test_correlated_noise_keeps_correlations_and_additive_noise_does_not(numbers: Data) -> None:
    before = np.corrcoef(numbers.table.frame.to_numpy().T)
    kept = np.corrcoef(masked(Noise(variance_ratio=0.5, variant="correlated"), numbers).to_numpy().T)
    lost = np.corrcoef(masked(Noise(variance_ratio=0.5), numbers).to_numpy().T)
    assert np.allclose(kept, before, atol=0.01)
    assert not np.allclose(lost, before, atol=0.05)


def test_outliers_get_more_noise_and_robust_noise_ignores_them() -> None:
    values = np.random.default_rng(1).normal(size=(20_000, 2))
    values[:2000] *= 100
    table = data(pl.DataFrame({"a": values[:, 0], "b": values[:, 1]}))
    robust = masked(Noise(variance_ratio=0.1, variant="robust"), table).to_numpy() - values
    plain = masked(Noise(variance_ratio=0.1, variant="correlated"), table).to_numpy() - values
    assert robust[2000:].std() < 0.4 < 2 < plain[2000:].std()
    aware = masked(Noise(variance_ratio=0.1, variant="outlier-aware", outlier_factor=9), table).to_numpy() - values
    # 2.5 % of the other records lie beyond the limit by chance and get 9 times the variance, too.
    assert aware[:2000].std() / aware[2000:].std() == pytest.approx(3 / np.sqrt(1 + 0.025 * 8), rel=0.05)


def test_pram_is_unbiased_with_the_stated_error() -> None:
    """Mean of 60 estimates within 4 standard errors of the truth; a matrix off by 0.01 in its diagonal is found."""
    truth = np.array([14_000, 5_000, 1_000])
    table = data(pl.DataFrame({"x": np.repeat(["a", "b", "c"], truth)}))
    step = Pram(keep=0.6)
    right = TransitionMatrix.generated(["a", "b", "c"], keep=0.6)
    wrong = TransitionMatrix.generated(["a", "b", "c"], keep=0.61)
    releases = [masked(step, table, seed)["x"] for seed in range(60)]
    errors = np.array([(right.estimate(r).counts - truth) / right.estimate(r).standard_errors for r in releases])
    assert np.abs(errors.mean(axis=0)).max() < 4 / np.sqrt(60)
    assert 0.7 < errors.std() < 1.3
    mutant = np.array([(wrong.estimate(r).counts - truth) / wrong.estimate(r).standard_errors for r in releases])
    assert np.abs(mutant.mean(axis=0)).max() > 4 / np.sqrt(60)


@pytest.mark.parametrize("groups", [{}, {"job": (("a", "b"), ("c", "d"))}])
def test_invariant_pram_keeps_the_stated_share(groups: dict[str, Any]) -> None:
    """A matrix that keeps 70 % keeps about 60 % after both stages. 20,000 draws detect a share that is 0.02 off."""
    draw = np.random.default_rng(4)
    people = pl.DataFrame({"job": draw.choice(["a", "b", "c", "d", "e"], 20_000, p=[0.4, 0.25, 0.15, 0.15, 0.05])})
    change = Pram(keep=0.7, invariant=True, groups=groups).apply(data(people), Context(rng=Rng(8)))
    stays = (change.table.frame["job"] == people["job"]).to_numpy()
    if groups:
        alone = (people["job"] == "e").to_numpy()
        assert stays[alone].all()
        stays = stays[~alone]
    assert abs(stays.mean() - 0.7) < 0.01 + 0.0162  # rounding, and 5 standard errors
    # the published matrix tells the frequencies to a hundredth only: away from its category with weight 0.01, 0.02, ...
    away = 1 - np.array(change.public["transitions"]["job"]["matrix"])[0, 0]
    weight = away / (1 - 1 / (2 if groups else 5)) * 100
    assert weight == pytest.approx(round(weight))
    with pytest.raises(BadParameter, match="Raise `keep`"):
        masked(Pram(keep=0.1, invariant=True), data(people))


def test_invariant_pram_keeps_frequencies_in_expectation() -> None:
    """60 releases of 20,000: an expected shift of 0.2 % of the records is found; plain PRAM shifts many times that."""
    truth = np.array([14_000, 5_000, 1_000])
    table = data(pl.DataFrame({"x": np.repeat(["a", "b", "c"], truth)}))

    def mean_counts(step: Pram) -> np.ndarray:
        found = [masked(step, table, seed)["x"].value_counts().sort("x")["count"].to_numpy() for seed in range(60)]
        return np.asarray(np.mean(found, axis=0))

    assert np.abs(mean_counts(Pram(keep=0.6, invariant=True)) - truth).max() < 40
    assert np.abs(mean_counts(Pram(keep=0.6)) - truth).max() > 1000


def displacement(variant: str, p: float = 2.0, count: int = 50_000) -> np.ndarray:
    after = masked(RankSwap(p=p, variant=variant), data(pl.DataFrame({"x": np.arange(count)})))["x"].to_numpy()
    return np.asarray(np.abs(after - np.arange(count)) / (count * p / 100))


def test_variants_of_rank_swapping_leave_the_window_and_the_classic_does_not() -> None:
    assert displacement("classic").max() <= 1
    for variant in ("p-buckets", "p-distribution"):
        assert (displacement(variant) > 1).mean() > 0.05


def test_p_buckets_halve_with_each_bucket() -> None:
    """Of the swaps that leave the bucket, half as many go one bucket farther (within 15 %, four buckets deep)."""
    count, size = 100_000, 2_000
    after = masked(RankSwap(p=2, variant="p-buckets"), data(pl.DataFrame({"x": np.arange(count)})))["x"].to_numpy()
    steps = np.bincount(np.abs(after // size - np.arange(count) // size))
    assert np.allclose(steps[2:5] / steps[1:4], 0.5, rtol=0.15)


def test_p_distribution_is_centred_on_half_the_window() -> None:
    moved = displacement("p-distribution", count=100_000)
    assert 0.4 < np.median(moved) < 0.9
    assert (moved > 2.6).mean() < 1e-3


def test_shuffling_keeps_rank_correlation_and_forgets_the_person() -> None:
    """Correlations within 0.02; the masked value depends on the own one through the given column only."""
    draw = np.random.default_rng(3)
    age = draw.normal(size=50_000)
    pay = 0.6 * age + 0.8 * draw.normal(size=50_000)
    table = data(pl.DataFrame({"age": age, "pay": np.exp(pay)}))
    after = masked(Shuffle(columns=("pay",), given=("age",)), table)
    assert abs(after.select(pl.corr("age", "pay", method="spearman")).item() - 0.583) < 0.02
    left = np.log(after["pay"].to_numpy()) - 0.6 * age
    assert abs(np.corrcoef(left, pay - 0.6 * age)[0, 1]) < 0.02


def test_dates_shift_uniformly_without_zero() -> None:
    from datetime import date

    table = data(pl.DataFrame({"d": [date(2020, 1, 1)] * 60_000}))
    moved = (masked(ShiftDates(days=3), table)["d"] - date(2020, 1, 1)).dt.total_days().value_counts()
    counts = dict(moved.iter_rows())
    assert set(counts) == {-3, -2, -1, 1, 2, 3}
    assert max(abs(count - 10_000) for count in counts.values()) < 400
