"""Learned distances on microaggregated Census extracts: the published order, and the proven optimum."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from sfumato.attacks.nearest_neighbours import distinct_points, nearest
from sfumato.attacks.record_linkage.learned_linkage.distances import Form, matrix_of
from sfumato.attacks.record_linkage.learned_linkage.fit import learn
from sfumato.attacks.record_linkage.learned_linkage.linkage_problem import LinkageProblem
from sfumato.attacks.record_linkage.learned_linkage.milp_weights import proven_weights

DATA = Path(__file__).parents[1] / "samples" / "sdcmicro" / "CASCrefmicrodata.csv"
Floats = npt.NDArray[np.float64]

CASES = {
    "M4-33": (((0, 1), (2, 3)), (3, 3)),
    "M4-28": (((0, 1), (2, 3)), (2, 8)),
    "M4-82": (((0, 1), (2, 3)), (8, 2)),
    "M5-38": (((0, 1, 2), (3, 4)), (3, 8)),
    "M6-385": (((0, 1), (2, 3), (4, 5)), (3, 8, 5)),
    "M6-853": (((0, 1), (2, 3), (4, 5)), (8, 5, 3)),
}


def mdav(values: Floats, k: int) -> Floats:
    """Microaggregation of raw columns by maximum distance to average, written out for this test."""
    masked, left = values.copy(), np.arange(len(values))

    def group(around: int) -> None:
        nonlocal left
        near = left[np.argsort(((values[left] - values[around]) ** 2).sum(axis=1), kind="stable")[:k]]
        masked[near] = values[near].mean(axis=0)
        left = np.setdiff1d(left, near)

    def farthest(point: Floats) -> int:
        return int(left[np.argmax(((values[left] - point) ** 2).sum(axis=1))])

    while len(left) >= 3 * k:
        first = farthest(values[left].mean(axis=0))
        group(first)
        group(farthest(values[first]))
    if len(left) >= 2 * k:
        group(farthest(values[left].mean(axis=0)))
    masked[left] = values[left].mean(axis=0)
    return masked


def extract(name: str, people: int = 400, seed: int = 1, standardize: bool = False) -> tuple[Floats, Floats]:
    """Original and masked records of an extract; groups are formed on raw columns, or on standardized ones."""
    blocks, sizes = CASES[name]
    rows = np.random.default_rng(seed).choice(1080, people, replace=False)
    census = pl.read_csv(DATA).to_numpy().astype(np.float64)[rows]
    if standardize:
        census = (census - census.mean(0)) / census.std(0)
    masked = np.column_stack([mdav(census[:, list(block)], k) for block, k in zip(blocks, sizes, strict=True)])
    original = census[:, [column for block in blocks for column in block]]
    return (original - original.mean(0)) / original.std(0), (masked - masked.mean(0)) / masked.std(0)


def problem(form: Form, original: Floats, masked: Floats) -> LinkageProblem:
    distinct, order, starts = distinct_points(masked)
    truth = np.empty(len(masked), dtype=np.int64)
    truth[order] = np.repeat(np.arange(len(distinct)), np.diff(starts))
    return LinkageProblem.of(form, original, distinct, truth)


def right(original: Floats, masked: Floats) -> int:
    """People whose nearest masked point is their own (rows that share it are not told apart)."""
    found = nearest(original, masked, np.random.default_rng(0))
    return int((masked[found.row] == masked).all(axis=1).sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["M4-33", "M5-38"])
def test_order_of_the_published_table(name: str) -> None:
    original, masked = extract(name)
    width = original.shape[1]
    gap = original - masked
    values, vectors = np.linalg.eigh(np.cov(gap, rowvar=False))
    turn = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    plain, mahalanobis = right(original, masked), right(original @ turn, masked @ turn)
    linked = {}
    weights = None
    for shape in ("weighted", "choquet", "bilinear"):
        form = Form(shape=shape, width=width)
        begin = [1 / np.maximum(gap.var(axis=0), 1e-12)] if weights is None else [form.from_weights(weights)]
        lesson = learn(form, problem(form, original, masked), np.random.default_rng(0), starts=tuple(begin))
        weights = lesson.theta if weights is None else weights
        linked[shape] = lesson.linked
    assert plain < mahalanobis < linked["weighted"] <= linked["choquet"]
    assert linked["weighted"] <= linked["bilinear"]
    # Published: 84.00 and 39.75 percent by the plain distance; ours are other random extracts of the same file.
    assert 100 * plain / 400 == pytest.approx({"M4-33": 84.0, "M5-38": 39.75}[name], abs=5)


@pytest.mark.parametrize("name", CASES)
def test_groups_of_standardized_columns_are_linked_by_the_plain_distance(name: str) -> None:
    """Most of what learning gains over the plain distance is the scale that raw columns gave to the groups."""
    assert right(*extract(name, standardize=True)) > right(*extract(name)) + 0.05 * 400
    assert right(*extract(name, standardize=True)) > 0.85 * 400


def test_the_learner_reaches_the_proven_optimum() -> None:
    original, masked = extract("M4-33", people=150)
    form = Form(shape="weighted", width=4)
    task = problem(form, original, masked)
    lesson = learn(form, task, np.random.default_rng(0))
    proof = proven_weights(task, known=lesson.linked, seconds=30)
    assert proof is not None
    assert proof.optimal
    assert proof.bound == proof.linked == lesson.linked


def test_the_choquet_integral_links_more_than_any_weights_and_as_many_as_can_be() -> None:
    """Proven over all sums of minima and maxima of differences over sets of columns."""
    original, masked = extract("M4-33", people=100, seed=0)
    simple, form = Form(shape="weighted", width=4), Form(shape="choquet", width=4)
    first = learn(simple, problem(simple, original, masked), np.random.default_rng(0))
    task = problem(form, original, masked)
    lesson = learn(form, task, np.random.default_rng(0), starts=(form.from_weights(first.theta),))
    assert (form.constraints @ lesson.theta >= -1e-9).all()
    proof = proven_weights(
        LinkageProblem(gaps=task.gaps @ form.generators.T, starts=task.starts), known=lesson.linked, seconds=30
    )
    assert proof is not None
    assert proof.optimal
    assert (first.linked, lesson.linked, proof.bound) == (97, 99, 99)


@pytest.mark.parametrize("additive", [None, 2])
def test_generators_are_in_the_family_and_reach_every_weighted_mean(additive: Literal[2] | None) -> None:
    gap = np.random.default_rng(2).normal(size=(50, 4))
    form = Form(shape="choquet", width=4, additive=additive)
    assert (form.generators @ form.constraints.T >= 0).all()
    distances = form.features(gap) @ form.generators.T
    square = gap**2
    assert all((np.abs(distances - square[:, [column]]).max(axis=0) < 1e-12).any() for column in range(4))
    for value in (square[:, :2].min(axis=1), square[:, 1:3].max(axis=1)):
        assert (np.abs(distances - value[:, None]).max(axis=0) < 1e-12).any()
    assert form.shares.sum(axis=1) == pytest.approx(1)


def test_columns_that_keep_wrong_rows_away_get_the_credit() -> None:
    draw = np.random.default_rng(3)
    known = draw.normal(size=(60, 3))
    rows = known + draw.normal(size=known.shape) * np.array([0.01, 5.0, 5.0])
    for shape in ("weighted", "choquet", "bilinear"):
        form = Form(shape=shape, width=3)  # type: ignore[arg-type]
        task = LinkageProblem.of(form, known, rows, np.arange(60))
        lesson = learn(form, task, draw)
        credit = task.credit(form, lesson.theta)
        assert credit.sum() == pytest.approx(1)
        assert credit.argmax() == 0


def test_forms_agree_where_one_contains_the_other() -> None:
    """The weighted mean is a Choquet integral (additive measure), a two-additive one and a bilinear form (diagonal)."""
    gap = np.random.default_rng(2).normal(size=(50, 4))
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    expected = (gap**2) @ weights
    for form in (
        Form(shape="weighted", width=4),
        Form(shape="choquet", width=4),
        Form(shape="choquet", width=4, additive=2),
        Form(shape="bilinear", width=4),
    ):
        assert form.features(gap) @ form.from_weights(weights) == pytest.approx(expected)
        assert form.features(gap) @ form.plain == pytest.approx((gap**2).mean(axis=1))
        assert (form.constraints @ form.plain >= 0).all()
    assert Form(shape="owa", width=4).features(gap) @ np.array([1.0, 0, 0, 0]) == pytest.approx((gap**2).max(axis=1))


def test_definite_forms_give_no_negative_distance() -> None:
    original, masked = extract("M4-33", people=120)
    form = Form(shape="bilinear", width=4, definite=True)
    lesson = learn(form, problem(form, original, masked), np.random.default_rng(0), patience=30)
    assert np.linalg.eigvalsh(matrix_of(lesson.theta, 4))[0] >= -1e-8
