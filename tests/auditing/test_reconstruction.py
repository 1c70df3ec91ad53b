"""Which attack breaks which policy, and reconstruction by each method."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.attacks.query import QueryAttack, QueryOutcome, evaluate_query_attack
from sfumato.attacks.query._solvers import (
    exhaustive,
    hadamard,
    hadamard_subsets,
    least_squares,
    linear_program,
    transform,
)
from sfumato.errors import BadParameter, NotApplicable
from sfumato.query.policy import Policy
from sfumato.query.policy.subsets import pack, random_subsets, subset_sums, sum_over_subsets, unpack
from sfumato.registry import registry
from sfumato.rng import Rng

SECRETS = (np.random.default_rng(1).random(300) < 0.4).astype(int)


def run(attack: str, policy: str, *, people: int = 300, **parameters: Any) -> QueryOutcome:
    chosen, stand = registry("query-attack").get(attack), registry("policy").get(policy)
    options = {"targets": 30} if attack != "reconstruction" else {}
    options |= {name: parameters.pop(name) for name in list(parameters) if name in chosen.model_fields}
    built, answering = chosen.build(options), stand.build(parameters)
    assert isinstance(built, QueryAttack)
    assert isinstance(answering, Policy)
    return evaluate_query_attack(built, answering, SECRETS[:people], Rng(7))


def test_size_control_stops_differencing_and_falls_to_the_tracker() -> None:
    assert run("differencing", "size-control", smallest=5).made == 0
    assert run("tracker", "size-control", smallest=100).risk == 1.0


def test_overlap_control_stops_the_tracker() -> None:
    outcome = run("tracker", "size-control", smallest=5, overlap=10)
    assert outcome.made == 0
    assert outcome.refused > 0


def test_fresh_samples_average_out_and_consistent_ones_do_not() -> None:
    assert run("averaging", "fresh-sample", share=0.9, repeats=800).risk == 1.0
    repeated = run("averaging", "consistent-sample", share=0.9, repeats=800)
    assert repeated.interval()[0] <= repeated.baseline + 0.1
    assert repeated.risk < 0.8
    assert run("averaging", "consistent-sample", share=0.9, repeats=800, vary="company").risk > 0.95


def test_rounding_falls_to_changing_company_only() -> None:
    assert run("averaging", "rounding", base=10, repeats=800).risk < 0.8
    assert run("averaging", "rounding", base=10, repeats=800, vary="company").risk > 0.95


def test_summaries_tell_no_one() -> None:
    for attack in registry("query-attack").names():
        outcome = run(attack, "summary-only")
        assert outcome.made == 0
        assert outcome.risk == pytest.approx(outcome.baseline)


def test_the_auditor_stops_differencing_and_trackers() -> None:
    pytest.importorskip("ortools")
    for attack in ("differencing", "tracker"):
        outcome = run(attack, "audit", people=40, k=2)
        assert outcome.made <= 1  # the first difference of a tracker is not yet a value
        assert outcome.refused > 0


def test_an_auditing_responder_never_fixes_a_bit() -> None:
    """By enumeration of all columns that agree with what was answered."""
    pytest.importorskip("ortools")
    n = 10
    policy = registry("policy").get("audit").build({"k": 2})
    assert isinstance(policy, Policy)
    desk = policy.open(SECRETS[:n], Rng(1))
    queries = random_subsets(40, n, np.random.default_rng(2))
    answers = desk.ask_all(queries)
    told = ~np.isnan(answers)
    assert told.sum() >= 3
    assert (~told).sum() >= 3
    columns = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    worlds = columns[(unpack(queries[told], n) @ columns.T == answers[told][:, None]).all(axis=0)]
    assert (worlds.min(axis=0) == 0).all()
    assert (worlds.max(axis=0) == 1).all()


def test_private_answers_keep_reconstruction_at_the_baseline() -> None:
    for method in ("least-squares", "hadamard"):
        outcome = run("reconstruction", "differential-privacy", method=method, epsilon="1/50", budget=1)
        assert outcome.interval(0.999)[0] <= outcome.baseline
        assert outcome.refused > 0


def test_small_noise_is_undone_and_large_noise_is_not() -> None:
    root = 300**0.5
    assert run("reconstruction", "bounded-noise", bound=0.1 * root).risk == 1.0
    assert run("reconstruction", "bounded-noise", bound=0.5 * root).risk > 0.9
    assert run("reconstruction", "bounded-noise", bound=20 * root).risk < 0.7


@pytest.mark.parametrize("bound", [0.0, 0.6, 1.0, 2.0])
def test_all_subsets_leave_at_most_four_times_the_noise_wrong(bound: float) -> None:
    rng = np.random.default_rng(int(10 * bound))
    n = 9
    subsets = pack((np.arange(1 << n)[:, None] >> np.arange(n)) & 1)
    for _ in range(5):
        truth = rng.integers(0, 2, n)
        guess = exhaustive(subsets, subset_sums(subsets, truth) + rng.uniform(-bound, bound, 1 << n), n)
        assert (guess != truth).sum() <= 4 * bound


def test_least_squares_is_no_worse_than_the_program() -> None:
    rng = np.random.default_rng(5)
    n, wrong = 120, np.zeros(2)
    for _ in range(4):
        truth, subsets = rng.integers(0, 2, n), random_subsets(4 * n, n, rng)
        answers = subset_sums(subsets, truth) + rng.uniform(-1, 1, len(subsets)) * 0.6 * n**0.5
        for place, solve in enumerate((least_squares, linear_program)):
            wrong[place] += ((solve(subsets, answers, n) > 0.5) != truth).sum()
    assert wrong[0] <= wrong[1]
    assert wrong[0] < 0.15 * 4 * n


def test_least_squares_finds_the_true_minimum() -> None:
    from scipy.optimize import lsq_linear

    rng = np.random.default_rng(6)
    n = 40
    subsets = random_subsets(200, n, rng)
    answers = subset_sums(subsets, rng.integers(0, 2, n)) + rng.uniform(-3, 3, 200)
    matrix = unpack(subsets, n).astype(float)
    centred = matrix - matrix.mean(axis=0), answers - answers.mean()
    best = lsq_linear(*centred, bounds=(0, 1)).x
    assert least_squares(subsets, answers, n, rounds=300) == pytest.approx(best, abs=2e-3)


def test_the_transform_is_the_hadamard_matrix() -> None:
    from scipy.linalg import hadamard as matrix

    rng = np.random.default_rng(7)
    for size in (1, 2, 8, 64, 1 << 14, 1 << 15):
        x = rng.normal(size=size)
        if size <= 64:
            assert transform(x) == pytest.approx(matrix(size) @ x, abs=1e-4)
        assert transform(transform(x)) / size == pytest.approx(x, abs=1e-3)
    truth = rng.integers(0, 2, 50)
    assert hadamard(subset_sums(hadamard_subsets(50), truth), 50) == pytest.approx(truth, abs=1e-4)
    with pytest.raises(BadParameter, match="power of two"):
        transform([1, 2, 3])


def test_bits_and_sums() -> None:
    rng = np.random.default_rng(8)
    for n in (1, 7, 8, 13, 200):
        masks = rng.random((70, n)) < 0.5
        bits, vector, weights = pack(masks), rng.normal(size=n), rng.normal(size=70)
        assert (unpack(bits, n) == masks).all()
        assert subset_sums(bits, vector) == pytest.approx(masks @ vector, abs=1e-3)
        assert subset_sums(bits, masks[0]).tolist() == (masks & masks[0]).sum(axis=1).tolist()
        assert sum_over_subsets(bits, weights, n) == pytest.approx(masks.T @ weights, abs=1e-3)
    assert random_subsets(5, 3, rng).max() < 8


def test_every_subset_through_the_desk() -> None:
    outcome = run("reconstruction", "bounded-noise", people=9, method="exhaustive", bound=0.4)
    assert outcome.tried - outcome.hits <= 4 * 0.4
    assert outcome.asked == 2**9
    with pytest.raises(NotApplicable, match="too many"):
        run("reconstruction", "exact", people=40, method="exhaustive")


def test_answers_from_a_masked_copy(tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    copy.write_text("bit\n" + "\n".join(str(1 - bit) for bit in SECRETS) + "\n")
    assert run("differencing", "perturbed", file=str(copy), column="bit").risk == 0.0  # the copy is upside down
    for wrong in ({"file": str(copy)}, {}):
        with pytest.raises(BadParameter, match="perturbed"):
            run("differencing", "perturbed", **wrong)
    copy.write_text("bit\n1\n")
    with pytest.raises(BadParameter, match="one number for each row"):
        run("differencing", "perturbed", file=str(copy), column="bit")
