"""Statistics of a graph with differential privacy: a recipe with the keys ``graph`` and ``statistics``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, ValidationError

from sfumato.api.figures import FiguresProtection, plan_text
from sfumato.data.read_write import require_file
from sfumato.data.yaml_documents import YamlDocument, parse_yaml
from sfumato.errors import BadParameter, InvalidRecipe
from sfumato.field_docs import DocumentedModel
from sfumato.graphs.private_summary import GraphStatistic, Protected, private_graph_summary
from sfumato.ledger.ledger import Ledger
from sfumato.params import plain_message
from sfumato.progress import SILENT, Progress
from sfumato.recipe.graph_recipe import GraphRecipe

__all__ = ["GraphStatistics", "GraphStatisticsPlan", "protect_graph_statistics"]


class GraphStatisticsPlan(DocumentedModel):
    """Which statistics of a graph are published, and their budget."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protect: Protected
    """The privacy unit: ``edges`` (one friendship) or ``nodes`` (one person with all their friendships)."""
    epsilon: float | str
    """Privacy loss of all statistics together."""
    ledger: str
    """The ledger that is charged: a file relative to the plan, or a postgresql:// address."""
    dataset: str
    """The data set of the ledger whose budget is charged."""
    publish: tuple[GraphStatistic, ...] = ()
    """The statistics; all for which the bounds are given if left out."""
    max_degree: Annotated[int, Field(ge=1)] | None = None
    """For nodes: friends counted per person."""
    max_triangles: Annotated[int, Field(ge=1)] | None = None
    """For nodes: triangles counted per person."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GraphStatistics(FiguresProtection):
    """Noisy counts and the degree distribution of a graph, which may be published."""

    release_kind: ClassVar[str] = "graph-statistics"


def protect_graph_statistics(
    plan: str | Path | Mapping[str, Any], *, unmet: bool = False, progress: Progress = SILENT
) -> FiguresProtection:
    """Publish the number of edges, the degree distribution and the number of triangles, and charge the ledger.

    Everything that can be refused is refused before the charge. Every run is charged.
    """
    inline = isinstance(plan, Mapping) or "\n" in str(plan)
    text = plan_text(plan)
    document = parse_yaml(text, source="plan" if inline else str(plan))
    base = Path() if inline else Path(str(plan)).parent
    asked = _plan(document)
    recipe = GraphRecipe.parse({key: value for key, value in document.value.items() if key != "statistics"}, base=base)
    if recipe.graph.nodes is None:
        raise BadParameter(
            "Private statistics need a node table: `graph` names none.",
            fix="Add `nodes: people.csv` to the recipe, with everyone who could have friends.",
        )
    ledger = asked.ledger
    if "://" not in ledger:
        ledger = str(base / ledger)
        require_file(Path(ledger))  # only `sfumato ledger cap` makes one
    options = asked.model_dump(exclude={"ledger", "publish"})
    done = private_graph_summary(
        recipe.graph.read_declared(), ledger=Ledger.open(ledger), statistics=asked.publish, **options
    )
    tables = {"counts": done.counts} | ({} if done.degrees is None else {"degrees": done.degrees})
    verdict = done.guarantee.verdict(wanted=done.guarantee.epsilon)
    facts = {key: value for key, value in done.to_dict().items() if key != "guarantee"}
    return GraphStatistics.of(tables, facts, (verdict,), guarantee=done.guarantee, plan=text, unmet=unmet)


def _plan(document: YamlDocument) -> GraphStatisticsPlan:
    try:
        return GraphStatisticsPlan.model_validate(document.value["statistics"])
    except ValidationError as failure:
        problems = [
            document.problem(["statistics", *error["loc"]], plain_message(error, GraphStatisticsPlan))
            for error in failure.errors()
        ]
        raise InvalidRecipe(problems, source=document.source) from None
