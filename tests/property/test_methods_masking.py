"""What masking methods promise of any table."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from plain_mdav import mdav_plain
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._grouping import group_rows
from sfumato.masking.methods._mdav import mdav, v_mdav
from sfumato.masking.methods._pram_matrix import TransitionMatrix
from sfumato.masking.methods._univariate import optimal_univariate
from sfumato.masking.methods.merge_rare import MergeRare
from sfumato.masking.methods.microaggregate import Microaggregate
from sfumato.masking.methods.noise import Noise
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.methods.round import Round
from sfumato.masking.methods.shuffle import Shuffle
from sfumato.masking.methods.swap import Swap
from sfumato.rng import Rng

few = settings(deadline=None, max_examples=25)

numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))
columns = st.lists(st.one_of(numbers, st.none()), min_size=3, max_size=120)


def data(**values: object) -> Data:
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in values})
    return Data.of(Table(frame=pl.DataFrame(values, strict=False)), schema)


def masked(step: Step, table: Data, seed: int = 1) -> pl.DataFrame:
    return step.apply(table, Context(rng=Rng(seed))).table.frame


def partition(groups: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(groups == number).tolist()) for number in np.unique(groups)}


@few
@given(
    columns,
    st.floats(0.5, 100),
    st.sampled_from(["classic", "literal", "p-buckets", "p-distribution"]),
    st.integers(0, 99),
)
def test_rank_swapping_keeps_the_marginal(values: list[float | None], p: float, variant: str, seed: int) -> None:
    table = data(x=pl.Series(values, dtype=pl.Float64))
    after = masked(RankSwap(p=p, variant=variant), table, seed)["x"]
    assert after.sort().equals(table.table.frame["x"].sort())
    assert after.is_null().equals(table.table.frame["x"].is_null())


@few
@given(st.integers(2, 400), st.floats(0.1, 100), st.sampled_from(["classic", "literal"]), st.integers(0, 99))
def test_the_window_is_never_exceeded(count: int, p: float, variant: str, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(count)
    after = masked(RankSwap(p=p, variant=variant), data(x=order), seed)["x"].to_numpy()
    assert np.abs(after - order).max() <= max(1, int(count * p / 100 + 1e-9))


@few
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(2, 200), st.integers(1, 4)), elements=st.integers(-50, 50)),
    st.integers(2, 8),
)
def test_mdav_is_the_plain_algorithm_with_groups_of_k_to_2k(points: np.ndarray, k: int) -> None:
    points = points + np.random.default_rng(0).normal(0, 1e-3, points.shape)
    if len(points) < k:
        points = np.repeat(points, k, axis=0)
    groups = mdav(points, k)
    sizes = np.bincount(groups)
    assert sizes.min() >= min(k, len(points))
    assert sizes.max() <= 2 * k - 1
    # Records at equal distances may be grouped in another order, so groups are compared and not their numbers.
    assert partition(groups) == partition(mdav_plain(points, k))


@few
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(2, 150), st.integers(1, 4)), elements=st.integers(-20, 20)),
    st.integers(2, 8),
    st.sampled_from(["mdav", "v-mdav", "projection"]),
)
def test_local_search_never_raises_the_error_and_keeps_k(points: np.ndarray, k: int, algorithm: str) -> None:
    def error(groups: np.ndarray) -> float:
        return sum(
            float(((part - part.mean(axis=0)) ** 2).sum()) for part in (points[groups == g] for g in set(groups))
        )

    points = np.repeat(points, k, axis=0) if len(points) < k else points
    before = group_rows(points, k, algorithm, 0.2)
    after = group_rows(points, k, algorithm, 0.2, refine=True)
    sizes = np.bincount(after)
    assert sizes.min() >= min(k, len(points))
    assert sizes.max() <= max(2 * k, np.bincount(before).max())
    assert error(after) <= error(before) * (1 + 1e-9)


@few
@given(st.integers(2, 400), st.integers(2, 6), st.integers(0, 40), st.booleans(), st.integers(0, 99))
def test_blocks_are_grouped_by_themselves_and_keep_k(n: int, k: int, more: int, refine: bool, seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(n, 2)) * [3.0, 1.0]
    block = 2 * k + more
    groups = group_rows(points, k, "mdav", 0.2, refine=refine, block=block)
    assert np.bincount(groups).min() >= min(k, n)
    centred = points - points.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    rank = np.argsort(np.argsort(along))
    if np.ptp(along) and n > block:  # whichever the sign of the component, groups lie within runs of its order
        sizes = [len(piece) for piece in np.array_split(rank, -(-n // block))]
        for ends in (np.cumsum(sizes), np.cumsum(sizes[::-1])):
            of = np.searchsorted(ends, rank, side="right")
            if all(len(set(of[groups == group])) == 1 for group in set(groups)):
                break
        else:
            raise AssertionError("a group crosses a cut")


@few
@given(hnp.arrays(np.float64, st.tuples(st.integers(6, 150), st.integers(1, 3)), elements=st.integers(0, 3)))
def test_mdav_groups_have_the_right_size_when_records_are_equal(points: np.ndarray) -> None:
    for groups in (mdav(points, 3), v_mdav(points, 3, 0.5)):
        assert np.bincount(groups).min() >= 3
    assert np.bincount(mdav(points, 3)).max() <= 5


@few
@given(st.lists(numbers, min_size=4, max_size=11).map(sorted), st.integers(2, 4))
def test_univariate_grouping_is_optimal(values: list[float], k: int) -> None:
    sorted_values = np.array(values)

    def error(groups: np.ndarray) -> float:
        return sum(((sorted_values[groups == g] - sorted_values[groups == g].mean()) ** 2).sum() for g in set(groups))

    best = np.inf
    for cuts in product([0, 1], repeat=len(values) - 1):
        groups = np.concatenate([[0], np.cumsum(cuts)])
        if np.bincount(groups).min() >= k:
            best = min(best, error(groups))
    if len(values) >= k:
        found = error(optimal_univariate(sorted_values, k))
        assert found <= best + 1e-9 * max(1.0, (sorted_values**2).sum())


@few
@given(st.lists(st.tuples(numbers, numbers), min_size=10, max_size=100), st.integers(2, 5))
def test_microaggregation_keeps_means_and_shares_every_combination(rows: list[tuple[float, float]], k: int) -> None:
    table = data(x=[a for a, _ in rows], y=[b for _, b in rows])
    after = masked(Microaggregate(k=k), table)
    for name in ("x", "y"):
        assert np.isclose(after[name].mean(), table.table.frame[name].mean(), rtol=1e-9, atol=1e-6)
    assert after.group_by("x", "y").len()["len"].min() >= k


@few
@given(st.lists(st.tuples(numbers, numbers), min_size=10, max_size=80), st.integers(0, 99))
def test_shuffling_and_swapping_keep_every_marginal(rows: list[tuple[float, float]], seed: int) -> None:
    table = data(x=[a for a, _ in rows], y=[b for _, b in rows])
    for step in (Shuffle(columns=("x",)), Swap(rate=0.5, columns=("x",))):
        after = masked(step, table, seed)
        assert after["x"].sort().equals(table.table.frame["x"].sort())
        assert after["y"].equals(table.table.frame["y"])


@few
@given(st.lists(st.tuples(numbers, numbers), min_size=10, max_size=100), st.floats(0.01, 2), st.integers(0, 9))
def test_orthogonal_noise_keeps_mean_and_covariance(rows: list[tuple[float, float]], ratio: float, seed: int) -> None:
    table = data(x=[a for a, _ in rows], y=[b for _, b in rows])
    after = masked(Noise(variance_ratio=ratio, variant="orthogonal"), table, seed).to_numpy()
    before = table.table.frame.to_numpy()
    scale = np.abs(before).max() + 1
    assert np.allclose(after.mean(axis=0), before.mean(axis=0), atol=1e-9 * scale)
    assert np.allclose(np.cov(after.T), np.cov(before.T), atol=1e-9 * scale**2)


@few
@given(
    hnp.arrays(np.float64, st.integers(2, 6), elements=st.integers(0, 1000)),
    st.floats(0.05, 1.0),
)
def test_invariant_matrix_keeps_the_counts(counts: np.ndarray, keep: float) -> None:
    matrix = TransitionMatrix.generated(list(range(len(counts))), keep=keep).invariant(counts)
    assert np.allclose(counts @ matrix.probabilities, counts, atol=1e-6)
    assert np.allclose(matrix.probabilities.sum(axis=1), 1)


@few
@given(st.lists(st.sampled_from("abcdefgh"), min_size=6, max_size=80), st.integers(2, 6))
def test_no_rare_category_is_left(values: list[str], least: int) -> None:
    after = masked(MergeRare(min_count=least, label="other"), data(x=values))["x"]
    counts = after.value_counts()
    assert counts["count"].min() >= least or counts.height == 1
    kept = after != "other"
    assert after.filter(kept).equals(pl.Series("x", values).filter(kept))


@few
@given(st.lists(numbers, min_size=1, max_size=60), st.sampled_from([0.5, 1.0, 10.0, 1000.0]))
def test_rounding_moves_less_than_the_base_and_controls_the_total(values: list[float], base: float) -> None:
    table = data(x=values)
    before = np.array(values)
    after = {v: masked(Round(base=base, variant=v), table)["x"].to_numpy() for v in ("nearest", "random", "controlled")}
    for result in after.values():
        assert np.allclose(result / base, np.rint(result / base), atol=1e-6)
    assert np.abs(after["nearest"] - before).max() <= base / 2 + 1e-6
    assert np.abs(after["random"] - before).max() < base + 1e-6
    assert abs(after["controlled"].sum() - before.sum()) <= base / 2 + 1e-6 * max(1.0, np.abs(before).sum())
