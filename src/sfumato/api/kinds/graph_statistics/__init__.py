"""Statistics of a graph with differential privacy: edges, degrees, triangles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sfumato.api.kind import ReleaseKind
from sfumato.field_docs import DocumentedModel

if TYPE_CHECKING:
    from sfumato.api.figures import FiguresProtection
    from sfumato.api.results import CheckResults, MeasureResults
    from sfumato.reports.kind_page import PlainReport

__all__ = ["GraphStatisticsKind"]


class GraphStatisticsKind(ReleaseKind):
    """Noisy statistics of a graph: a plan with the keys ``graph`` and ``statistics``, charged to a ledger."""

    @classmethod
    def plan_models(cls) -> tuple[type[DocumentedModel], ...]:
        from sfumato.api.kinds.graph_statistics.run import GraphStatisticsKeys

        return (GraphStatisticsKeys,)

    def is_plan(self, document: Mapping[str, object]) -> bool:
        return "graph" in document and "statistics" in document

    @property
    def protect(self) -> Callable[..., FiguresProtection]:
        from sfumato.api.kinds.graph_statistics.run import protect_graph_statistics

        return protect_graph_statistics

    @property
    def check(self) -> Callable[..., CheckResults]:
        from sfumato.api.figures import check_guarantee

        return check_guarantee

    @property
    def measure(self) -> Callable[..., MeasureResults]:
        from sfumato.api.kinds.graph_statistics.run import measure_graph_statistics

        return measure_graph_statistics

    @property
    def report(self) -> Callable[..., PlainReport]:
        from sfumato.reports.figures_page import FIGURES_PAGE

        return FIGURES_PAGE.of_folder
