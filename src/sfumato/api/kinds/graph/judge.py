"""Check, attack and measure a released graph, from its folder and the private folder beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from sfumato.api.kinds.graph.protection import GraphProtection
from sfumato.api.results import AttackResults, CheckResults, MeasureResults
from sfumato.attacks.graph._base import GraphAttack
from sfumato.deadline import stopping
from sfumato.errors import BadParameter, FileMissing, NotThatFormat
from sfumato.evaluation.graph import GraphRelease, attack_release, measure_release, node_data, node_release
from sfumato.evaluation.graph_counts import check_graph_files
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.edge_labels import labelled_graph
from sfumato.graphs.graph import Graph
from sfumato.measures.graph._base import GraphMeasure
from sfumato.params import Part
from sfumato.progress import AUTO, Progress
from sfumato.recipe.graph_recipe import GraphRecipe
from sfumato.registry import registry
from sfumato.release.folder import load_lineage, load_manifest, private_folder
from sfumato.rng import Rng

Original = GraphProtection | GraphRecipe | str | Path


def check_graph(release: str | Path, *, original: Original | None = None) -> CheckResults:
    """Check the models of a released graph by counting its files, independently of the code that made them.

    ``original`` is the recipe that names the original tables. Without it, what compares with the original node table is
    not checked.
    """
    place = Path(release)
    manifest = load_manifest(place)
    verdicts = check_graph_files(place, manifest["graph"].get("models", {}))
    if manifest["columns"]:
        from sfumato.api.kinds.microdata.check import check_microdata

        recipe, graph = (None, None) if original is None else _original(original)
        nodes = None if recipe is None or graph is None else node_data(recipe, graph)
        shown = node_release(manifest, pl.read_csv(place / "nodes.csv").drop("node"), recipe)
        verdicts += check_microdata(shown, original=nodes, lineage=load_lineage(place)).verdicts
    return CheckResults(verdicts=tuple(verdicts))


def _loaded(folder: Path, recipe: GraphRecipe, original: Graph) -> GraphRelease:
    manifest = load_manifest(folder)
    lineage = load_lineage(folder)
    if lineage is None:
        raise FileMissing(
            f"There is no node map in {private_folder(folder)}.",
            fix="Attacks and measures need the private folder that `sfumato protect` wrote beside the release.",
        )
    clusters, labels, table = None, None, None
    if manifest["graph"]["released"] == "clusters":
        kinds = folder / "kinds.csv"
        clusters = Clusters.from_tables(
            pl.read_csv(folder / "clusters.csv"),
            pl.read_csv(folder / "links.csv"),
            pl.read_csv(kinds) if kinds.is_file() else None,
        )
        labels = pl.read_parquet(private_folder(folder) / "clusters.parquet")["cluster"].to_numpy().astype(np.int64)
        graph = clusters.sample(Rng(0).generator, labels)
        sample = private_folder(folder) / "sample.parquet"
        if sample.is_file():
            graph = labelled_graph(pl.read_parquet(sample), size=graph.size)
    else:
        nodes, ends = pl.read_csv(folder / "nodes.csv"), pl.read_csv(folder / "edges.csv", infer_schema=False)
        if nodes.height != len(lineage.rows):
            raise NotThatFormat("The node map does not fit the released nodes.")
        frame = nodes.drop("node")
        ends = ends.with_columns(pl.col("source", "target").cast(pl.Int64) - 1)
        graph = labelled_graph(ends, size=nodes.height, nodes=frame if frame.width else None)
        dataset = node_data(recipe, original)
        if dataset is not None:
            table = dataset, node_release(manifest, frame, recipe), lineage.rows
    return GraphRelease(
        graph=graph, lineage=lineage.rows, clusters=clusters, labels=labels, manifest=manifest, table=table
    )


P = TypeVar("P", bound=Part)


def _named(kind: str, items: Sequence[object], base: type[P]) -> tuple[P, ...]:
    """The parts; a bare name stands for the part as its first example has it."""
    entries = ({item: registry(kind).get(item).examples[0]} if isinstance(item, str) else item for item in items)
    return tuple(registry(kind).part(entry, base) for entry in entries)


def attack_graph(
    release: str | Path,
    *,
    original: Original | None = None,
    attacks: Sequence[str] = (),
    seed: int | None = None,
    n_targets: int = 5000,
    seconds: float | None = None,
    limit: float | None = None,
    progress: Progress = AUTO,
) -> AttackResults:
    """Attack a released graph. ``original`` is the recipe that names the original tables."""
    parsed, graph = _original(original)
    loaded = _loaded(Path(release), parsed, graph)
    chosen: tuple[GraphAttack, ...] = _named("graph-attack", attacks, GraphAttack)
    outcomes = attack_release(
        parsed, graph, loaded, Rng(seed), attacks=chosen, n_targets=n_targets, progress=stopping(progress, seconds)
    )
    return AttackResults.judged(outcomes, limit, manifest=loaded.manifest)


def measure_graph(
    release: str | Path,
    *,
    original: Original | None = None,
    measures: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress = AUTO,
) -> MeasureResults:
    """Measure a released graph against its original."""
    parsed, graph = _original(original)
    loaded = _loaded(Path(release), parsed, graph)
    chosen: tuple[GraphMeasure, ...] = _named("graph-measure", measures, GraphMeasure)
    results = measure_release(parsed, graph, loaded, Rng(seed), measures=chosen, progress=progress)
    return MeasureResults(results=tuple(results))


def _original(original: Original | None) -> tuple[GraphRecipe, Graph]:
    """The recipe of a release, and its original graph."""
    if isinstance(original, GraphProtection):
        return original.recipe, original.original
    if original is None:
        raise BadParameter(
            "`original` is required: the recipe that names the original edge and node tables.",
            fix="Pass the recipe as `original`.",
            option="original",
        )
    if isinstance(original, GraphRecipe):
        return original, original.graph.read()
    if Path(original).suffix.lower() not in (".yaml", ".yml"):
        raise BadParameter(
            f"{Path(original).name} is not a recipe.",
            fix="For a graph, `original` is the recipe that names the original edge and node tables.",
            option="original",
        )
    recipe = GraphRecipe.load(original)
    return recipe, recipe.graph.read()
