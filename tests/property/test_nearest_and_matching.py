"""Fast searches against brute force: nearest rows and fitting rows, on random small tables."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from sfumato.attacks import View
from sfumato.attacks import nearest_neighbours as near
from sfumato.attacks.candidate_rows import match
from sfumato.attacks.record_linkage.learned_linkage.distances import Form
from sfumato.attacks.record_linkage.learned_linkage.fit import learn
from sfumato.attacks.record_linkage.learned_linkage.linkage_problem import LinkageProblem
from sfumato.data.table import Table
from sfumato.release import Release
from sfumato.stats import wilson

VALUES = ["a", "b", "c", "*", "{a, b}", None]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), min_size=1, max_size=12),
    st.lists(
        st.tuples(st.sampled_from(VALUES), st.sampled_from(["0", "1", "2-3", "<2", "*", "4"])), min_size=1, max_size=20
    ),
)
def test_candidates_are_exactly_the_rows_that_fit(people: list[tuple[str, int]], rows: list[tuple[str, str]]) -> None:
    def fits(known: tuple[str, int], seen: tuple[str | None, str]) -> bool:
        letter = seen[0] in (None, "*", known[0]) or (seen[0] == "{a, b}" and known[0] in "ab")
        number = known[1]
        ranges = {"*": True, "2-3": number in (2, 3), "<2": number < 2}
        return letter and ranges.get(seen[1], seen[1] == str(number))

    targets = pl.DataFrame(people, schema={"x": pl.String, "n": pl.Int64}, orient="row")
    released = pl.DataFrame(rows, schema={"x": pl.String, "n": pl.String}, orient="row")
    if not any(fits(person, row) for person in people for row in rows):
        return
    view = View(release=Release(table=Table(frame=released), manifest={}), targets=targets, knows=("x", "n"))
    matched = match(view)
    seen = set()
    for numbers, candidates in matched.candidates():
        found = {int(row) for number in candidates.classes for row in matched.rows(int(number))}
        for number in numbers:
            seen.add(int(number))
            assert found == {index for index, row in enumerate(rows) if fits(people[number], row)}
    assert seen == set(range(len(people)))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_nearest_row_is_nearest(people: int, rows: int, width: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    targets, released = draw.integers(0, 4, (people, width)) * 1.0, draw.integers(0, 4, (rows, width)) * 1.0
    found = near.nearest(targets, released, draw)
    distance = ((targets[:, None] - released[None]) ** 2).sum(axis=2)
    assert (distance[np.arange(people), found.row] == distance.min(axis=1)).all()
    assert (found.ties == (distance == distance.min(axis=1, keepdims=True)).sum(axis=1)).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 20), st.integers(1, 3000), st.integers(1, 14), st.integers(1, 80), st.integers(0, 2**32 - 1))
def test_boxes_leave_nothing_out(people: int, rows: int, width: int, count: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    targets, released = draw.integers(0, 9, (people, width)) / 4, draw.integers(0, 9, (rows, width)) / 4
    tree = near.BoxTree.of(released)
    assert (np.sort(tree.order) == np.arange(rows)).all()
    gap = ((targets[:, None] - released[None]) ** 2).sum(axis=2)
    found, distance = tree.near(targets, count)
    assert (distance == np.sort(gap, axis=1)[:, :count]).all()
    assert (np.take_along_axis(gap, found, axis=1) == distance).all()
    assert all(len(set(row)) == min(count, rows) for row in found)
    nearest = near.nearest(targets, released, draw)
    assert (nearest.distance == gap.min(axis=1)).all()
    assert (nearest.ties == (gap == gap.min(axis=1, keepdims=True)).sum(axis=1)).all()
    odd = draw.normal(size=(rows, width))
    nearest = near.nearest(targets, odd, draw)
    assert (near.squared_distance(targets, odd[nearest.row]) == nearest.distance).all()


@settings(deadline=None)
@given(st.integers(1, 500), st.data())
def test_intervals_hold_the_estimate(tries: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, tries))
    low, high = wilson(hits, tries)
    assert 0 <= low <= hits / tries <= high <= 1
    exact = binomtest(hits, tries).proportion_ci()
    # The score interval of a share is not much wider, nor elsewhere, than the exact one of Clopper and Pearson.
    assert abs(low - exact.low) < 0.2
    assert abs(high - exact.high) < 0.2


@settings(max_examples=15, deadline=None)
@given(
    st.integers(5, 40),
    st.integers(2, 4),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["weighted", "owa", "choquet", "bilinear"]),
)
def test_learning_never_does_worse_than_the_plain_distance(people: int, width: int, seed: int, shape: str) -> None:
    draw = np.random.default_rng(seed)
    known = draw.normal(size=(people, width))
    rows = known + 0.8 * draw.normal(size=known.shape)
    form = Form(shape=shape, width=width)  # type: ignore[arg-type]
    problem = LinkageProblem.of(form, known, rows, np.arange(people))
    lesson = learn(form, problem, draw, patience=10)
    assert lesson.linked >= problem.linked(form.plain)
    assert lesson.linked == problem.linked(lesson.theta)
    assert (form.constraints @ lesson.theta >= -1e-9).all()
