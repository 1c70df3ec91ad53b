"""Contracts of parts for graphs: methods, models, attacks and measures."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

from sfumato.attacks.evaluation.outcome import Outcome, risk
from sfumato.attacks.graph._base import GraphAttack
from sfumato.attacks.graph._evaluate import GraphScenario, evaluate_graph_attack
from sfumato.demos.corpora.synthetic_friends import synthetic_friends
from sfumato.graphs.base import GraphMethod, GraphModel
from sfumato.graphs.graph import Graph
from sfumato.graphs.released_files import GraphFiles
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.release import State
from sfumato.rng import Rng
from sfumato.testing.parts import run_checks


@cache
def _sample(seed: int = 1) -> Graph:
    return synthetic_friends(400, Rng(seed))


def _same(one: Graph, other: Graph) -> bool:
    return bool(np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices))


def check_graph_method(method: GraphMethod) -> None:
    """Raise AssertionError unless ``method`` keeps its input and its nodes, repeats itself, and counts its changes."""
    run_checks(method, GRAPH_METHOD_CHECKS)


def input_and_nodes_are_kept(method: GraphMethod) -> None:
    graph = synthetic_friends(400, Rng(1))
    done = method.apply(graph, Rng(2))
    assert _same(graph, _sample()), "the method changed its input"
    assert done.graph.size == graph.size, "the method lost or added nodes"
    assert not done.graph.nodes.width or done.graph.nodes.equals(graph.nodes), "the method reordered the nodes"


def same_seed_same_graph(method: GraphMethod) -> None:
    first, second = (method.apply(_sample(), Rng(3)).graph for _ in range(2))
    assert _same(first, second), "the same seed gave another graph"


def changes_are_counted(method: GraphMethod) -> None:
    done = method.apply(_sample(), Rng(4))
    if done.clusters is not None:
        assert done.clusters.edge_count == _sample().edge_count, "the clusters have another number of edges"
        return
    kept = int(done.graph.has_edges(*_sample().edges().T).sum())
    told = done.counts.get("added"), done.counts.get("deleted")
    true = done.graph.edge_count - kept, _sample().edge_count - kept
    assert told == true, f"`counts` says {told} edges added and deleted, and there are {true}"


def check_graph_model(model: GraphModel) -> None:
    """Raise AssertionError unless ``model`` holds where all nodes are alike and fails where one is not."""
    run_checks(model, GRAPH_MODEL_CHECKS)


def _ring(size: int) -> list[tuple[int, int]]:
    return [(node, (node + 1) % size) for node in range(size)]


def holds_where_all_nodes_are_alike(model: GraphModel) -> None:
    verdict = model.check(Graph.of(_ring(200)), symmetry=(np.arange(200) + 1) % 200)
    assert verdict.state is State.HOLDS, "200 nodes that are all alike fail the model"


def fails_where_one_node_differs(model: GraphModel) -> None:
    verdict = model.check(Graph.of([*_ring(200), (0, 50), (0, 100)]))
    assert verdict.state is State.FAILS, "a node that is unlike all others passes the model"
    assert verdict.failing >= 1, "the verdict counts no failing node"


def released_files_are_judged_alike(model: GraphModel) -> None:
    size = 200
    numbers = pl.Series("node", range(1, size + 1), dtype=pl.Int64)
    turn = pl.DataFrame([numbers, pl.Series("image", [*range(2, size + 1), 1])])
    for edges, wanted in ((_ring(size), State.HOLDS), ([*_ring(size), (0, 50), (0, 100)], State.FAILS)):
        table = pl.DataFrame(np.array(edges) + 1, schema=["source", "target"])
        files = GraphFiles(nodes=numbers.to_frame(), edges=table, symmetry=turn)
        verdict = model.independent_check(model.public(), files)
        assert verdict.state is wanted, f"the independent check says {verdict.state}, and the model {wanted}"


def check_graph_attack(attack: GraphAttack) -> None:
    """Raise AssertionError unless ``attack`` succeeds on the original itself and gains nothing from another graph."""
    run_checks(attack, GRAPH_ATTACK_CHECKS)


def _scenario(release: Graph, seed: int = 5) -> GraphScenario:
    """A release that is shuffled, or that is about other people."""
    order = np.random.default_rng(seed).permutation(release.size)

    def protect(graph: Graph, rng: Rng) -> Graph:
        if release is _sample():
            return graph
        other = synthetic_friends(max(graph.size, 10), rng.child("other"))
        return replace(other, nodes=graph.nodes)

    return GraphScenario(
        original=_sample(), release=release.reordered(order), lineage=order, protect=protect, secrets=["vote"]
    )


def _outcomes(attack: GraphAttack, release: Graph, seed: int = 6) -> list[Outcome]:
    return evaluate_graph_attack(attack, _scenario(release), Rng(seed), n_targets=200)


def the_original_itself_gives_people_away(attack: GraphAttack) -> None:
    for outcome in _outcomes(attack, _sample()):
        assert outcome.baseline is not None, "the attack has no baseline"
        found = risk(outcome, 0.999)
        assert found.low > outcome.baseline.rate, "the original itself gives the attack nothing"
        assert outcome.main.trials > 0, "nobody was attacked"


def another_graph_gives_nobody_away(attack: GraphAttack) -> None:
    # In an order of its own: the town of a synthetic node follows from its number, in both graphs.
    others = _sample(2).reordered(np.random.default_rng(7).permutation(_sample(2).size))
    for outcome in _outcomes(attack, others):
        assert outcome.baseline is not None, "the attack has no baseline"
        reference = max(outcome.baseline.rate, 0.5 if str(outcome.discloses) == "link" else 0.0)
        assert risk(outcome, 0.999).low <= reference, "a graph of other people raises the risk"


def same_seed_same_outcome(attack: GraphAttack) -> None:
    first, second = ([o.to_dict() for o in _outcomes(attack, _sample())] for _ in range(2))
    assert first == second, "the same seed gave another outcome"


def threat_model_is_documented(attack: GraphAttack) -> None:
    assert len(attack.summary()) > 40, "the first sentence of the docstring must state the threat model"


def check_graph_measure(measure: GraphMeasure) -> None:
    """Raise AssertionError unless ``measure`` is best for the original itself and worse for another graph."""
    run_checks(measure, GRAPH_MEASURE_CHECKS)


def _value(measure: GraphMeasure, release: Graph) -> float:
    order = np.random.default_rng(7).permutation(release.size)
    pair = GraphPair(original=_sample(), release=release.reordered(order), lineage=order)
    found = measure.compute(pair, Rng(8))
    assert found.measure == measure.part_name(), "the result has another name than the measure"
    assert found.value is not None, "the measure has no value"
    return found.value


def another_graph_is_worse(measure: GraphMeasure) -> None:
    if measure.about == "disclosure":
        lattice = Graph.of(_ring(400), nodes=_sample().nodes)
        assert _value(measure, lattice) < _value(measure, _sample()), "nodes that are all alike disclose as much"
        return
    sign = 1 if measure.better == "high" else -1
    other = Graph.of(synthetic_friends(400, Rng(9), degree=30, community=400).edges(), size=400)
    assert sign * _value(measure, _sample()) > sign * _value(measure, other), "another graph is as good as the original"


def same_seed_same_value(measure: GraphMeasure) -> None:
    assert _value(measure, _sample(2)) == _value(measure, _sample(2)), "the same seed gave another value"


GRAPH_METHOD_CHECKS = (input_and_nodes_are_kept, same_seed_same_graph, changes_are_counted)
GRAPH_MODEL_CHECKS = (
    holds_where_all_nodes_are_alike,
    fails_where_one_node_differs,
    released_files_are_judged_alike,
)
GRAPH_ATTACK_CHECKS = (
    the_original_itself_gives_people_away,
    another_graph_gives_nobody_away,
    same_seed_same_outcome,
    threat_model_is_documented,
)
GRAPH_MEASURE_CHECKS = (another_graph_is_worse, same_seed_same_value)
