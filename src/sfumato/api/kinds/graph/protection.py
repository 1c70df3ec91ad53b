"""The result of a recipe for a graph: the released graph, the secret node map, and the files of both folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from sfumato.api.protection import PlainProtection
from sfumato.data.key_file import write_key
from sfumato.evaluation.formatting import Plain
from sfumato.evaluation.graph import GraphRelease
from sfumato.graphs.edge_labels import labelled_edges
from sfumato.graphs.graph import Graph
from sfumato.recipe.graph_recipe import GraphRecipe
from sfumato.release import Lineage
from sfumato.release.folder import KEY, PRIVATE, write_lineage
from sfumato.release.public_folder import Leaving, PublicFolder, leaving_manifest, released
from sfumato.reports.graph_page import GRAPH_PAGE
from sfumato.reports.graph_picture import before_and_after
from sfumato.reports.redaction import external
from sfumato.rng import KeyedRng
from sfumato.wording import counted


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GraphProtection(PlainProtection):
    """The released graph, which may be published, and everything its owner must keep. Nothing is written yet."""

    release_kind = "graph"
    page = GRAPH_PAGE
    plan_file = "recipe.yaml"
    written_as = "A graph is written as CSV tables."

    recipe: GraphRecipe
    original: Graph
    released: GraphRelease
    rng: KeyedRng

    @property
    def written_plan(self) -> str:
        return self.recipe.to_yaml()

    @property
    def _named_account(self) -> tuple[str | Path, str] | None:
        return self.recipe.account

    def _native(self) -> Graph:
        return self.graph

    @property
    def graph(self) -> Graph:
        """The released graph."""
        return self.released.graph

    def __repr__(self) -> str:
        return f"<GraphProtection: {counted(self.graph.size, 'node')} released, {self.judgement.standing}>"

    @cached_property
    def _pictures(self) -> tuple[str, str]:
        random = self.rng.child("picture").generator
        return before_and_after(self.original, self.graph, self.released.lineage, random)

    def to_dict(self, folder: Path | None = None, manifest: Mapping[str, object] | None = None) -> dict[str, object]:
        released = "clusters" if self.released.clusters is not None else "edges"
        return {
            **self._places(folder),
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
            "files": (manifest or {}).get("files", {}),
        }

    def _document(self) -> dict[str, object]:
        """The document of the private folder: without places, with pictures."""
        places = {*self._places(None), "files"}
        return {
            **{key: value for key, value in self.to_dict().items() if key not in places},
            "pictures": list(self._pictures),
        }

    def _write_data(self, public: PublicFolder, private: Path, document: Plain) -> Mapping[str, Leaving[object]]:
        """Write ``edges.csv`` and ``nodes.csv`` with random node numbers, or ``clusters.csv`` and ``links.csv``.

        There is also ``kinds.csv``, by relation and value of edges, and ``symmetry.csv`` with the symmetry that a step
        made.
        """
        write_key(private / KEY, self.rng.key)
        write_lineage(Lineage(self.released.lineage), private)
        self._write_tables(public, private)
        public.json(PRIVATE, external(document, promised=self.promise))
        return leaving_manifest(self.released.manifest)

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
