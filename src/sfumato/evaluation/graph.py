"""Protect, attack and measure a graph, and describe the release in its public manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from sfumato import __version__
from sfumato.arrays import Ints
from sfumato.attacks import AttackScenario, Outcome
from sfumato.attacks.evaluation.loop import AttackRun, Results, run_loop
from sfumato.attacks.graph._base import GraphAttack
from sfumato.attacks.graph._evaluate import GraphScenario, evaluate_graph_attack
from sfumato.data.table import Table
from sfumato.dataset import Data, Role
from sfumato.deadline import check_deadline, quiet
from sfumato.errors import BadParameter
from sfumato.evaluation.evaluation import evaluate
from sfumato.evaluation.limits import limit_of
from sfumato.evaluation.make_release import make_release
from sfumato.evaluation.run import measured
from sfumato.graphs.base import GraphChange, apply_step
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.graph import Graph
from sfumato.measures import MeasureResult
from sfumato.measures.graph._base import GraphMeasure, GraphPair
from sfumato.profiling.undecided import refuse_undecided
from sfumato.progress import SILENT, Progress
from sfumato.recipe.graph_recipe import GraphRecipe
from sfumato.registry import registry
from sfumato.release import Lineage, Release, Verdict
from sfumato.rng import Rng


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphRelease:
    """A protected graph, what was changed, and the secret node map."""

    graph: Graph
    """The released graph with pseudonymous node numbers; one possible graph if clusters were released."""
    lineage: Ints
    """For each released node the original one. Confidential."""
    clusters: Clusters | None = None
    labels: Ints | None = None
    """The cluster of each node of ``graph``."""
    symmetry: Ints | None = None
    """A permutation of the nodes of ``graph`` that maps edges to edges, where a step made one."""
    steps: tuple[dict[str, Any], ...] = ()
    """What each step changed, for the owner."""
    verdicts: tuple[Verdict, ...] = ()
    manifest: dict[str, Any]
    table: tuple[Data, Release, Ints] | None = None
    """Node table, its release, and the rows of the release in the node table."""


def protect_graph(recipe: GraphRecipe, graph: Graph, rng: Rng, progress: Progress = SILENT) -> GraphRelease:
    """Mask the node table, protect the edges, and give every node a random number."""
    kept, frame, table = np.arange(graph.size), pl.DataFrame(), None
    verdicts: tuple[Verdict, ...] = ()
    dataset = node_data(recipe, graph)
    if recipe.table is not None and dataset is not None:
        schema = dataset.schema
        refuse_undecided(schema, dataset.table.frame, recipe=recipe.path)
        made = make_release(replace(recipe.table, schema=schema), dataset, rng=rng.child("nodes"), progress=progress)
        kept, frame, verdicts = made.masked.lineage.rows, made.release.table.frame, made.verdicts
        table = dataset, made.release, kept
    start = graph.reordered(kept) if len(kept) < graph.size else graph
    public = [name for name in frame.columns if name not in _secrets(recipe)]
    change = GraphChange(graph=replace(start, nodes=frame.select(public)))
    steps = []
    for number, method in enumerate(recipe.steps):
        check_deadline(progress)
        if change.clusters is not None:
            raise BadParameter(f"{method.part_name()} cannot follow a step that releases clusters of nodes.")
        change = apply_step(method, change.graph, rng.child("steps", number, method.part_name()), progress)
        steps.append({"step": method.part_name(), **change.counts})
    # Numbers that mean nothing: the order of the original, or of a step, must not be released.
    order = rng.child("order").generator.permutation(change.graph.size)
    shown = frame if change.clusters is None else pl.DataFrame()
    released = replace(change.graph, nodes=shown).reordered(order)
    labels, symmetry = None, None
    if change.clusters is not None:
        assert change.labels is not None
        labels = change.labels[order]
    if change.symmetry is not None:
        symmetry = np.argsort(order)[change.symmetry[order]]
    found = tuple(model.check(released, change.clusters, symmetry) for model in recipe.models)
    manifest = _manifest(recipe, released, change.clusters, table, (*verdicts, *found))
    return GraphRelease(
        graph=released, lineage=kept[order], clusters=change.clusters, labels=labels, symmetry=symmetry,
        steps=tuple(steps), verdicts=(*verdicts, *found), manifest=manifest, table=table,
    )  # fmt: skip


def node_data(recipe: GraphRecipe, graph: Graph) -> Data | None:
    """The original node table with its roles, without the column that names the nodes; None if it is not released."""
    if recipe.table is None:
        return None
    key, schema = graph.nodes.columns[0], recipe.table.schema
    columns = {name: column for name, column in schema.columns.items() if name != key}
    return Data.of(Table(frame=graph.nodes.drop(key)), replace(schema, columns=columns))


def node_release(manifest: Mapping[str, Any], nodes: pl.DataFrame, recipe: GraphRecipe | None) -> Release:
    """The node table of a released graph as a release of its own, for the checks and attacks of tables.

    Rows are in the order of the node numbers, which are drawn at random.
    """
    table, own = (None if recipe is None else recipe.table), manifest["graph"]
    about = {
        **({} if table is None else {"recipe": table.public()}),
        "columns": manifest["columns"],
        "models": manifest["models"][len(own["models"]) :],
        "steps": manifest["steps"][len(own["steps"]) :],
        "order": "shuffled",
    }
    return Release(table=Table(frame=nodes), manifest=about)


def _manifest(
    recipe: GraphRecipe, graph: Graph, clusters: Clusters | None, table: Any, verdicts: Sequence[Verdict]
) -> dict[str, object]:
    """How the release was made and which models hold. Contains no count of the original."""
    steps = [{"step": step.part_name(), "parameters": step.public()} for step in recipe.steps]
    return {
        "sfumato": __version__,
        "graph": {
            "released": "clusters" if clusters is not None else "edges",
            "models": {model.part_name(): model.public() for model in recipe.models},
            "steps": steps,
            "edge_columns": [name for name in graph.label_table.columns if name != "label"],
        },
        "nodes": graph.size,
        "edges": graph.edge_count,
        "columns": table[1].manifest["columns"] if table is not None and clusters is None else {},
        "models": [
            *({model.part_name(): model.public()} for model in recipe.models),
            *(table[1].manifest["models"] if table is not None and clusters is None else ()),
        ],
        "steps": [*steps, *(table[1].manifest["steps"] if table is not None else ())],
        "verdicts": [v.public() for v in verdicts],
    }


def graph_scenario(recipe: GraphRecipe, original: Graph, release: GraphRelease) -> GraphScenario:
    """What graph attacks are judged against; the adversary knows the methods."""

    def protect(graph: Graph, rng: Rng) -> Graph:
        for number, method in enumerate(recipe.steps):
            graph = apply_step(method, graph, rng.child("steps", number, method.part_name())).graph
        return graph

    again = None if any(method.uses_attributes for method in recipe.steps) else protect
    return GraphScenario(
        original=original, release=release.graph, lineage=release.lineage, protect=again, secrets=_secrets(recipe),
        columns=release.manifest.get("columns", {}), clusters=release.labels,
    )  # fmt: skip


def _secrets(recipe: GraphRecipe) -> list[str]:
    columns = recipe.table.schema.columns if recipe.table is not None else {}
    return [name for name, column in columns.items() if column.role is Role.SENSITIVE]


def table_scenario(release: GraphRelease) -> AttackScenario | None:
    """The node table as other attacks see it; None without one."""
    if release.table is None or release.clusters is not None:
        return None
    dataset, published, _ = release.table
    shown = Release(table=Table(frame=release.graph.nodes), manifest={**published.manifest, "order": "shuffled"})
    return AttackScenario(original=dataset, release=shown, lineage=Lineage(release.lineage))


def attack_release(
    recipe: GraphRecipe,
    original: Graph,
    release: GraphRelease,
    rng: Rng,
    *,
    attacks: Sequence[GraphAttack] = (),
    n_targets: int = 5000,
    progress: Progress = SILENT,
) -> Results:
    """Attack the edges, and the node table where it is released. An attack that does not apply is never a risk of 0."""
    chosen = tuple(attacks) or _battery(recipe)
    scenario = graph_scenario(recipe, original, release)

    def prepared(number: int, attack: GraphAttack) -> AttackRun:
        def run(own: Progress) -> Sequence[Outcome]:
            stream = rng.child("graph-attacks", number)
            return evaluate_graph_attack(attack, scenario, stream, n_targets=n_targets, progress=quiet(own))

        return AttackRun(attack=attack.part_name(), discloses=attack.discloses, run=run)

    outcomes = run_loop([prepared(*item) for item in enumerate(chosen)], progress=progress)
    nodes = table_scenario(release)
    if nodes is not None and not attacks:
        assert recipe.table is not None
        outcomes += evaluate(
            nodes, attacks=recipe.table.attacks, limits=recipe.limits, rng=rng, n_targets=n_targets,
            attribute_columns=False, progress=quiet(progress),
        ).attacks  # fmt: skip
    return outcomes


def measure_release(
    recipe: GraphRecipe,
    original: Graph,
    release: GraphRelease,
    rng: Rng,
    *,
    measures: Sequence[GraphMeasure] = (),
    progress: Progress = SILENT,
) -> list[MeasureResult]:
    """Measure the edges. A measure that does not apply has a reason and no value."""
    chosen = tuple(measures) or tuple(recipe.measures) or default_graph_measures()
    pair = GraphPair(original=original, release=release.graph, lineage=release.lineage, clusters=release.clusters)

    def prepared(number: int, measure: GraphMeasure) -> tuple[str, Callable[[], MeasureResult]]:
        stream = rng.child("graph-measures", number)
        return measure.part_name(), lambda: measure.compute(pair, stream, quiet(progress))

    return measured([prepared(*item) for item in enumerate(chosen)], progress)


def _battery(recipe: GraphRecipe) -> tuple[GraphAttack, ...]:
    """The attacks that the recipe lists, else the default ones. As for tables (:mod:`sfumato.evaluation.battery`), a
    limit is judged with the default attacks of its kind, whichever are listed."""
    default, limited = default_graph_attacks(), recipe.limits.items()
    listed = tuple(recipe.attacks) or default
    more = (one for one in default if one not in listed and limit_of(one.discloses) in limited)
    return (*listed, *more)


def default_graph_attacks() -> tuple[GraphAttack, ...]:
    """Every registered attack on graphs that says it is run by default."""
    kinds = [kind for kind in registry("graph-attack") if issubclass(kind, GraphAttack) and kind.default]
    return tuple(kind.build(kind.examples[0]) for kind in kinds)


def default_graph_measures() -> tuple[GraphMeasure, ...]:
    """Every registered measure of graphs."""
    return tuple(kind.build() for kind in registry("graph-measure") if issubclass(kind, GraphMeasure))
