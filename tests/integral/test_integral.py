"""Integral privacy: encodings, learners, verdicts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from sfumato.dp.analytic_gaussian import squared_for
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import approximate
from sfumato.errors import BadParameter, NotComparable, SfumatoError, UnknownColumn, WrongKind
from sfumato.integral import (
    ColumnEncoding,
    Encoding,
    Learner,
    Records,
    all_generators,
    decide_publication,
    explain,
    explain_groups,
    explain_nearby,
    suggest_changes,
)
from sfumato.integral.differintegral import differintegral
from sfumato.integral.function_learner import FunctionLearner
from sfumato.integral.learners.decision_tree import DecisionTreeLearner
from sfumato.integral.learners.k_means import KMeansLearner
from sfumato.integral.learners.linear_regression import LinearRegressionLearner
from sfumato.integral.learners.logistic_regression import LogisticRegressionLearner
from sfumato.integral.masked_learner import MicroaggregatedLearner
from sfumato.release.guarantee import Guarantee


def numbers(people: int = 60) -> pl.DataFrame:
    draw = np.random.default_rng(5)
    x, z = draw.uniform(0, 100, people), draw.uniform(0, 10, people)
    return pl.DataFrame({"x": x, "z": z, "y": 0.4 * x + 3 * z + draw.normal(0, 4, people)})


def grid(label: ColumnEncoding | str | None) -> Encoding:
    bounds = {"x": (0.0, 100.0), "z": (0.0, 10.0)}
    return Encoding.from_bounds({**bounds, "y": (0.0, 80.0)} if label == "y" else bounds, label=label)


CASES: list[tuple[Learner, Encoding]] = [
    (LinearRegressionLearner(step=0.02), grid("y")),
    (LogisticRegressionLearner(step=0.2), grid(ColumnEncoding(name="y", edges=(35.0,)))),
    (KMeansLearner(clusters=3, step=0.02), grid(None)),
    (DecisionTreeLearner(depth=2), Encoding.from_table(numbers(), features=["x", "z"], label="y", threshold=35)),
    (FunctionLearner(function=lambda table: str(round(float(table["x"].mean()), -1))), grid(None)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("learner", "encoding"), CASES, ids=lambda one: type(one).__name__)
def test_models_do_not_depend_on_order_or_batch(learner: Learner, encoding: Encoding) -> None:
    frame = numbers()
    records, shuffled = Records.of(frame, encoding), Records.of(frame.reverse(), encoding)
    model = learner.fit(records, records.counts)
    assert learner.fit(shuffled, shuffled.counts) == model
    counts = np.stack([records.without([row]) for row in range(20)])
    assert list(learner.fit_many(records, counts)) == [learner.fit(records, row) for row in counts]
    assert len(learner.describe(model, encoding)) >= 1
    assert np.isfinite(learner.score(model, records))
    found = explain(learner, records, model, size=1)
    assert found.unchanged
    stays = [row for row in range(60) if learner.fit(records, records.without([row])) == model]
    assert found.ways == len(stays)


def test_coefficients_are_those_of_least_squares() -> None:
    frame = numbers(400)
    records = Records.of(frame, grid("y"))
    linear = LinearRegressionLearner(step=0.001)
    design = np.column_stack([np.ones(400), frame["x"] / 100, frame["z"] / 10])
    expected = np.linalg.lstsq(design, frame["y"].to_numpy() / 80, rcond=None)[0]
    assert linear.parameters(linear.fit(records, records.counts)) == pytest.approx(expected, abs=0.003)


def test_logistic_coefficients_solve_the_penalized_equations() -> None:
    frame = numbers(300)
    records = Records.of(frame, grid(ColumnEncoding(name="y", edges=(35.0,))))
    learner = LogisticRegressionLearner(step=1e-7, iterations=40)
    beta = learner.parameters(learner.fit(records, records.counts))
    design = np.column_stack([np.ones(len(records.cells)), records.features / 1024])
    chance = 1 / (1 + np.exp(-design @ beta))
    gradient = design.T @ (records.counts * (chance - records.labels)) + np.array([0.01, 1, 1]) * beta
    assert gradient == pytest.approx(0, abs=1e-4)


def test_two_clusters_are_found() -> None:
    frame = pl.DataFrame({"x": [10.0, 12.0, 11.0, 80.0, 82.0, 81.0], "z": [1.0, 1.0, 1.0, 9.0, 9.0, 9.0]})
    records = Records.of(frame, grid(None))
    learner = KMeansLearner(clusters=2, step=0.01)
    centres = np.asarray(learner.to_json(learner.fit(records, records.counts))).reshape(2, 2)
    assert centres == pytest.approx(np.array([[0.11, 0.1], [0.81, 0.9]]))


def mortgage() -> tuple[pl.DataFrame, Encoding]:
    """Salaries from 5,000 to 60,000: those between 15,000 and 20,000 were refused, others by their debts."""
    draw = np.random.default_rng(3)
    salary = draw.integers(5, 60, 600) * 1000 + 500
    debts = draw.integers(0, 30, 600) * 1000 + 1
    refused = ((salary > 15_000) & (salary < 20_000)) | ((debts > 20_000) & (salary < 40_000))
    frame = pl.DataFrame({"salary": salary, "debts": debts, "mortgage": np.where(refused, "no", "yes")})
    edges = {"salary": [10_000, 15_000, 20_000, 30_000, 40_000], "debts": [5_000, 10_000, 20_000]}
    return frame, Encoding.from_table(frame, features=["salary", "debts"], label="mortgage", edges=edges)


def test_a_removed_salary_band_is_named_by_the_two_trees() -> None:
    """The new tree no longer refuses salaries from 15,000 to 20,000: the two trees name the group that was removed."""
    frame, encoding = mortgage()
    records, tree = Records.of(frame, encoding), DecisionTreeLearner(depth=3)
    band = frame.with_row_index().filter(pl.col("salary").is_between(15_000, 20_000))["index"].to_numpy()
    new = tree.fit(records, records.without(band))
    found = explain_groups(tree, records, new)
    assert found.verdict(2).state == "fails"
    assert found.people_in_all == found.people == len(band)
    assert found.shared()["salary"] == [2]
    # Nobody who is known to have stayed can be in the group.
    assert explain_groups(tree, records, new, known=[int(band[0])]).ways == 0
    assert not explain(tree, records, new, size=1).minimal


def test_the_only_member_of_a_cell_is_disclosed() -> None:
    frame = pl.DataFrame({"a": [0, 0, 0, 1], "t": ["n", "n", "n", "y"]})
    records = Records.of(frame, Encoding.from_table(frame, features=["a"], label="t", edges={"a": [0]}))
    tree = DecisionTreeLearner(depth=1, min_leaf=1)
    found = explain(tree, records, tree.fit(records, records.without([3])), size=1)
    assert found.verdict(2).state == "fails"
    assert found.people_in_all == 1
    assert found.shared() == {"a": [1], "t": [1]}


def test_a_search_that_was_not_finished_is_not_checked() -> None:
    frame, encoding = mortgage()
    records, tree = Records.of(frame, encoding), DecisionTreeLearner(depth=3)
    new = tree.fit(records, records.without(range(100)))
    found = explain(tree, records, new, size=2, max_refits=10)
    assert found.refits == 10
    assert found.verdict(1000).state == "not checked"


@pytest.mark.parametrize("k", [0, 1, True])
def test_k_is_at_least_two(k: int) -> None:
    frame, encoding = mortgage()
    records, tree = Records.of(frame.head(5), encoding), DecisionTreeLearner(depth=1)
    with pytest.raises(BadParameter):
        explain(tree, records, tree.fit(records, records.counts), size=1).verdict(k)
    with pytest.raises(BadParameter):
        all_generators(tree, records, k=k)


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (pl.DataFrame({"a": [1, None], "t": ["x", "y"]}), WrongKind),
        (pl.DataFrame({"a": [1.0, float("nan")], "t": ["x", "y"]}), WrongKind),
        (pl.DataFrame({"a": ["1", "2"], "t": ["x", "y"]}), WrongKind),
        (pl.DataFrame({"a": [1, 2], "t": ["x", "secret-value"]}), WrongKind),
        (pl.DataFrame({"b": [1, 2], "t": ["x", "y"]}), UnknownColumn),
        (pl.DataFrame({"a": [], "t": []}, schema={"a": pl.Int64, "t": pl.String}), BadParameter),
    ],
    ids=["null", "nan", "text", "unknown category", "no column", "no rows"],
)
def test_bad_tables_are_refused_without_showing_a_value(frame: pl.DataFrame, error: type[SfumatoError]) -> None:
    encoding = Encoding(
        features=(ColumnEncoding(name="a", edges=(0.5,)),), label=ColumnEncoding(name="t", categories=("x", "y"))
    )
    with pytest.raises(error) as raised:
        Records.of(frame, encoding)
    assert "secret-value" not in str(raised.value)


def test_a_random_function_is_refused() -> None:
    draw = np.random.default_rng(1)
    learner = FunctionLearner(function=lambda table: str(draw.random()))
    records = Records.of(numbers(), grid(None))
    with pytest.raises(BadParameter):
        learner.fit(records, records.counts)


def test_deletions_near_a_large_one_are_minimal_and_few_records_prove_it() -> None:
    frame, encoding = mortgage()
    records, tree = Records.of(frame, encoding), DecisionTreeLearner(depth=3, min_leaf=1)
    deleted = list(range(0, 600, 7))
    new = tree.fit(records, records.without(deleted))
    found = explain_nearby(tree, records, deleted, enough=5)
    assert found.minimal
    for one in found.minimal[:5]:
        counts = records.counts.copy()
        for cell, number in one.taken().items():
            counts[cell] -= number
        assert tree.fit(records, counts) == new
        for part in one.submodifications():
            left = records.counts.copy()
            for cell, number in part.taken().items():
                left[cell] -= number
            assert tree.fit(records, left) != new
    assert found.verdict(10_000_000).state == "not checked"


def test_an_erasure_that_discloses_comes_with_changes_that_help() -> None:
    """One person alone holds up a split: k = 2 fails for the fine tree, and the changes on offer are tried ones."""
    frame = pl.DataFrame(
        {"a": [*range(40), 100], "b": [number % 7 for number in range(41)], "t": ["n"] * 20 + ["y"] * 20 + ["n"]}
    )
    edges = {"a": [9.5, 19.5, 29.5, 50.0], "b": [2.5]}
    encoding = Encoding.from_table(frame, features=["a", "b"], label="t", edges=edges)
    records, tree = Records.of(frame, encoding), DecisionTreeLearner(depth=2, min_leaf=1)
    old, new = tree.fit(records, records.counts), tree.fit(records, records.without([40]))
    decision = decide_publication(tree, records, old, new, k=2)
    assert not decision.publish
    assert decision.to_dict()["people_in_all"] == 1
    changes = list(suggest_changes(tree, frame, encoding, [40], k=2))
    assert any(one.change.startswith("Publish a coarser model") for one in changes)
    for one in changes:
        assert 0 <= one.score <= 1
    # A sensitive column that all explanations share stops publication as well.
    kept = tree.fit(records, records.without([0]))
    assert decide_publication(tree, records, old, kept, k=2).publish
    shared = explain(tree, records, kept, size=1).shared()
    for column in ("a", "b", "t"):
        assert decide_publication(tree, records, old, kept, k=2, secrets=[column]).publish == (column not in shared)
    with pytest.raises(NotComparable):
        decide_publication(tree, records, b"another", new, k=2)


def test_microaggregation_comes_before_learning() -> None:
    """The model is that of a table masked by hand, for the whole table and after a deletion."""
    draw = np.random.default_rng(3)
    frame = pl.DataFrame({"x": draw.integers(0, 40, 31), "z": draw.normal(size=31)})
    frame = frame.with_columns(y=pl.Series(np.where(frame["x"].to_numpy() + 5 * draw.normal(size=31) > 20, "a", "b")))
    encoding = Encoding.from_table(frame, features=["x", "z"], label="y", bins=3)
    tree = DecisionTreeLearner(depth=2, min_leaf=2)
    learner = MicroaggregatedLearner.of(tree, encoding, frame, group=4)
    records = learner.records(frame)
    for left_out in ([], [7], [0, 30]):
        left = frame.with_row_index().filter(~pl.col("index").is_in(left_out)).drop("index").sort("x", "z", "y")
        masked = {"y": left["y"]}
        for name in ("x", "z"):
            order = sorted(range(left.height), key=lambda row, name=name: left[name][row])
            groups = [order[start : start + 4] for start in range(0, left.height, 4)]
            if len(groups[-1]) < 4:
                groups[-2:] = [groups[-2] + groups[-1]]
            means = {row: sum(left[name][one] for one in group) / len(group) for group in groups for row in group}
            masked[name] = pl.Series([means[row] for row in range(left.height)])
        coded = Records.of(pl.DataFrame(masked), encoding)
        assert learner.fit(records, records.without(left_out)) == tree.fit(coded, coded.counts)


def test_masking_first_is_suggested_with_its_strength() -> None:
    draw = np.random.default_rng(11)
    frame = pl.DataFrame({"x": draw.normal(size=60), "z": draw.normal(size=60)})
    frame = frame.with_columns(y=pl.Series(np.where(frame["x"].to_numpy() + draw.normal(size=60) > 0, "a", "b")))
    encoding = Encoding.from_table(frame, features=["x", "z"], label="y", bins=6)
    tree, found = DecisionTreeLearner(depth=3, min_leaf=2), []
    records = Records.of(frame, encoding)
    old = tree.fit(records, records.counts)
    for row in range(60):
        new = tree.fit(records, records.without([row]))
        if not decide_publication(tree, records, old, new, k=4).publish:
            found += [one.change for one in suggest_changes(tree, frame, encoding, [row], k=4)]
        if any("microaggregate" in change for change in found):
            break
    change = next(one for one in found if "microaggregate" in one)
    group = int(change.split("groups of ")[1].split(",")[0])
    masked = MicroaggregatedLearner.of(tree, encoding, frame, group=group)
    cells = masked.records(frame)
    pair = masked.fit(cells, cells.counts), masked.fit(cells, cells.without([row]))
    same = [one for one in range(60) if masked.fit(cells, cells.without([one])) == pair[1]]
    assert len(same) >= 4, "as many single deletions lead to the new model"


def test_two_private_models_are_differintegrally_private() -> None:
    def statement(mu: float | None) -> Guarantee:
        curve = None if mu is None else gaussian_curve(Fraction(mu) ** 2)
        return Guarantee(loss=replace(approximate(1, "1e-6"), curve=curve), unit="row", proof="test")

    mu = float(squared_for(Fraction(1), Fraction(1, 10**6))) ** 0.5
    pair = differintegral(statement(mu), statement(mu), people=100, k=10)
    assert pair.verdict.holds
    assert 1.3 < pair.epsilon < 1.5, "Gaussian losses add up as squares"
    assert pair.delta == 2e-6
    added = differintegral(statement(mu), statement(None), people=100, k=10)
    assert added.epsilon == 2
    assert differintegral(statement(mu), statement(mu), people=9, k=10).verdict.state == "fails"
