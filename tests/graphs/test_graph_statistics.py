"""Private statistics of graphs: the stated sensitivities hold and are reached, and noise needs a receipt."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from math import comb, log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.isotonic import isotonic_regression

from sfumato.cli import main
from sfumato.demos.corpora.synthetic_friends import synthetic_friends
from sfumato.dp.loss import NOTHING, pure
from sfumato.dp.receipt import Receipt, issue
from sfumato.errors import BadParameter, NoReceipt, OverBudget, UnitsDiffer
from sfumato.graphs import (
    Graph,
    private_degree_histogram,
    private_degree_sequence,
    private_edge_count,
    private_graph_summary,
    private_triangle_count,
)
from sfumato.graphs.private_node_triangles import bounded_triangles, private_node_triangle_count
from sfumato.graphs.private_statistics import SORTED_DEGREES_SENSITIVITY, _isotonic, bounded_degrees
from sfumato.graphs.private_triangles import Rungs, triangles
from sfumato.ledger import Charge, Ledger
from sfumato.rng import Rng

FRIENDS = synthetic_friends(300, Rng(1))


def paid(epsilon: object) -> Receipt:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(pure(Fraction(str(epsilon))), dataset="g")
    return ledger.charge(Charge(loss=pure(Fraction(str(epsilon))), unit="edge", what="q"), dataset="g", analyst="a")


def random_graph(random: np.random.Generator, size: int) -> Graph:
    every = [(a, b) for a in range(size) for b in range(a)]
    return Graph.of([pair for pair in every if random.random() < 0.45], size=size)


def test_an_edge_moves_the_sorted_degrees_by_two_and_never_more() -> None:
    random, worst = np.random.default_rng(1), 0
    for _ in range(40):
        graph = random_graph(random, 7)
        edges = graph.edges()
        for row in range(len(edges)):
            less = graph.with_edges(np.delete(edges, row, axis=0))
            worst = max(worst, int(np.abs(np.sort(graph.degrees) - np.sort(less.degrees)).sum()))
    assert worst == SORTED_DEGREES_SENSITIVITY


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_node_moves_the_bounded_histogram_and_count_within_their_sensitivity(most: int) -> None:
    """Every node of random graphs is removed. Cumulative counts of degrees reach D + 1 and the count reaches D."""
    random, histogram, count = np.random.default_rng(2), 0, 0
    for _ in range(150):
        graph = random_graph(random, 8)
        whole = bounded_degrees(graph, most)
        for node in range(graph.size):
            rest = bounded_degrees(graph.reordered(np.delete(np.arange(graph.size), node)), most)
            apart = np.bincount(whole, minlength=most + 1) - np.bincount(rest, minlength=most + 1)
            histogram = max(histogram, int(np.abs(np.cumsum(apart)).sum()))
            count = max(count, abs(int(whole.sum()) - int(rest.sum())) // 2)
    assert histogram == most + 1
    assert count == most


def test_answers_cost_what_they_say_and_no_receipt_is_used_twice() -> None:
    receipt = paid("1/2")
    private_degree_sequence(FRIENDS, epsilon="1/2", receipt=receipt)
    assert receipt.used == pure(Fraction(1, 2))
    with pytest.raises(NoReceipt):
        private_edge_count(FRIENDS, unit="edge", epsilon="1/2", receipt=receipt)
    with pytest.raises(NoReceipt):
        private_degree_histogram(FRIENDS, epsilon=1, max_degree=20, receipt=paid("1/2"))


def test_a_large_budget_gives_the_truth() -> None:
    degrees = private_degree_sequence(FRIENDS, epsilon=10_000, receipt=paid(10_000))
    assert np.array_equal(degrees, np.sort(FRIENDS.degrees))
    most = int(FRIENDS.degrees.max())
    counts = private_degree_histogram(FRIENDS, epsilon=100_000, max_degree=most, receipt=paid(100_000))
    assert np.array_equal(counts, np.bincount(FRIENDS.degrees, minlength=most + 1))
    count = private_edge_count(FRIENDS, unit="node", epsilon=100_000, max_degree=most, receipt=paid(100_000))
    assert count == FRIENDS.edge_count


def test_bounds_are_required_where_they_matter() -> None:
    for most in (None, 0):
        with pytest.raises(BadParameter, match="max_degree"):
            private_edge_count(FRIENDS, unit="node", epsilon=1, max_degree=most, receipt=paid(1))
    with pytest.raises(BadParameter, match="epsilon"):
        private_edge_count(FRIENDS, unit="edge", epsilon=0, receipt=paid(1))


def test_isotonic_regression_is_the_least_squares_fit() -> None:
    values = np.random.default_rng(3).normal(size=200) + np.arange(200) / 50
    assert np.allclose(_isotonic(values), isotonic_regression(values))


PAIRS = list(combinations(range(5), 2))


def rung_of(count: int, steepest: int, last: int) -> dict[int, int]:
    """For each possible answer about five people its rung."""
    rungs = Rungs.of(count, steepest, nodes=5, last=last)
    return {
        rungs.number(rung, place): rung
        for rung in range(last + 1)
        for place in range(int(rungs.below[rung] + rungs.above[rung]))
    }


def worst_step(last: int, slack: int) -> tuple[int, float]:
    """Over all graphs of five people and all their edges: how far one edge moves an answer, in rungs and in loss."""
    found: dict[int, dict[int, int]] = {}
    for bits in range(1 << len(PAIRS)):
        graph = Graph.of([pair for at, pair in enumerate(PAIRS) if bits >> at & 1], size=5)
        count, steepest = triangles(graph)
        found[bits] = rung_of(count, max(steepest - slack, 0), last)
    moved, loss = 0, 0.0
    for bits, rungs in found.items():
        assert set(rungs) == set(range(comb(5, 3) + 1))
        total = sum(np.exp(-rung / 2) for rung in rungs.values())
        for at in range(len(PAIRS)):
            other = found[bits ^ (1 << at)]
            less = sum(np.exp(-rung / 2) for rung in other.values())
            steps = [other[answer] - rungs[answer] for answer in rungs]
            moved = max(moved, max(map(abs, steps)))
            loss = max(loss, max(steps) / 2 + log(less / total))
    return moved, loss


@pytest.mark.parametrize("last", [3, 12])
def test_an_edge_moves_an_answer_by_one_rung_and_the_loss_stays_below_epsilon(last: int) -> None:
    """All 1,024 graphs of five people, each with its ten neighbours; epsilon = 1. A smaller ladder breaks it."""
    moved, loss = worst_step(last, slack=0)
    assert moved == 1
    assert 0.5 < loss <= 1
    assert worst_step(last, slack=1)[0] > 1


def test_triangles_and_common_neighbours_are_those_of_the_matrix() -> None:
    for graph in (FRIENDS, random_graph(np.random.default_rng(4), 12)):
        squared = np.linalg.matrix_power(graph.matrix().toarray().astype(np.int64), 2)
        cubed = int((squared * graph.matrix().toarray()).sum()) // 6
        np.fill_diagonal(squared, 0)
        assert triangles(graph) == (cubed, int(squared.max()))


def test_the_triangle_count_is_near_and_costs_what_it_says() -> None:
    true, steepest = triangles(FRIENDS)
    receipt = paid(1)
    answer = private_triangle_count(FRIENDS, epsilon=1, receipt=receipt)
    assert abs(answer - true) < 45 * (steepest + 45)
    assert receipt.used is not None
    with pytest.raises(NoReceipt):
        private_triangle_count(FRIENDS, epsilon=1, receipt=receipt)
    assert private_triangle_count(FRIENDS, epsilon=10_000, receipt=paid(10_000)) == true


def test_rungs_are_selected_with_the_stated_chances() -> None:
    """Four people, one triangle: 2,000 answers at epsilon = 2. Half of the rate would be detected."""
    graph = Graph.of([(0, 1), (1, 2), (2, 0)], size=4)
    rungs = {0: 1, 1: 0, 2: 1, 3: 2, 4: 2}
    weights = {answer: np.exp(-rung) for answer, rung in rungs.items()}
    seen = [private_triangle_count(graph, epsilon=2, receipt=issue(pure(2), dataset="g", entry=1)) for _ in range(2000)]
    for answer, weight in weights.items():
        chance = weight / sum(weights.values())
        assert abs(seen.count(answer) / 2000 - chance) < 6 * (chance / 2000) ** 0.5


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_node_moves_the_bounded_triangles_by_the_bound_and_never_more(most: int) -> None:
    """Every node of random graphs is removed. The bound is reached, and without it a node moves more."""
    random, worst, free = np.random.default_rng(5), 0.0, 0
    for _ in range(12):
        graph = random_graph(random, 7)
        for node in range(graph.size):
            rest = graph.reordered(np.delete(np.arange(graph.size), node))
            apart = bounded_triangles(graph, most) - bounded_triangles(rest, most)
            assert apart >= -1e-6
            worst, free = max(worst, apart), max(free, triangles(graph)[0] - triangles(rest)[0])
    assert worst == pytest.approx(most)
    assert free > most


def test_triangles_below_the_bound_are_all_counted() -> None:
    true = triangles(FRIENDS)[0]
    assert bounded_triangles(FRIENDS, true) == true
    found, sensitivity = private_node_triangle_count(FRIENDS, epsilon=10**9, most=true, receipt=paid(10**9))
    assert (found, sensitivity) == (true, true + 1)
    assert 0 < bounded_triangles(FRIENDS, 3) <= FRIENDS.size


def budget(epsilon: int = 10**6) -> Ledger:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(pure(epsilon), dataset="g")
    return ledger


def test_a_summary_is_charged_once_and_states_its_guarantee() -> None:
    ledger = budget(3)
    done = private_graph_summary(FRIENDS, protect="edges", epsilon=3, ledger=ledger, dataset="g")
    assert ledger.balance(dataset="g").spent == pure(3)
    assert done.counts["statistic"].to_list() == ["edges", "triangles"]
    assert done.degrees is not None
    assert done.degrees["people"].sum() == FRIENDS.size  # so the guarantee has to assume that it is public
    assert "their number are assumed to be public" in done.guarantee.neighbours
    assert "people" not in done.guarantee.parameters
    assert done.counts["noise_95"].to_list() == [3, None]
    with pytest.raises(OverBudget):
        private_graph_summary(FRIENDS, protect="edges", epsilon="1/10", ledger=ledger, dataset="g")


def test_a_large_budget_gives_the_true_summary_and_hides_the_number_of_people() -> None:
    most = int(FRIENDS.degrees.max())
    done = private_graph_summary(
        FRIENDS, protect="nodes", epsilon=10**6, ledger=budget(), dataset="g", max_degree=most, max_triangles=10**3
    )
    assert done.counts["value"].to_list() == [FRIENDS.edge_count, triangles(FRIENDS)[0]]
    assert done.degrees is not None
    assert np.array_equal(done.degrees["people"], np.bincount(FRIENDS.degrees))
    assert "people" not in done.guarantee.parameters


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protect": "nodes"}, "max_degree"),
        ({"protect": "nodes", "statistics": ["triangles"]}, "max_triangles"),
        ({"protect": "nodes", "max_degree": 0}, "at least 1"),
        ({"protect": "edges", "max_degree": 5}, "are for `nodes`"),
        ({"protect": "edges", "statistics": ["stars"]}, "no statistic"),
        ({"protect": "people"}, "`edges` or `nodes`"),
        ({"protect": "edges", "epsilon": 0}, "above 0"),
    ],
)
def test_a_summary_that_is_refused_costs_nothing(options: dict[str, Any], words: str) -> None:
    ledger = budget()
    with pytest.raises(BadParameter, match=words):
        private_graph_summary(FRIENDS, **{"epsilon": 1, "ledger": ledger, "dataset": "g", **options})
    assert ledger.balance(dataset="g").spent == NOTHING


def test_losses_of_friendships_and_of_people_are_not_added_up() -> None:
    ledger = budget()
    private_graph_summary(FRIENDS, protect="edges", epsilon=1, ledger=ledger, dataset="g", statistics=["edges"])
    with pytest.raises(UnitsDiffer, match="do not add up"):
        private_graph_summary(FRIENDS, protect="nodes", epsilon=1, ledger=ledger, dataset="g", max_degree=9)


def test_the_command_publishes_statistics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names, ends = FRIENDS.nodes["node"], FRIENDS.edges()
    pl.DataFrame({"a": names.gather(ends[:, 0]), "b": names.gather(ends[:, 1])}).write_csv(tmp_path / "friends.csv")
    FRIENDS.nodes.write_csv(tmp_path / "people.csv")
    recipe, ledger, out = tmp_path / "graph.yaml", str(tmp_path / "ledger.db"), tmp_path / "out"
    asked = "dataset: friends\nledger: ledger.db\nstatistics: {protect: edges, epsilon: 2}\n"
    recipe.write_text("sfumato: 1\ngraph: {edges: friends.csv}\n" + asked)
    words = ["protect", str(recipe), "--out", str(out)]
    assert main(words) == 2
    assert main(["ledger", "cap", ledger, "--dataset", "friends", "--epsilon", "2"]) == 0
    assert main(words) == 2
    assert "node table" in capsys.readouterr().err
    recipe.write_text("sfumato: 1\ngraph: {edges: friends.csv, nodes: people.csv}\n" + asked)
    assert main(words) == 0
    assert "one friendship" in capsys.readouterr().out
    assert sorted(file.name for file in out.iterdir()) == [
        "README.md", "counts.csv", "degrees.csv", "release.json", "report.html"
    ]  # fmt: skip
    manifest = json.loads((out / "release.json").read_text())
    assert (manifest["kind"], manifest["guarantee"]["epsilon"]) == ("graph-statistics", 2)
    assert main([*words, "--force"]) != 0  # the budget is spent
    assert main(["check", str(out)]) == 1  # not checked is not "holds"
    # Another kind of release never takes the place of figures that were paid for, not even with --force.
    (tmp_path / "plan.yaml").write_text(
        "sfumato: 1\ndata: people.csv\nunit: row\ncolumns: {node: {kind: category}}\n"
        + "statistics: [{of: node}]\nthreshold: 3\n"
    )
    assert main(["protect", str(tmp_path / "plan.yaml"), "--out", str(out), "--force"]) == 2
    assert "graph-statistics" in capsys.readouterr().err
    assert (out / "counts.csv").is_file()
