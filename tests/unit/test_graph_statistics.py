"""Private statistics of graphs: the stated sensitivities hold and are reached, and noise needs a receipt."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

from sfumato.dp.ledger import Ledger
from sfumato.dp.loss import pure
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter, NoReceipt
from sfumato.graphs import (
    Graph,
    private_degree_histogram,
    private_degree_sequence,
    private_edge_count,
    synthetic_friends,
)
from sfumato.graphs.private_statistics import SORTED_DEGREES_SENSITIVITY, _isotonic, bounded_degrees
from sfumato.rng import Rng

FRIENDS = synthetic_friends(300, Rng(1))


def paid(epsilon: object) -> Receipt:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(pure(Fraction(str(epsilon))), dataset="g")
    return ledger.reserve(pure(Fraction(str(epsilon))), dataset="g", analyst="a", query="q")


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
    """Every node of random graphs is removed. The histogram reaches 2 D + 1 and the count reaches D."""
    random, histogram, count = np.random.default_rng(2), 0, 0
    for _ in range(150):
        graph = random_graph(random, 8)
        whole = bounded_degrees(graph, most)
        for node in range(graph.size):
            rest = bounded_degrees(graph.reordered(np.delete(np.arange(graph.size), node)), most)
            apart = np.bincount(whole, minlength=most + 1) - np.bincount(rest, minlength=most + 1)
            histogram = max(histogram, int(np.abs(apart).sum()))
            count = max(count, abs(int(whole.sum()) - int(rest.sum())) // 2)
    assert histogram == 2 * most + 1
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
