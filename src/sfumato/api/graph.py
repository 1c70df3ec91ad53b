"""The verbs for graphs: ``protect``, ``check``, ``attack``, ``measure`` and ``report``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.api.results import AttackResults, CheckResults, MeasureResults
from sfumato.attacks.graph._base import GraphAttack
from sfumato.data.atomic import sha256
from sfumato.data.key_file import Key, as_key, write_key
from sfumato.data.table import Table
from sfumato.deadline import Deadline
from sfumato.errors import BadParameter, FileMissing, NotThatFormat, PolicyNotMet, ReleaseChanged, Unmet
from sfumato.evaluation import Evaluation
from sfumato.evaluation.graph import GraphRelease, attack_release, measure_release, protect_graph
from sfumato.evaluation.graph_counts import check_graph_files
from sfumato.evaluation.limits import judge_limits, same_limit
from sfumato.graphs.clusters import Clusters
from sfumato.graphs.edge_labels import labelled_edges, labelled_graph
from sfumato.graphs.graph import Graph
from sfumato.graphs.private_summary import GraphSummary, private_graph_summary
from sfumato.ledger.ledger import Ledger
from sfumato.measures.graph._base import GraphMeasure
from sfumato.progress import AUTO, Progress
from sfumato.recipe import Limits
from sfumato.recipe.graph_recipe import GraphRecipe
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.release.folder import (
    KEY,
    MANIFEST,
    PRIVATE,
    load_lineage,
    private_folder,
    refuse_existing,
    write_lineage,
)
from sfumato.release.public_folder import (
    PublicFolder,
    leaving_manifest,
    measured,
    promised,
    release_folders,
    released,
)
from sfumato.reports.graph_page import graph_html
from sfumato.reports.graph_picture import before_and_after
from sfumato.reports.redaction import external
from sfumato.rng import KeyedRng, Rng
from sfumato.wording import counted

__all__ = [
    "GraphProtection",
    "attack_graph_release",
    "check_graph_release",
    "load_graph_report",
    "measure_graph_release",
    "protect_graph_recipe",
    "summarize_graph",
]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GraphProtection:
    """The released graph, which may be published, and everything its owner must keep. Nothing is written yet."""

    recipe: GraphRecipe
    original: Graph
    released: GraphRelease
    evaluation: Evaluation
    """Outcomes of attacks, measures, verdicts and limits."""
    rng: KeyedRng

    @property
    def graph(self) -> Graph:
        """The released graph."""
        return self.released.graph

    @property
    def attacks(self) -> AttackResults:
        """The outcome of each attack, with limits."""
        return AttackResults(
            outcomes=self.evaluation.attacks, limits=self.evaluation.limits, manifest=self.evaluation.manifest
        )

    @property
    def measures(self) -> MeasureResults:
        """Disclosure risk and utility of the released graph."""
        return MeasureResults(results=self.evaluation.measures)

    @property
    def unmet(self) -> tuple[str, ...]:
        """In words, every model that does not hold and every limit that is exceeded."""
        return self.evaluation.unmet

    def __repr__(self) -> str:
        return f"<GraphProtection: {counted(self.graph.size, 'node')} released, {self.evaluation.judgement.standing}>"

    @cached_property
    def _pictures(self) -> tuple[str, str]:
        random = self.rng.child("picture").generator
        return before_and_after(self.original, self.graph, self.released.lineage, random)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``sfumato protect --json`` prints: for the owner, with counts of the original."""
        released = "clusters" if self.released.clusters is not None else "edges"
        return {
            "title": self.recipe.title,
            "released": released,
            "nodes": self.graph.size,
            "edges": self.graph.edge_count,
            "edge_columns": [name for name in self.graph.label_table.columns if name != "label"],
            "original_nodes": self.original.size,
            "original_edges": self.original.edge_count,
            "rows": self.graph.size,
            "original_rows": self.original.size,
            "steps": [*(self.released.steps)],
            **{key: value for key, value in self.evaluation.to_dict().items() if key in _RESULTS},
        }

    def save(self, folder: str | Path, *, force: bool = False, unmet: bool = False) -> dict[str, Any]:
        """Write the release folder and the private folder beside it, both or neither.

        The release holds ``edges.csv`` and ``nodes.csv`` with random node numbers, or ``clusters.csv`` and
        ``links.csv`` (and ``kinds.csv``, by relation and value of edges); ``symmetry.csv`` holds the symmetry that a
        step made. A release that does not meet its models or limits is refused unless ``unmet`` is set.
        """
        target = Path(folder)
        if self.unmet and not unmet:
            raise (PolicyNotMet if self.evaluation.holds else Unmet)(
                "The release is not written: " + "; ".join(self.unmet) + ".",
                fix="Change the recipe, or write it nevertheless with --unmet.",
                document=self.to_dict(),
            )
        refuse_existing(target, force=force)
        document = self.to_dict()
        with release_folders(target, promise=promised(self.released.manifest), force=force) as (public, private):
            write_key(private / KEY, self.rng.key)
            write_lineage(Lineage(self.released.lineage), private)
            self._write_tables(public, private)
            public.text("report.html", measured(graph_html(document, internal=False)))
            public.json(PRIVATE, external(document, promised=promised(self.released.manifest)))
            public.manifest(leaving_manifest(self.released.manifest))
            document = {**document, "pictures": list(self._pictures)}
            (private / "report.html").write_text(graph_html(document, internal=True), encoding="utf-8")
            (private / PRIVATE).write_text(_json(document), encoding="utf-8")
            (private / "recipe.yaml").write_text(self.recipe.to_yaml(), encoding="utf-8")
        document.pop("pictures")
        return {"release": f"{target}/", "private": f"{private_folder(target)}/", **document}

    def _write_tables(self, public: PublicFolder, private: Path) -> None:
        if self.released.clusters is not None:
            clusters, links = self.released.clusters.tables()
            public.table("clusters.csv", released(clusters))
            public.table("links.csv", released(links))
            if self.released.clusters.kinds.width:
                public.table("kinds.csv", released(self.released.clusters.kinds))
                labelled_edges(self.graph).write_parquet(private / "sample.parquet")
            assert self.released.labels is not None
            pl.DataFrame({"cluster": self.released.labels}).write_parquet(private / "clusters.parquet")
            return
        edges = labelled_edges(self.graph).with_columns(pl.col("source", "target") + 1)
        public.table("edges.csv", released(edges))
        numbers = pl.Series("node", range(1, self.graph.size + 1), dtype=pl.Int64)
        nodes = pl.DataFrame([numbers, *self.graph.nodes.get_columns()])
        public.table("nodes.csv", released(nodes))
        if self.released.symmetry is not None:
            images = numbers[self.released.symmetry].alias("image")
            public.table("symmetry.csv", released(pl.DataFrame([numbers, images])))


