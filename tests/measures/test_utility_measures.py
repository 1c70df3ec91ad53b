"""Utility measures on cases whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import NotApplicable
from sfumato.measures import Measure, MeasureResult, ReleasePair
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

DRAW = np.random.default_rng(0)
_START = DRAW.bit_generator.state


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """Every test starts from the same draws, in whatever order and process the tests run."""
    DRAW.bit_generator.state = _START


def pair(
    before: pl.DataFrame, after: pl.DataFrame, *, rows: Any = "same", sensitive: tuple[str, ...] = ()
) -> ReleasePair:
    roles = {name: Role.SENSITIVE if name in sensitive else Role.QUASI for name in before.columns}
    schema = Schema(columns={name: Column(role=role) for name, role in roles.items()})
    lineage = Lineage.identity(after.height) if isinstance(rows, str) else rows
    return ReleasePair(
        original=Data.of(Table(frame=before), schema),
        release=Release(table=Table(frame=after), manifest={}),
        lineage=lineage,
    )


def take(name: str, both: ReleasePair, parameters: Any = None, seed: int = 1) -> MeasureResult:
    measure = registry("measure").get(name).build(parameters)
    assert isinstance(measure, Measure)
    return measure.compute(both, Rng(seed))


def numbers(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({name: np.asarray(values, dtype=float) for name, values in columns.items()})


def test_ks_is_the_largest_gap() -> None:
    both = pair(numbers(x=[1, 2, 3, 4]), numbers(x=[3, 4, 5, 6]))
    assert take("ks", both).value == pytest.approx(0.5)


def test_wasserstein_of_a_shift_is_the_shift() -> None:
    x = DRAW.normal(size=500)
    assert take("wasserstein", pair(numbers(x=x), numbers(x=x + 2 * x.std()))).value == pytest.approx(2.0)


def test_hellinger_of_two_coins() -> None:
    before = pl.DataFrame({"x": ["a"] * 50 + ["b"] * 50})
    after = pl.DataFrame({"x": ["a"] * 100})
    assert take("hellinger", pair(before, after)).value == pytest.approx(np.sqrt(1 - np.sqrt(0.5)))


def test_correlations_and_eigenvalues_of_a_mirrored_column() -> None:
    x, e = DRAW.normal(size=(2, 2000))
    before = numbers(x=x, y=x + e)
    r = np.corrcoef(x, x + e)[0, 1]
    mirrored = pair(before, before.with_columns(-pl.col("y")))
    assert take("correlations", mirrored).value == pytest.approx(2 * r)
    assert take("correlations", mirrored, "spearman").value == pytest.approx(2 * r, abs=0.05)
    assert take("covariance-eigenvalues", mirrored).value == pytest.approx(0, abs=1e-9)
    doubled = pair(before, before.with_columns(pl.col("x") * 2, pl.col("y") * 2))
    assert take("covariance-eigenvalues", doubled).value == pytest.approx(3)


def test_dependence_that_is_lost() -> None:
    x = np.tile(["a", "b"], 500)
    before = pl.DataFrame({"x": x, "y": x})
    after = pl.DataFrame({"x": x, "y": np.repeat(["a", "b"], 500)})
    for name in ("associations", "mutual-information"):
        assert take(name, pair(before, after)).value == pytest.approx(1.0)
        assert take(name, pair(before, before)).value == pytest.approx(0.0)


def test_a_curve_is_seen_by_mutual_information_and_not_by_correlation() -> None:
    x = DRAW.normal(size=4000)
    before, after = numbers(x=x, y=x**2), numbers(x=x, y=DRAW.permutation(x**2))
    assert take("correlations", pair(before, after)).value < 0.1
    assert take("mutual-information", pair(before, after)).value > 0.4


def test_il1s_of_values_drawn_anew_and_il1_counts_zeros() -> None:
    x = DRAW.normal(size=20_000)
    both = pair(numbers(x=x), numbers(x=DRAW.normal(size=20_000)))
    assert take("il1", both).value == pytest.approx(2 / np.sqrt(np.pi) / np.sqrt(2), abs=0.02)
    zeros = take("il1", pair(numbers(x=[0, 1, 2]), numbers(x=[5, 1, 3])), "il1")
    assert zeros.value == pytest.approx(0.25)
    assert zeros.detail["cells_with_original_zero"] == 1


def test_il1_needs_the_row_map() -> None:
    before = numbers(x=[1, 2, 3])
    with pytest.raises(NotApplicable, match="row map"):
        take("il1", pair(before, before, rows=None))
    shuffled = pair(before, numbers(x=[3, 1, 2]), rows=Lineage(np.array([2, 0, 1])))
    assert take("il1", shuffled).value == 0


def test_interval_overlap() -> None:
    x = DRAW.normal(size=400)
    same = pair(numbers(x=x), numbers(x=x))
    assert take("summary", same).value == pytest.approx(1.0)
    half = 1.96 * x.std(ddof=1) / 20
    assert take("summary", pair(numbers(x=x), numbers(x=x + half))).value == pytest.approx(0.5, abs=0.01)
    assert take("summary", pair(numbers(x=x), numbers(x=x + 50))).value == -1


def test_contingency_of_order_three_sees_what_order_two_does_not() -> None:
    a, b = np.tile([0, 1], 2000), np.tile([0, 0, 1, 1], 1000)
    before = pl.DataFrame({"a": a, "b": b, "c": a ^ b}).cast(pl.String)
    after = before.with_columns(c=pl.Series(np.repeat([0, 1], 2000)).cast(pl.String))
    found = take("contingency", pair(before, after))
    assert found.detail["by_order"]["2"] == pytest.approx(0, abs=0.02)
    assert found.value == pytest.approx(0.5, abs=0.02)
    assert found.low is None


def test_coarse_values_count_as_what_they_may_mean() -> None:
    before = numbers(x=list(range(20, 30)) * 20)
    after = pl.DataFrame({"x": ["20-29"] * 200})
    assert take("hellinger", pair(before, after)).value == pytest.approx(0, abs=1e-6)
    found = take("quantiles", pair(before, after), [0.5])
    assert found.value == pytest.approx(0, abs=0.2)


def test_propensity_of_fresh_data_is_its_expectation_and_of_shifted_data_many_times_that() -> None:
    """Mean over 30 pairs of samples: standard error about 0.13; a shift of 0.2 standard deviations is found."""
    ratios, shifted = [], []

    def times_expected(both: ReleasePair) -> float:
        found = take("propensity", both, {"repeats": 0}).detail
        assert found["null"] == pytest.approx(found["null_fresh"] / 2)
        return float(found["pmse"] / found["null_fresh"])

    for _ in range(30):
        one, two = DRAW.normal(size=(2, 600, 4))
        frames = [pl.DataFrame({f"x{j}": values[:, j] for j in range(4)}) for values in (one, two)]
        ratios.append(times_expected(pair(*frames)))
        moved = frames[1].with_columns(pl.col("x0") + 0.2)
        shifted.append(times_expected(pair(frames[0], moved)))
    assert 0.6 < np.mean(ratios) < 1.5
    assert np.mean(shifted) > np.mean(ratios) + 1


def test_propensity_of_separable_data_is_one() -> None:
    x = DRAW.normal(size=300)
    found = take("propensity", pair(numbers(x=x), numbers(x=x + 100)), {"repeats": 3})
    assert found.value == pytest.approx(1, abs=0.05)


def test_classifier_tells_shifted_rows_and_not_equal_ones() -> None:
    x = DRAW.normal(size=(2, 600))
    fresh = pair(numbers(x=x[0]), numbers(x=x[1]), rows=None)
    moved = pair(numbers(x=x[0]), numbers(x=x[1] + 3), rows=None)
    assert take("classifier-two-sample", fresh).value < 0.6
    found = take("classifier-two-sample", moved)
    assert found.value > 0.95
    assert found.low is not None
    assert found.low <= found.value


def test_workload_error_of_a_release_twice_as_full_of_one_value() -> None:
    before = pl.DataFrame({"x": ["a"] * 500 + ["b"] * 500})
    after = pl.DataFrame({"x": ["a"] * 1000})
    found = take("workload", pair(before, after), {"queries": 200})
    assert found.value == pytest.approx(1.0)
    assert take("workload", pair(before, before.sample(fraction=1, shuffle=True))).value == pytest.approx(0)


@pytest.mark.parametrize("model", ["tree", "linear", "boosting"])
def test_learning_from_a_release_without_dependence_loses_everything(model: str) -> None:
    x = DRAW.normal(size=800)
    before = pl.DataFrame({"x": x, "y": np.where(x > 0, "yes", "no"), "z": 3 * x + 0.1 * DRAW.normal(size=800)})
    classes, numbers_lost = [], []
    for _ in range(8):
        broken = before.with_columns(x=DRAW.permutation(x), z=DRAW.permutation(before["z"].to_numpy()))
        lost = take("learning", pair(before, broken, sensitive=("y", "z")), {"model": model})
        classes.append(lost.columns["y"])
        numbers_lost.append(lost.columns["z"])
    # A model of noise may point the right way by chance, so one shuffle can lose nothing and eight lose half.
    assert np.mean(classes) > 0.25
    assert np.mean(numbers_lost) > 0.8
    kept = take("learning", pair(before, before, sensitive=("y", "z")), {"model": model})
    assert kept.value == pytest.approx(0, abs=1e-9)
    assert kept.detail["y"]["original"] > 0.95


def test_clusters_that_stay_and_clusters_that_are_gone() -> None:
    centre = np.repeat([[0, 0], [50, 0], [0, 50], [50, 50]], 100, axis=0)
    points = centre + DRAW.normal(size=(400, 2))
    before = numbers(x=points[:, 0], y=points[:, 1])
    noisy = before.with_columns(pl.col("x") + DRAW.normal(size=400))
    assert take("clustering", pair(before, noisy), 4).value == pytest.approx(1)
    gone = numbers(x=DRAW.normal(size=400), y=DRAW.normal(size=400))
    assert take("clustering", pair(before, gone), 4).value < 0.5


def test_own_function_and_divergence() -> None:
    both = pair(numbers(x=[1, 3], y=[10, 10]), numbers(x=[2, 4], y=[10, 10]))
    function = "sfumato.measures.utility.custom:mean_of_numbers"
    assert take("custom", both, function).value == pytest.approx(0.25)
    assert take("custom", both, {"function": function, "divergence": "absolute"}).value == pytest.approx(0.5)
    assert take("custom", both, {"function": function, "divergence": "euclidean"}).value == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["ks", "wasserstein", "correlations", "il1", "quantiles", "covariance-eigenvalues"])
def test_measures_of_numbers_do_not_apply_to_text(name: str) -> None:
    words = pl.DataFrame({"x": ["a", "b"]})
    with pytest.raises(NotApplicable, match="numbers"):
        take(name, pair(words, words))


def test_a_function_that_has_nothing_to_say() -> None:
    words = pl.DataFrame({"q": ["x", "y", "x"]})
    with pytest.raises(NotApplicable, match="returned nothing"):
        take("custom", pair(words, words), "sfumato.measures.utility.custom:mean_of_numbers")
