"""Statistics of a graph with differential privacy: a recipe with the keys ``graph`` and ``statistics``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from sfumato.api.figures import FiguresProtection, measure_figures, original_required
from sfumato.api.results import MeasureResults
from sfumato.data.read_write import require_file
from sfumato.data.url import is_url
from sfumato.data.yaml_documents import YamlDocument, document_in, document_of, file_of, validated
from sfumato.dataset.document import Dataset
from sfumato.dataset.plan import plan_text
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.graphs.private_summary import GraphStatistic, Protected, exact_graph_summary, private_graph_summary
from sfumato.ledger.ledger import Ledger
from sfumato.progress import SILENT, Progress
from sfumato.recipe.graph_recipe import GraphRecipe


class GraphStatisticsPlan(DocumentedModel):
    """Which statistics of a graph are published, and their budget."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protect: Protected
    """The privacy unit: ``edges`` (one friendship) or ``nodes`` (one person with all their friendships)."""
    epsilon: float | str
    """Privacy loss of all statistics together."""
    publish: tuple[GraphStatistic, ...] = ()
    """The statistics; all for which the bounds are given if left out."""
    max_degree: Annotated[int, Field(ge=1)] | None = None
    """For nodes: friends counted per person."""
    max_triangles: Annotated[int, Field(ge=1)] | None = None
    """For nodes: triangles counted per person."""


class GraphStatisticsKeys(DocumentedModel):
    """The key of a plan of graph statistics beside ``graph`` and the data set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    statistics: GraphStatisticsPlan
    """Which statistics of the graph are published, and their budget."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GraphStatistics(FiguresProtection):
    """Noisy counts and the degree distribution of a graph, which may be published."""

    release_kind: ClassVar[str] = "graph-statistics"


def protect_graph_statistics(
    plan: str | Path | Mapping[str, object], *, unmet: bool = False, progress: Progress = SILENT
) -> FiguresProtection:
    """Publish the number of edges, the degree distribution and the number of triangles, and charge the ledger.

    Everything that can be refused is refused before the charge. Every run is charged.
    """
    text = plan_text(plan)
    document, base = _parsed(plan)
    keys = {"statistics": document.value["statistics"]}
    asked = validated(GraphStatisticsKeys, replace(document, value=keys), base=base).statistics
    recipe = _recipe(document, base)
    if recipe.graph.nodes is None:
        raise BadParameter(
            "Private statistics need a node table: `graph` names none.",
            fix="Add `nodes: people.csv` to the recipe, with everyone who could have friends.",
        )
    name, ledger, unit = _account(document.value, base)
    if not is_url(ledger):
        require_file(Path(ledger))  # only `sfumato ledger cap` makes one
    done = private_graph_summary(
        recipe.graph.read_declared(), ledger=Ledger.open(ledger), dataset=name, statistics=asked.publish,
        protect=asked.protect, epsilon=asked.epsilon, max_degree=asked.max_degree, max_triangles=asked.max_triangles,
        unit=unit if asked.protect == "nodes" else None,
    )  # fmt: skip
    tables = {"counts": done.counts} | ({} if done.degrees is None else {"degrees": done.degrees})
    verdict = done.guarantee.verdict(wanted=done.guarantee.epsilon)
    facts = {key: value for key, value in done.to_dict().items() if key != "guarantee"}
    return GraphStatistics.of(
        tables, facts, (verdict,), guarantee=done.guarantee, plan=text, unmet=unmet,
        exact=lambda: exact_graph_summary(recipe.graph.read_declared()),
    )  # fmt: skip


def measure_graph_statistics(
    release: str | Path,
    *,
    original: FiguresProtection | str | Path | Mapping[str, object] | None = None,
    progress: Progress = SILENT,
) -> MeasureResults:
    """Compare published statistics with the exact ones. ``original`` is the plan, which names the graph."""
    if original is None:
        raise original_required("the statistics")
    if isinstance(original, FiguresProtection):
        assert original.exact is not None
        return measure_figures(Path(release), original.exact)
    recipe = _recipe(*_parsed(original))
    return measure_figures(Path(release), lambda: exact_graph_summary(recipe.graph.read_declared()))


def _parsed(plan: str | Path | Mapping[str, object]) -> tuple[YamlDocument, Path]:
    """The document of a plan, and the folder that its paths are relative to."""
    file = file_of(plan)
    if file is None:
        return document_of(plan, source="plan"), Path()
    return document_in(file, kind="plan", fix="Write one as docs/graphs.md shows."), file.parent


def _recipe(document: YamlDocument, base: Path) -> GraphRecipe:
    """The graph of a plan."""
    return GraphRecipe.parse({key: value for key, value in document.value.items() if key != "statistics"}, base=base)


def _account(plain: Mapping[str, object], base: Path) -> tuple[str, str, str | None]:
    """The data set, its ledger, and what the ledger calls a person: of the document that is named, or of the plan."""
    file = Dataset.named_file(plain, base=base)
    dataset = None if file is None else Dataset.load(file)
    unit = None if dataset is None else dataset.privacy_unit
    name, ledger = (plain.get("dataset"), plain.get("ledger")) if dataset is None else (dataset.dataset, dataset.ledger)
    if dataset is None and isinstance(ledger, str) and not is_url(ledger):
        ledger = str(base / ledger)
    if not isinstance(name, str) or not isinstance(ledger, str):
        raise BadParameter(
            "Private statistics need a data set and its ledger.",
            fix="Name its document (`dataset: hospital.yaml`), or write `dataset: friends` and `ledger: ledger.db`.",
        )
    return name, ledger, unit