_RESULTS = ("standing", "attacks", "measures", "verdicts", "limits", "advice")


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def protect_graph_recipe(
    recipe: GraphRecipe | str | Path | Mapping[str, Any],
    graph: Any = None,
    *,
    seed: int | None = None,
    key: Key | None = None,
    n_targets: int = 1000,
    seconds: float | None = None,
    progress: Progress = AUTO,
) -> GraphProtection:
    """Run a recipe for a graph, attack the release and measure it. Nothing is written until ``save``.

    ``graph`` is a :class:`~sfumato.graphs.Graph`, a networkx or igraph graph, a scipy.sparse matrix or an edge table;
    the recipe's own tables if left out. ``seed`` repeats a run together with the ``key`` of that run, as in
    :func:`sfumato.protect`.
    """
    begin = time.monotonic()
    parsed = _recipe(recipe)
    rng = KeyedRng(seed if seed is not None else parsed.seed, key=as_key(key))
    original = parsed.graph.read() if graph is None else parsed.graph.of(graph)
    deadline = progress if seconds is None else Deadline(until=begin + seconds, listener=progress)
    released = protect_graph(parsed, original, rng, progress)
    evaluation = Evaluation(
        manifest=released.manifest,
        attacks=tuple(attack_release(parsed, original, released, rng, n_targets=n_targets, progress=deadline)),
        measures=tuple(measure_release(parsed, original, released, rng, progress=deadline)),
        verdicts=released.verdicts,
        limit_set=parsed.limits,
    )
    return GraphProtection(recipe=parsed, original=original, released=released, evaluation=evaluation, rng=rng)


def _recipe(recipe: GraphRecipe | str | Path | Mapping[str, Any]) -> GraphRecipe:
    if isinstance(recipe, GraphRecipe):
        return recipe
    if isinstance(recipe, Mapping) or (isinstance(recipe, str) and "\n" in recipe):
        return GraphRecipe.parse(recipe)
    return GraphRecipe.load(recipe)


def _manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    for name, digest in manifest.get("files", {}).items():
        file = folder / Path(name).name
        if not file.is_file() or sha256(file) != digest:
            raise ReleaseChanged(
                f"{file} is not the file that the manifest names.",
                fix="The file was changed or deleted after the release was written. Write the release again.",
                file=name,
            )
    return manifest


