"""Differentially private synthetic data: the budget, the estimates, the refusals, and the release."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.data.table import Table
from sfumato.dataset import Data, Schema
from sfumato.dp import approximate, concentrated
from sfumato.dp.analytic_gaussian import squared_of_pure
from sfumato.dp.contribution_bounds import bound_rows
from sfumato.errors import BadParameter, NoReceipt, NotApplicable, OverBudget, SfumatoError
from sfumato.ledger import Charge, Ledger
from sfumato.masking.base import Context
from sfumato.reports.synthetic_use import synthetic_use
from sfumato.rng import Rng
from sfumato.synthesis import PrivateSynthesis
from sfumato.synthesis.column_domain import range_cells
from sfumato.synthesis.compression import merge_cells
from sfumato.synthesis.estimate import MarginalEstimates
from sfumato.synthesis.junction_tree import JunctionTree, tree_cells, triangulate
from sfumato.synthesis.private_counts import NoisyMarginal, PrivateCounts, count_cells
from sfumato.synthesis.residuals import Residuals, project_to_simplex, shrink_singular_values

RANDOM = np.random.default_rng(5)


def people(rows: int = 4000) -> Data:
    random = np.random.default_rng(1)
    job = random.choice(["baker", "nurse", "smith"], rows)
    age = np.where(job == "nurse", random.integers(18, 40, rows), random.integers(30, 66, rows))
    frame = pl.DataFrame(
        {
            "name": [f"person {n}" for n in range(rows)],
            "age": age,
            "job": job,
            "pay": np.round(random.lognormal(7, 0.4, rows) + 20.0 * age, 2),
            "ill": random.random(rows) < age / 100,
            "born": [date(2000 - int(a), 5, 1) for a in age],
        }
    ).with_columns(pl.when(pl.col("age") == 50).then(None).otherwise(pl.col("job")).alias("job"))
    return Data.of(Table(frame=frame), Schema.of(frame, identifier="name"))


DOMAINS: dict[str, Any] = {
    "age": {"low": 0, "high": 110},
    "job": {"values": ["baker", "nurse", "smith", "wizard"]},
    "pay": {"low": 0, "high": 20000},
    "born": {"first": "1900-01-01", "last": "2010-12-31"},
}


BROAD = {
    **DOMAINS,
    "job": {"values": [str(n) for n in range(90_000)]},
    "age": {"values": list(range(90_000))},
    "born": {"values": [date.fromordinal(n) for n in range(700_000, 790_000)]},
}


def step(**changes: Any) -> PrivateSynthesis:
    return PrivateSynthesis.build({"epsilon": 5, "delta": 1e-6, "domains": DOMAINS, **changes})


def receipt(rho: Fraction | int = 100) -> Any:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(concentrated(rho), dataset="d")
    return ledger.charge(Charge(loss=concentrated(rho), unit="row", what="q"), dataset="d", analyst="a")


# --- estimates -------------------------------------------------------------------------------------------------------


def test_residual_pooling_is_generalized_least_squares() -> None:
    """Against the dense weighted least squares solution over all cells of the joint table."""
    shape, random = (3, 4, 2), np.random.default_rng(3)
    cells = list(product(*(range(n) for n in shape)))
    pool, lines, values = Residuals(shape), [], []
    for columns, variance in (((0,), 2.0), ((2,), 1.0), ((0, 1), 3.0), ((1, 2), 0.5), ((0,), 5.0)):
        noisy = random.normal(50, 9, [shape[c] for c in columns])
        pool.add(columns, noisy, variance=variance)
        for key in product(*(range(shape[c]) for c in columns)):
            lines.append(
                [all(cell[c] == k for c, k in zip(columns, key, strict=True)) / variance**0.5 for cell in cells]
            )
            values.append(noisy[key] / variance**0.5)
    design = np.array(lines)
    solution = np.linalg.lstsq(design, np.array(values), rcond=None)[0]
    spread = np.linalg.pinv(design.T @ design)
    for columns in ((0,), (1,), (0, 1), (1, 2), ()):
        query = np.array(
            [
                [all(cell[c] == k for c, k in zip(columns, key, strict=True)) for cell in cells]
                for key in product(*(range(shape[c]) for c in columns))
            ],
            dtype=float,
        )
        np.testing.assert_allclose(pool.marginal(columns).ravel(), query @ solution, atol=1e-8)
        np.testing.assert_allclose(np.diag(query @ spread @ query.T), pool.variance(columns), atol=1e-8)


def test_simplex_projection_meets_the_optimality_conditions() -> None:
    values = RANDOM.normal(3, 10, (6, 7))
    best = project_to_simplex(values, 40.0)
    assert best.min() >= 0
    assert best.sum() == pytest.approx(40)
    shift = (values - best)[best > 0]
    assert np.ptp(shift) < 1e-9, "all positive cells are moved by the same amount"
    assert (values[best == 0] <= shift[0] + 1e-9).all()


def test_fitted_tree_has_the_maximum_entropy_marginals_of_a_cycle() -> None:
    """Against iterative proportional fitting of the full joint table."""
    shape, random = (3, 2, 4, 3), np.random.default_rng(4)
    true = random.dirichlet(np.ones(72) * 0.3).reshape(shape)
    cycle = [(0, 1), (1, 2), (2, 3), (0, 3)]
    targets = {pair: true.sum(axis=tuple(c for c in range(4) if c not in pair)) for pair in cycle}
    joint = np.full(shape, 1 / 72)
    for _ in range(500):
        for pair, target in targets.items():
            away = tuple(c for c in range(4) if c not in pair)
            joint *= np.expand_dims(target / joint.sum(axis=away), away)
    tree = JunctionTree(shape, cycle)
    assert tree_cells(shape, tree.cliques) < 72
    tree.fit(targets, sweeps=500)
    rows = tree.sample(200_000, random)
    for pair in combinations(range(4), 2):
        away = tuple(c for c in range(4) if c not in pair)
        got = count_cells(rows, pair, shape) / 200_000
        assert np.abs(got - joint.sum(axis=away)).sum() < 0.02, pair


def test_sampled_counts_are_closer_to_the_model_than_random_draws() -> None:
    """Three pairs in two cliques: the mean error is a quarter of the multinomial one, or less."""
    shape, rows, random = (4, 5, 6), 20_000, np.random.default_rng(6)
    joint = np.einsum("ab,bc->abc", random.dirichlet(np.ones(20)).reshape(4, 5), random.dirichlet(np.ones(6), 5))
    joint /= joint.sum()
    tree = JunctionTree(shape, [(0, 1), (1, 2)])
    tree.fit({(0, 1): joint.sum(axis=2), (1, 2): joint.sum(axis=0)}, sweeps=2)
    drawn = tree.sample(rows, random)
    for pair in combinations(range(3), 2):
        shares = joint.sum(axis=tuple(c for c in range(3) if c not in pair))
        error = np.abs(count_cells(drawn, pair, shape) - rows * shares).sum()
        multinomial = np.sqrt(2 / np.pi * rows * shares * (1 - shares)).sum()
        assert error < multinomial / 4, pair


def test_triangulation_covers_every_marginal_and_has_running_intersections() -> None:
    shape = (2,) * 7
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (0, 6), (2, 5), (0, 3)]
    cliques = triangulate(shape, edges)
    assert all(any(set(edge) <= set(clique) for clique in cliques) for edge in edges)
    tree = JunctionTree(shape, edges)
    for column in range(7):
        holding = [i for i, clique in enumerate(tree.cliques) if column in clique]
        inner = [i for i in holding if tree._parent.get(i) in holding]
        assert len(inner) == len(holding) - 1, "the cliques with a column form a subtree"


def test_merged_cells_go_back_to_cells_by_their_shares() -> None:
    noisy = np.array([0.0, 500.0, 6.0, 2.0, 600.0])
    merged = merge_cells(noisy, deviation=10.0, ordered=False, bins=20, total=1100.0)
    assert merged.groups[1] != merged.groups[4]
    cells = merged.split(np.full(4000, merged.groups[2], dtype=np.int32), np.random.default_rng(1))
    assert set(np.unique(cells)) <= set(np.flatnonzero(merged.groups == merged.groups[2]))


def test_shrunk_singular_values_lose_the_noise_and_keep_the_signal() -> None:
    """Rank-one signals in 40 tables: less than half of the error of the noisy tables, and nothing of noise alone."""
    random = np.random.default_rng(8)
    raw = shrunk = 0.0
    for _ in range(40):
        signal = 30 * np.outer(random.dirichlet(np.ones(25)) - 0.04, random.dirichlet(np.ones(20)) - 0.05) * 25
        noisy = signal + random.normal(scale=0.3, size=signal.shape)
        raw += float(np.abs(noisy - signal).sum())
        shrunk += float(np.abs(shrink_singular_values(noisy, deviation=0.3) - signal).sum())
        assert not shrink_singular_values(noisy - signal, deviation=0.33).any()
    assert shrunk < raw / 2
    np.testing.assert_allclose(shrink_singular_values(signal, deviation=0.0), signal, atol=1e-6)


def test_rows_are_raked_to_pairs_that_the_tree_cannot_hold() -> None:
    """All six pairs of four dependent columns, with room for two: without raking, pairs are wrong by up to 0.3."""
    shape, random = (4, 4, 4, 4), np.random.default_rng(9)
    hidden = random.integers(0, 4, 60_000)
    codes = np.array([np.where(random.random(60_000) < 0.6, hidden, random.integers(0, 4, 60_000)) for _ in shape])
    estimates = MarginalEstimates(shape)
    for pair in combinations(range(4), 2):
        counts = count_cells(codes.astype(np.int32), pair, shape).astype(float)
        estimates.add(NoisyMarginal(columns=pair, noisy=counts, variance=1.0))
    fitted = estimates.fitted(sweeps=20, max_cells=48)
    assert tree_cells(shape, fitted.tree.cliques) <= 48
    for drawn in (fitted.sample(60_000, random), fitted.sample(130_000, random)):
        assert drawn.shape[1] in (60_000, 130_000)
        for pair in combinations(range(4), 2):
            off = count_cells(drawn, pair, shape) / drawn.shape[1] - count_cells(codes, pair, shape) / 60_000
            assert np.abs(off).sum() / 2 < 0.01, pair


@pytest.mark.parametrize(
    ("low", "high", "kind"), [(0, 1000, pl.Int64()), (-5.0, 90.0, pl.Float64()), (1, 9, pl.Int64())]
)
def test_coarser_cells_cover_the_range_and_keep_single_values(low: float, high: float, kind: pl.DataType) -> None:
    fine = range_cells("x", kind, low, high)
    for most in (1, 5, 20):
        coarse = fine.coarser(most)
        assert fine.edges is not None
        assert coarse.edges is not None
        assert coarse.edges[0] == fine.edges[0]
        assert coarse.edges[-1] == fine.edges[-1]
        assert set(coarse.edges) <= set(fine.edges)
        assert coarse.size <= min(fine.size, 2 * most + 8)
        inside = pl.Series([low, high], dtype=kind)
        assert (coarse.decode("x", coarse.encode(inside), RANDOM) == inside).all() or fine.size < 20


# --- the budget ------------------------------------------------------------------------------------------------------


def test_counts_are_read_only_against_the_receipt() -> None:
    codes = np.zeros((2, 50), dtype=np.int32)
    counts = PrivateCounts(codes, (2, 2), max_contribution=1, receipt=receipt(Fraction(1, 10)))
    counts.measure((0,), Fraction(1, 10))
    with pytest.raises(NoReceipt):
        counts.measure((0, 1), Fraction(1, 5))
    assert "0" not in repr(counts)


@pytest.mark.parametrize("max_contribution", [1, 3])
def test_noise_of_a_marginal_has_the_variance_that_its_loss_needs(max_contribution: int) -> None:
    """Detects a standard deviation 3 % too small: 20,000 draws have one with a relative error of 0.5 %."""
    squared = Fraction(1, 100)
    codes = np.zeros((1, 10), dtype=np.int32)
    counts = PrivateCounts(codes, (20_000,), max_contribution=max_contribution, receipt=receipt(squared / 2))
    noisy = counts.measure((0,), squared).noisy
    noisy[0] -= 10
    assert noisy.std() == pytest.approx(max_contribution / float(squared) ** 0.5, rel=0.025)


def test_selection_has_the_probabilities_of_a_score_that_is_not_monotone() -> None:
    """exp(rate·score) with rate = 1/sensitivity where the budget is that of epsilon = 1. Twice or four times the rate,
    as for a monotone score or for one that is taken to move by half, is detected with probability above 1 - 1e-9."""
    squared, tries = squared_of_pure(Fraction(1)), 3000
    assert squared is not None
    codes = np.array([[0] * 3 + [1] * 1], dtype=np.int32)
    counts = PrivateCounts(codes, (2,), max_contribution=2, receipt=receipt(Fraction(1, 2) * tries + 1))
    guesses = [np.array([3.0, 1.0]), np.array([2.0, 1.0]), np.array([3.0, 3.0])]  # scores 0, 1, 2
    chosen = [
        counts.select([(0,)] * 3, guesses, penalties=[0, 0, 0], weights=[1, 1, 1], squared=squared)
        for _ in range(tries)
    ]
    expected = np.exp(0.5 * np.arange(3))
    expected /= expected.sum()
    np.testing.assert_allclose(np.bincount(chosen, minlength=3) / tries, expected, atol=0.05)


@pytest.mark.parametrize("mechanism", ["mst", "adaptive"])
@pytest.mark.parametrize("learn", [0, 0.2])
def test_a_fit_spends_no_more_than_its_budget_and_nearly_all_of_it(mechanism: str, learn: float) -> None:
    changes = {"domains": {}} if learn else {}
    made = step(mechanism=mechanism, learn=learn, **changes)
    ledger = Ledger.open(":memory:")
    ledger.set_cap(approximate(7, Fraction(2, 10**6)), dataset="people")
    model = made.fit(people(), ledger=ledger, dataset="people")
    assert 4.999 < ledger.balance(dataset="people").spent.size <= 5
    assert 4.99 < model.guarantee.epsilon <= 5
    with pytest.raises(OverBudget):
        made.fit(people(), ledger=ledger, dataset="people")


def test_contributions_of_a_person_are_bounded_at_random() -> None:
    frame = pl.DataFrame({"id": [1] * 50 + [2] * 2 + [None], "x": range(53)})
    kept = bound_rows(frame, "id", 3)[0]
    assert kept["id"].value_counts(sort=True)["count"].to_list() == [3, 2]
    assert len({tuple(sorted(bound_rows(frame, "id", 3)[0]["x"])) for _ in range(20)}) > 5


# --- the release -----------------------------------------------------------------------------------------------------


def test_types_missing_values_and_dependence_come_back() -> None:
    data = people()
    made = step().apply(data, Context(rng=Rng(1))).table.frame
    original = data.table.frame.drop("name")
    assert made.schema == original.schema
    assert made["job"].null_count() / made.height == pytest.approx(original["job"].null_count() / 4000, abs=0.01)
    ages = {job: frame["age"].mean() for (job,), frame in made.drop_nulls().group_by("job")}
    assert ages["nurse"] + 10 < ages["baker"]
    assert abs(made.height - 4000) < 60
    assert made["age"].min() >= 0
    assert made["born"].max() <= date(2010, 12, 31)
    share = made.filter(pl.col("job") == "wizard").height / made.height
    assert share < 0.01, "a declared value that nobody has stays rare"


def test_release_has_a_verdict_and_a_guarantee(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    Ledger.open(path).set_cap(approximate(5, Fraction(1, 10**6)), dataset="town")
    recipe = {
        "sfumato": 1,
        "dataset": "town",
        "ledger": str(path),
        "columns": {"name": "identifier", "age": "quasi", "job": "quasi", "pay": "sensitive", "ill": "sensitive"},
        "steps": [{"private-synthesis": {**step().to_dict(), "columns": ["age", "job", "ill"],
                                         "domains": {k: DOMAINS[k] for k in ("age", "job")}}}],
        "attacks": ["membership"],
        "measures": ["marginals"],
    }  # fmt: skip
    result = sfumato.protect(recipe, people(600).table.frame, seed=1, n_targets=50)
    [verdict] = [v for v in result.evaluation.verdicts if v.model == "differential-privacy"]
    assert verdict.holds
    assert "add or remove" in verdict.reason
    [published] = result.release.manifest["steps"][:1]
    assert published["guarantee"]["epsilon"] <= 5
    assert published["guarantee"]["unit"] == "row"
    assert published["guarantee"]["entry"] == 2
    assert str(path) not in str(result.release.manifest)
    spends = [entry for entry in Ledger.open(path).entries() if entry.kind == "spend"]
    assert len(spends) == 1, "folds of the evaluation are not charged"
    with pytest.raises(OverBudget):
        sfumato.protect(recipe, people(600).table.frame, seed=1)


def test_constraints_hold_in_every_row() -> None:
    made = step(constraints=["age >= 30 OR job = 'nurse'"]).apply(people(), Context(rng=Rng(1))).table.frame
    assert made.filter((pl.col("age") < 30) & (pl.col("job") != "nurse")).height == 0
    assert abs(made.height - 4000) < 60


def test_a_tree_measures_only_pairs_of_the_workload() -> None:
    model = step(mechanism="mst", workload=[["age", "job"], ["pay", "ill", "job"], ["job", "ill"]]).fit(people(300))
    names = list(model.columns)
    pairs = {tuple(sorted(names[c] for c in columns)) for columns in model.estimates.measured if len(columns) == 2}
    assert pairs == {("age", "job"), ("ill", "job")}


def test_intervals_cover_the_true_marginals() -> None:
    """95 % intervals of 8 fits; coverage falls to 90 % if standard errors are 16 % too small (1.645 / 1.96)."""
    data = people(1500)
    frame = data.table.frame
    codes = {}
    hits = tried = 0
    for _ in range(8):
        model = step(columns=["age", "job", "ill"], domains={k: DOMAINS[k] for k in ("age", "job")}).fit(data)
        for name, cells, merged in zip(model.columns, model.columns.values(), model.merged, strict=True):
            codes[name] = merged.groups[cells.encode(frame.get_column(name))]
        for names in (("age",), ("job",), ("age", "job"), ("job", "age"), ("job", "ill"), ("age", "ill")):
            low, high = model.interval(*names)
            truth = count_cells(np.array([codes[n] for n in names]), tuple(range(len(names))), low.shape)
            hits += int(((low <= truth) & (truth <= high)).sum())
            tried += truth.size
        assert len(model.errors()) == 3 + 3
    assert hits / tried > 0.9


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"domains": {}}, "no public domain"),
        ({"epsilon": 1e-7}, "too small"),
        ({"domains": {**DOMAINS, "job": {"low": 1, "high": 2}}}, "needs `values`"),
        ({"domains": {**DOMAINS, "age": {"low": 9, "high": 2}}}, "low not above high"),
        ({"domains": {**DOMAINS, "job": {"values": list(map(str, range(200_000)))}}}, "at most"),
        ({"domains": {**DOMAINS, "nobody": {"low": 1, "high": 2}}}, "not synthesized"),
        ({"target": "nobody"}, "not synthesized"),
        ({"workload": [["age", "nobody"]]}, "not synthesized"),
        ({"columns": ["age", "age"]}, "twice"),
        ({"workload": [["age", "job", "born"]], "domains": BROAD}, "cells"),
        ({"constraints": ["height >= 18"]}, "not a condition"),
        ({"constraints": ["age >= 'old'"]}, "not a condition"),
        ({"constraints": ["age + 1"]}, "not a condition"),
        ({"constraints": ["age >= 200"]}, "meets all constraints"),
        ({"constraints": ["age >= 60", "age < 50 OR job = 'nobody'"]}, "meets all constraints"),
    ],
)
def test_bad_input_is_refused_before_the_budget_is_charged(changes: dict[str, Any], words: str) -> None:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(approximate(5, Fraction(1, 10**6)), dataset="table")
    with pytest.raises(BadParameter, match=words):
        step(**changes).fit(people(50), ledger=ledger, dataset="table")
    assert [entry.kind for entry in ledger.entries()] == ["cap"]


@pytest.mark.parametrize(
    "bad",
    [
        {"delta": 1e-6},
        {"epsilon": 1},
        {"epsilon": 0, "delta": 1e-6},
        {"epsilon": float("nan"), "delta": 1e-6},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1e-6, "ledger": "x.db"},
        {"epsilon": 1, "delta": 1e-6, "constraints": ["age >="]},
        {"epsilon": 1, "delta": 1e-6, "workload": [["age"]]},
        {"epsilon": 1, "delta": 1e-6, "domains": {"age": {"low": 1}}},
    ],
)
def test_parameters_without_a_sound_value_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(SfumatoError):
        PrivateSynthesis.build(bad)


def test_the_step_comes_first_and_people_with_many_rows_need_a_bound() -> None:
    with pytest.raises(NotApplicable, match="first step"):
        step().apply(people(50), Context(rng=Rng(1), before=1))
    data = people(50)
    many = Data(table=data.table, schema=Schema(columns=data.schema.columns, unit="name"))
    with pytest.raises(BadParameter, match="max_rows"):
        step().fit(many)
    assert step(max_rows=2).fit(many).guarantee.unit == "name"


def test_one_column_uses_the_whole_budget() -> None:
    step = PrivateSynthesis(epsilon=1, delta=1e-6, columns=("job",), domains={"job": DOMAINS["job"]})
    model = step.fit(people())
    least = 1 / float(step._plan(people()).squared * Fraction(99, 100))  # one percent is for the number of rows
    largest = int(np.bincount(model.merged[0].groups).max())
    assert model.estimates.residuals.variance((0,)) == pytest.approx(least * largest, rel=0.01)


def total_variation(one: pl.DataFrame, other: pl.DataFrame, columns: tuple[str, str]) -> float:
    shares = [frame.group_by(columns).len().with_columns(pl.col("len") / frame.height) for frame in (one, other)]
    joined = shares[0].join(shares[1], on=columns, how="full", nulls_equal=True)
    return float((joined["len"].fill_null(0) - joined["len_right"].fill_null(0)).abs().sum()) / 2


def test_a_small_budget_is_spent_on_columns_instead_of_pairs_below_their_noise() -> None:
    """600 rows of eight independent columns: pairs that were measured below their noise made the columns worse."""
    random = np.random.default_rng(3)
    frame = pl.DataFrame({f"c{n}": random.choice(["a", "b", "c", "d"], 600, p=[0.6, 0.2, 0.1, 0.1]) for n in range(8)})
    step = PrivateSynthesis(epsilon=0.2, delta=1e-6, domains={name: {"values": list("abcd")} for name in frame.columns})
    errors = []
    for _ in range(8):
        drawn = step.fit(Data.of(Table(frame=frame), Schema.of(frame))).sample(600, random=random)
        errors += [total_variation(frame, drawn, pair) for pair in combinations(frame.columns, 2)]
    assert np.mean(errors) < 0.4


def test_few_rows_do_not_become_missing_values() -> None:
    random = np.random.default_rng(4)
    frame = pl.DataFrame({"age": random.integers(20, 80, 50), "pay": random.integers(0, 9000, 50)})
    step = PrivateSynthesis(epsilon=1, delta=1e-6, domains={"age": DOMAINS["age"], "pay": DOMAINS["pay"]})
    data = Data.of(Table(frame=frame), Schema.of(frame))
    missing = [step.fit(data).sample(50, random=random).null_count().row(0) for _ in range(40)]
    assert sum(max(counts) > 25 for counts in missing) == 0


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("depends", [False, True])
def test_synthetic_rows_are_no_worse_than_independent_noisy_histograms(epsilon: float, depends: bool) -> None:
    """1,600 rows of ten columns. Measuring pairs below their noise is detected: at 1 it had 1.46 times the error."""
    random = np.random.default_rng(11)
    hidden = random.random(1600)
    frame = pl.DataFrame(
        {
            f"c{n}": np.minimum(8 * (hidden if depends and n % 2 else random.random(1600)) ** 2, 7.9).astype(int)
            for n in range(10)
        }
    )
    step = PrivateSynthesis(epsilon=epsilon, delta=1e-6, domains={n: {"low": 0, "high": 7} for n in frame.columns})
    squared = float(step._plan(Data.of(Table(frame=frame), Schema.of(frame))).squared)
    ours, independent = [], []
    for _ in range(2 if epsilon > 1 else 12):
        made = step.fit(Data.of(Table(frame=frame), Schema.of(frame))).sample(1600, random=random)
        counts = [np.bincount(frame[name], minlength=8) + random.normal(scale=(10 / squared) ** 0.5, size=8)
                  for name in frame.columns]  # fmt: skip
        shares = [project_to_simplex(one, 1600.0) / 1600 for one in counts]
        other = pl.DataFrame(
            {name: random.choice(8, 1600, p=p / p.sum()) for name, p in zip(frame.columns, shares, strict=True)}
        )
        for pair in combinations(frame.columns, 2):
            ours.append(total_variation(frame, made, pair))
            independent.append(total_variation(frame, other, pair))
    assert np.mean(ours) < np.mean(independent)


def test_columns_that_are_mostly_noise_are_named() -> None:
    """A hundred categories for 300 people at a small epsilon, beside the same at a large one."""
    frame = pl.DataFrame({"town": np.random.default_rng(2).integers(0, 100, 300)})
    for epsilon, noisy in ((0.2, ("town",)), (100, ())):
        step = PrivateSynthesis(epsilon=epsilon, delta=1e-6, domains={"town": {"values": list(range(100))}})
        errors = step.fit(Data.of(Table(frame=frame), Schema.of(frame))).errors_by_level()
        [use] = synthetic_use({"steps": [errors]})
        assert use.noisy == noisy
        assert ("The rows are mostly noise" in use.sentences[0]) == bool(noisy)
