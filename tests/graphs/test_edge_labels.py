"""Relations, weights, times and directions of edges: declared, carried through steps, counted and attacked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato import attack, check, measure, protect
from sfumato.attacks import Outcome
from sfumato.cli import main
from sfumato.demos.corpora.synthetic_friends import synthetic_friends
from sfumato.errors import BadParameter, InvalidGraph, InvalidRecipe, TooFewRows, UnknownColumn, Unmet
from sfumato.graphs import (
    AnonymizeDegrees,
    ClusterEdges,
    ClusterNodes,
    Clusters,
    Graph,
    KAutomorphism,
    KDegreeAnonymity,
    SwitchEdges,
    SymmetrizeEdges,
    as_graph,
    graph_from_tables,
)
from sfumato.graphs.base import apply_step
from sfumato.graphs.edge_labels import carry_labels, labelled_edges, labelled_graph
from sfumato.graphs.released_files import GraphFiles
from sfumato.recipe.graph_recipe import GraphRecipe
from sfumato.release import State
from sfumato.rng import Rng

FRIENDS = synthetic_friends(300, Rng(1))


def labelled(kinds: int = 3, seed: int = 2) -> Graph:
    ends = FRIENDS.edges()
    kind = np.random.default_rng(seed).integers(kinds, size=len(ends))
    rows = pl.DataFrame({"source": ends[:, 0], "target": ends[:, 1], "weight": [f"band {number}" for number in kind]})
    return labelled_graph(rows, size=FRIENDS.size, nodes=FRIENDS.nodes)


CALLS = pl.DataFrame(
    {"a": ["x", "y", "x"], "b": ["y", "z", "z"], "minutes": [3, 40, 7], "day": ["2026-01-31", "2025-12-01", None]}
)


def test_a_column_that_is_not_declared_is_an_error_that_names_the_choices() -> None:
    with pytest.raises(InvalidGraph, match=r"not declared: `minutes`, `day`.*`drop`, `keep`, `\{bands") as refusal:
        graph_from_tables([CALLS])
    assert "40" not in str(refusal.value)
    declared = {"minutes": "drop", "day": "drop"}
    assert graph_from_tables([CALLS], edge_columns=declared).labels is None
    with pytest.raises(UnknownColumn, match="hours"):
        graph_from_tables([CALLS], edge_columns=declared | {"hours": "drop"})


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("round", "must be `drop`"),
        ({"bands": []}, "ascending"),
        ({"bands": [5, 5]}, "ascending"),
        ({"dates": "hour"}, "year, quarter, month"),
        ({"dates": "year"}, "holds no dates"),
    ],
)
def test_a_wrong_declaration_is_refused(declared: Any, words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        graph_from_tables([CALLS], edge_columns={"minutes": declared, "day": "drop"})


def test_numbers_become_bands_and_dates_are_coarsened() -> None:
    graph = graph_from_tables([CALLS], edge_columns={"minutes": {"bands": [5, 40]}, "day": {"dates": "quarter"}})
    assert labelled_edges(graph).rows() == [
        (0, 1, "below 5", "2026-Q1"),
        (0, 2, "5 to below 40", None),
        (1, 2, "40 and above", "2025-Q4"),
    ]
    for unit, text in (("year", "2026"), ("month", "2026-01")):
        columns = {"minutes": "drop", "day": {"dates": unit}}
        assert labelled_edges(graph_from_tables([CALLS], edge_columns=columns))["day"][0] == text
    with pytest.raises(BadParameter, match="not dates such as") as refusal:
        graph_from_tables([CALLS.with_columns(day=pl.lit("soon"))], edge_columns=columns)
    assert "soon" not in str(refusal.value)


def test_two_people_may_be_linked_in_several_relations() -> None:
    mail = pl.DataFrame({"from": ["y", "z"], "to": ["x", "y"], "minutes": [1, 2]})
    tables = {"calls": CALLS.drop("day").rename({"a": "from", "b": "to"}), "mail": mail}
    with pytest.raises(BadParameter, match="Merged relations have no values"):
        graph_from_tables(tables, relations="merge", edge_columns={"minutes": "keep"})
    graph = graph_from_tables(tables, relations="keep", edge_columns={"minutes": "drop"})
    assert graph.edge_count == 3
    rows = [(0, 1, "calls"), (0, 1, "mail"), (0, 2, "calls"), (1, 2, "calls"), (1, 2, "mail")]
    assert labelled_edges(graph).rows() == rows
    again = labelled_graph(labelled_edges(graph), size=3)
    assert np.array_equal(again.labels, graph.labels)  # type: ignore[arg-type]
    assert np.unique(graph.edge_labels()).tolist() == [0, 1]  # type: ignore[arg-type]


def test_too_many_descriptions_of_edges_are_refused() -> None:
    ends = FRIENDS.edges()
    rows = pl.DataFrame({"source": ends[:, 0], "target": ends[:, 1], "weight": range(len(ends))})
    with pytest.raises(BadParameter, match="at most 500"):
        labelled_graph(rows, size=FRIENDS.size)


def test_directions_are_dropped_by_declaration_only() -> None:
    networkx = pytest.importorskip("networkx")
    follows = networkx.DiGraph([(0, 1), (1, 0), (1, 2)])
    with pytest.raises(InvalidGraph, match="Directed graphs are not released"):
        as_graph(follows)
    assert as_graph(follows, directions="drop").edge_count == 2
    with pytest.raises(InvalidGraph, match="Directed graphs are not released"):
        as_graph(networkx.to_scipy_sparse_array(follows))
    table = pl.DataFrame({"from": [0, 1, 1], "to": [1, 0, 2]})
    with pytest.raises(InvalidGraph, match="`directions: drop` merges"):
        graph_from_tables([table])
    assert graph_from_tables([table], directions="drop").edge_count == 2
    with pytest.raises(InvalidGraph, match="duplicates"):
        graph_from_tables([pl.concat([table, table[:1]])], directions="drop")
    with pytest.raises(InvalidRecipe, match="directed graphs are not released"):
        GraphRecipe.parse({"sfumato": 1, "graph": {"edges": "a.csv", "directions": "keep"}})


def test_weights_of_matrices_and_networkx_graphs_are_not_dropped_silently() -> None:
    networkx = pytest.importorskip("networkx")
    club = networkx.karate_club_graph()
    for source in (club, networkx.to_scipy_sparse_array(club)):
        with pytest.raises(InvalidGraph, match="`weight`"):
            as_graph(source)
        graph = as_graph(source, edge_columns={"weight": {"bands": [3]}})
        assert (graph.edge_count, graph.label_table["weight"].to_list()) == (78, ["3 and above", "below 3"])


# --- steps -----------------------------------------------------------------------------------------------------------


def test_kept_edges_keep_their_labels_and_all_labels_stay() -> None:
    graph = labelled()
    done = apply_step(SwitchEdges(share=0.3), graph, Rng(3)).graph
    before, after = ({(a, b): kind for a, b, kind in labelled_edges(g).rows()} for g in (graph, done))
    assert all(after[pair] == before[pair] for pair in before.keys() & after.keys())
    assert len(before.keys() & after.keys()) < len(before)
    assert sorted(before.values()) == sorted(after.values())
    more = graph.with_edges(np.concatenate([graph.edges(), [[0, 299]]]))
    assert labelled_edges(carry_labels(graph, more, np.random.default_rng(1))).height == more.edge_count


def files_of(graph: Graph, symmetry: Any = None) -> GraphFiles:
    numbers = pl.Series("node", range(1, graph.size + 1), dtype=pl.Int64)
    moved = None if symmetry is None else pl.DataFrame([numbers, pl.Series("image", symmetry + 1)])
    edges = labelled_edges(graph).with_columns(pl.col("source", "target") + 1)
    return GraphFiles(nodes=numbers.to_frame(), edges=edges, symmetry=moved)


def test_k_degree_anonymity_counts_edges_of_every_kind() -> None:
    graph = apply_step(AnonymizeDegrees(k=5), labelled(), Rng(3)).graph
    for kinds, state in (("known", State.FAILS), ("unknown", State.HOLDS)):
        model = KDegreeAnonymity(k=5, kinds=kinds)  # type: ignore[arg-type]
        assert model.check(graph).state is state
        assert model.independent_check(model.public(), files_of(graph)).state is state
    one = labelled(kinds=1)
    alike = apply_step(AnonymizeDegrees(k=5), one, Rng(3)).graph
    assert KDegreeAnonymity(k=5).check(alike).holds
    assert KDegreeAnonymity(k=5).independent_check({"k": 5}, files_of(alike)).holds


def test_a_symmetry_keeps_relations_and_values() -> None:
    graph = replace(labelled(), nodes=pl.DataFrame())
    done = apply_step(SymmetrizeEdges(k=5), graph, Rng(3))
    assert done.symmetry is not None
    model = KAutomorphism(k=5)
    assert model.check(done.graph, symmetry=done.symmetry).holds
    assert model.independent_check({"k": 5}, files_of(done.graph, done.symmetry)).holds
    assert KDegreeAnonymity(k=5).check(done.graph).holds
    assert done.graph.label_table["label"].n_unique() > 1
    labels = done.graph.edge_labels()
    assert labels is not None
    labels = labels.copy()
    labels[0] = (labels[0] + 1) % 3
    broken = done.graph.with_edges(done.graph.edges(), labels)
    assert not model.check(broken, symmetry=done.symmetry).holds
    assert model.independent_check({"k": 5}, files_of(broken, done.symmetry)).state is State.FAILS


def test_clusters_count_edges_of_every_kind() -> None:
    graph = labelled()
    done = apply_step(ClusterNodes(k=6), graph, Rng(5))
    assert done.clusters is not None
    assert done.labels is not None
    assert done.clusters.kinds["edges"].sum() == graph.edge_count
    rows = [(sorted(done.labels[[a, b]] + 1), kind) for a, b, kind in labelled_edges(graph).rows()]
    for first, second, kind, edges in done.clusters.kinds.head(40).select(
        "first", "second", "weight", "edges"
    ).iter_rows():  # fmt: skip
        assert rows.count(([first, second], kind)) == edges
    assert Clusters.of(done.graph, done.labels).kinds.equals(done.clusters.kinds)


def test_cluster_edges_are_counts_between_equivalence_classes() -> None:
    graph = labelled()
    done = apply_step(ClusterEdges(k=5, by=("vote",)), graph, Rng(5))
    assert done.clusters is not None
    clusters, links = done.clusters.tables()
    assert clusters["vote"].to_list() == ["green", "left", "right"]
    assert clusters["nodes"].to_list() == graph.nodes["vote"].value_counts().sort("vote")["count"].to_list()
    votes = graph.nodes["vote"].to_numpy()[graph.edges()]
    assert clusters["edges"][0] == int((votes == "green").all(axis=1).sum())
    assert links["edges"].sum() == int((votes[:, 0] != votes[:, 1]).sum())
    assert done.clusters.kinds["edges"].sum() == graph.edge_count
    with pytest.raises(TooFewRows, match="equivalence class"):
        ClusterEdges(k=5, by=("age",)).apply(graph, Rng(5))
    with pytest.raises(UnknownColumn, match="or it is sensitive"):
        ClusterEdges(k=5, by=("party",)).apply(graph, Rng(5))


# --- recipes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names, ends = FRIENDS.nodes["node"], FRIENDS.edges()
    random = np.random.default_rng(4)
    table = pl.DataFrame({"a": names.gather(ends[:, 0]), "b": names.gather(ends[:, 1])})
    minutes = 7919 + random.integers(1000, size=len(ends))
    table.with_columns(pl.Series("minutes", minutes)).write_csv(tmp_path / "calls.csv")
    table.filter(pl.Series(random.random(len(ends)) < 0.3)).write_csv(tmp_path / "mail.csv")
    FRIENDS.nodes.write_csv(tmp_path / "people.csv")
    return tmp_path


RECIPE: dict[str, Any] = {
    "sfumato": 1,
    "graph": {
        "edges": {"calls": "calls.csv", "mail": "mail.csv"},
        "nodes": "people.csv",
        "relations": "keep",
        "edge_columns": {"minutes": {"bands": [8000, 8500]}},
    },
    "attacks": ["degree-matching"],
    "measures": ["structural-uniqueness"],
}


def test_relations_and_bands_are_released_checked_and_attacked(folder: Path) -> None:
    recipe = GraphRecipe.parse(
        RECIPE | {"steps": [{"symmetrize-edges": 5}], "models": [{"k-automorphism": 5}, {"k-degree-anonymity": 5}]},
        base=folder,
    )
    assert GraphRecipe.parse(recipe.to_dict()) == recipe
    protect(recipe, seed=1, n_targets=100).save(folder / "release")
    edges = pl.read_csv(folder / "release/edges.csv")
    assert edges.columns == ["source", "target", "relation", "minutes"]
    assert set(edges["relation"]) == {"calls", "mail"}
    assert not any(f",{value}" in (folder / "release/edges.csv").read_text() for value in range(7919, 8000))
    assert check(folder / "release").holds
    [kept] = measure(folder / "release", original=recipe, measures=["edges-kept"], seed=1).results
    assert 0.1 < kept.columns["same kind"] < kept.columns["kept"]
    [found] = attack(folder / "release", original=recipe, seed=1, n_targets=300).outcomes
    assert isinstance(found, Outcome)
    assert found.main.rate <= 1 / 5


def test_kinds_of_friends_find_people_whom_their_number_does_not(folder: Path) -> None:
    """The release is k-anonymous by degree; what is known about single edges undoes it, and the verdict says so."""
    plain = {**RECIPE, "graph": {**RECIPE["graph"], "relations": "merge", "edge_columns": {"minutes": "drop"}}}
    rates = []
    for recipe in (plain, RECIPE):
        parts = {"steps": [{"anonymize-degrees": 5}], "models": [{"k-degree-anonymity": 5}]}
        done = protect(GraphRecipe.parse(recipe | parts, base=folder), seed=1, n_targets=300)
        [outcome] = done.evaluation.attacks
        assert isinstance(outcome, Outcome)
        rates.append(outcome.main.rate)
        if recipe is RECIPE:
            with pytest.raises(Unmet, match="all relations and values"):
                done.save(folder / "release")
    assert rates[0] <= 1 / 5
    assert rates[1] > 0.5


def test_classes_of_the_node_table_are_released_with_counts_by_relation(folder: Path) -> None:
    recipe = RECIPE | {
        "columns": {"town": "drop", "age": {"role": "quasi", "hierarchy": {"intervals": [30]}}, "vote": "sensitive"},
        "steps": ["generalize", {"cluster-edges": {"k": 10, "by": ["age"]}}],
        "models": [{"k-anonymity": 10}, {"k-degree-anonymity": 10}],
    }
    done = protect(GraphRecipe.parse(recipe, base=folder), seed=1, n_targets=100)
    done.save(folder / "release")
    names = sorted(file.name for file in (folder / "release").glob("*.csv"))
    assert names == ["clusters.csv", "kinds.csv", "links.csv"]
    assert pl.read_csv(folder / "release/clusters.csv").columns == ["cluster", "nodes", "edges", "age"]
    assert check(folder / "release").holds
    found = attack(folder / "release", original=done.recipe, seed=1, n_targets=100)
    assert all(outcome.main.rate <= 1 / 10 for outcome in found.outcomes if isinstance(outcome, Outcome))
    wrong = recipe | {"steps": ["generalize", {"cluster-edges": {"k": 10, "by": ["vote"]}}]}
    with pytest.raises(UnknownColumn, match="sensitive"):
        protect(GraphRecipe.parse(wrong, base=folder), seed=1)


def test_init_asks_for_the_columns_of_the_edges(folder: Path) -> None:
    out = folder / "sfumato.yaml"
    arguments = ["init", str(folder / "people.csv"), "--edges", str(folder / "calls.csv")]
    arguments += ["--edges", str(folder / "mail.csv"), "--k", "5", "--out", str(out)]
    assert main(arguments) == 0
    text = out.read_text()
    assert "minutes: drop" in text
    assert "relations: merge" in text
    assert GraphRecipe.load(out).graph.read().labels is None