def check_graph_release(folder: str | Path, *, original: GraphRecipe | str | Path | None = None) -> CheckResults:
    """Check the models of a released graph by counting its files, independently of the code that made them.

    ``original`` is the recipe that names the original tables. Without it, what compares with the original node table is
    not checked.
    """
    place = Path(folder)
    manifest = _manifest(place)
    models = manifest["graph"].get("models", {})
    verdicts = check_graph_files(place, models)
    known = {verdict.model for verdict in verdicts}
    others = [entry for entry in manifest.get("models", ()) if not set(entry) <= known]
    if others:
        from sfumato.api.check import check

        released = Release(table=Table(frame=pl.read_csv(place / "nodes.csv").drop("node")), manifest={})
        nodes = None if original is None else _original(original).graph.read().nodes
        verdicts += check(
            released,
            original=None if nodes is None else nodes.drop(nodes.columns[0]),
            lineage=load_lineage(place),
            recipe=_node_recipe(manifest, others),
        ).verdicts
    return CheckResults(verdicts=tuple(verdicts))


def _node_recipe(manifest: Mapping[str, Any], models: Sequence[Mapping[str, Any]]) -> Any:
    from sfumato.recipe import Recipe

    return Recipe.parse({"sfumato": 1, "columns": manifest["columns"], "models": list(models)})


def _loaded(folder: Path) -> GraphRelease:
    manifest = _manifest(folder)
    lineage = load_lineage(folder)
    if lineage is None:
        raise FileMissing(
            f"There is no node map in {private_folder(folder)}.",
            fix="Attacks and measures need the private folder that `sfumato protect` wrote beside the release.",
        )
    clusters, labels = None, None
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
    return GraphRelease(graph=graph, lineage=lineage.rows, clusters=clusters, labels=labels, manifest=manifest)


def _named(kind: str, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(registry(kind).get(name).build(registry(kind).get(name).examples[0]) for name in names)


def attack_graph_release(
    folder: str | Path,
    *,
    original: GraphRecipe | str | Path,
    attacks: Sequence[str] = (),
    seed: int | None = None,
    n_targets: int = 1000,
    seconds: float | None = None,
    limit: float | None = None,
    progress: Progress = AUTO,
) -> AttackResults:
    """Attack a released graph. ``original`` is the recipe that names the original tables."""
    parsed, place = _original(original), Path(folder)
    release = _loaded(place)
    chosen: tuple[GraphAttack, ...] = _named("graph-attack", attacks)
    until = None if seconds is None else Deadline(until=time.monotonic() + seconds, listener=progress)
    outcomes = attack_release(
        parsed, parsed.graph.read(), release, Rng(seed), attacks=chosen, n_targets=n_targets, progress=until or progress
    )
    limits = same_limit(limit, outcomes) if limit is not None else Limits()
    return AttackResults(outcomes=tuple(outcomes), limits=judge_limits(limits, outcomes), manifest=release.manifest)


def measure_graph_release(
    folder: str | Path,
    *,
    original: GraphRecipe | str | Path,
    measures: Sequence[str] = (),
    seed: int | None = None,
    progress: Progress = AUTO,
) -> MeasureResults:
    """Measure a released graph against its original."""
    parsed = _original(original)
    release = _loaded(Path(folder))
    chosen: tuple[GraphMeasure, ...] = _named("graph-measure", measures)
    results = measure_release(parsed, parsed.graph.read(), release, Rng(seed), measures=chosen, progress=progress)
    return MeasureResults(results=tuple(results))


def _original(original: GraphRecipe | str | Path) -> GraphRecipe:
    if isinstance(original, GraphRecipe):
        return original
    if Path(original).suffix.lower() not in (".yaml", ".yml"):
        raise BadParameter(
            f"{Path(original).name} is not a recipe.",
            fix="For a graph, --original is the recipe that names the original edge and node tables.",
        )
    return GraphRecipe.load(original)


def load_graph_report(folder: str | Path) -> dict[str, Any]:
    """The report data of a released graph, from its private folder."""
    try:
        found: dict[str, Any] = json.loads((private_folder(Path(folder)) / PRIVATE).read_text(encoding="utf-8"))
        return found
    except OSError:
        raise FileMissing(
            f"There is no report in {private_folder(Path(folder))}.",
            fix="The private folder that `sfumato protect` wrote must lie beside the release.",
        ) from None


def summarize_graph(
    recipe: GraphRecipe | str | Path | Mapping[str, Any], *, ledger: Ledger, **options: Any
) -> GraphSummary:
    """Differentially private statistics of the graph that a recipe names, charged to ``ledger``.

    ``options`` are those of :func:`~sfumato.graphs.private_graph_summary`. Of the recipe, only ``graph`` is used.
    """
    parsed = _recipe(recipe)
    if parsed.graph.nodes is None:
        raise BadParameter(
            "Private statistics need a node table: `graph` names none.",
            fix="Add `nodes: people.csv` to the recipe, with everyone who could have friends.",
        )
    return private_graph_summary(parsed.graph.read_declared(), ledger=ledger, **options)
