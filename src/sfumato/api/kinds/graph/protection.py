"""The result of a recipe for a graph: the released graph, the secret node map, and the files of both folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.api.protection import PAGE, PlainReport, Protection, json_text, load_document, release_readme
from sfumato.data.key_file import write_key
from sfumato.errors import BadParameter
from sfumato.evaluation.graph import GraphRelease
from sfumato.graphs.edge_labels import labelled_edges
from sfumato.graphs.graph import Graph
from sfumato.recipe.graph_recipe import GraphRecipe
from sfumato.release import Lineage
from sfumato.release.folder import KEY, PRIVATE, write_lineage
from sfumato.release.public_folder import PublicFolder, leaving_manifest, measured, released
from sfumato.reports import README, Audience
from sfumato.reports.graph_page import external_document, graph_html, graph_sentences
from sfumato.reports.graph_picture import before_and_after
from sfumato.reports.redaction import external
from sfumato.rng import KeyedRng
from sfumato.wording import counted


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GraphProtection(Protection):
    """The released graph, which may be published, and everything its owner must keep. Nothing is written yet."""

    release_kind = "graph"

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

    def to_dict(self, folder: Path | None = None, manifest: Mapping[str, Any] | None = None) -> dict[str, Any]:
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

    def report(self, *, audience: Audience = "internal") -> PlainReport:
        return graph_report(self._document(), audience=audience)

    def _document(self) -> dict[str, object]:
        """The document of the private folder: without places, with pictures."""
        places = {*self._places(None), "files"}
        return {
            **{key: value for key, value in self.to_dict().items() if key not in places},
            "pictures": list(self._pictures),
        }

    def _write(self, public: PublicFolder, private: Path, suffix: str | None) -> Mapping[str, object]:
        """Write ``edges.csv`` and ``nodes.csv`` with random node numbers, or ``clusters.csv`` and ``links.csv``.

        There is also ``kinds.csv``, by relation and value of edges, and ``symmetry.csv`` with the symmetry that a step
        made.
        """
        if suffix is not None:
            raise BadParameter("A graph is written as CSV tables.", fix="Leave the format out.")
        write_key(private / KEY, self.rng.key)
        write_lineage(Lineage(self.released.lineage), private)
        self._write_tables(public, private)
        document = self._document()
        public.text(PAGE, measured(self.report(audience="external").html))
        public.json(PRIVATE, external(document, promised=self.promise))
        (private / PAGE).write_text(graph_html(document, internal=True), encoding="utf-8")
        (private / PRIVATE).write_text(json_text(document), encoding="utf-8")
        (private / "recipe.yaml").write_text(self.recipe.to_yaml(), encoding="utf-8")
        files = [path.name for path in public.path.iterdir()]
        public.text(README, measured(release_readme("graph", files, *graph_sentences(external_document(document)))))
        return public.manifest(leaving_manifest(self.released.manifest), kind=self.release_kind)

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


def report_graph(release: str | Path, *, audience: Audience = "internal") -> PlainReport:
    """The report of a released graph, from its private folder."""
    return graph_report(load_document(release), audience=audience)


def graph_report(document: Mapping[str, object], *, audience: Audience) -> PlainReport:
    """The report of a document of the private folder."""
    internal = audience == "internal"
    return PlainReport(
        document=document if internal else external_document(document),
        page=lambda _: measured(graph_html(document, internal=internal)),
        audience=audience,
    )
