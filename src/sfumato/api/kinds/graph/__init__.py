"""Graphs: edge tables and a node table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sfumato.api.kind import ReleaseKind

if TYPE_CHECKING:
    from sfumato.api.kinds.graph.protection import GraphProtection
    from sfumato.api.results import AttackResults, CheckResults, MeasureResults
    from sfumato.reports.kind_page import PlainReport

__all__ = ["GraphKind"]


class GraphKind(ReleaseKind):
    """A social graph: a recipe with a key ``graph``, which names edge tables and a node table."""

    def is_plan(self, document: Mapping[str, object]) -> bool:
        return "graph" in document and "statistics" not in document

    @property
    def protect(self) -> Callable[..., GraphProtection]:
        from sfumato.api.kinds.graph.protect import protect_graph_recipe

        return protect_graph_recipe

    @property
    def check(self) -> Callable[..., CheckResults]:
        from sfumato.api.kinds.graph.judge import check_graph

        return check_graph

    @property
    def attack(self) -> Callable[..., AttackResults]:
        from sfumato.api.kinds.graph.judge import attack_graph

        return attack_graph

    @property
    def measure(self) -> Callable[..., MeasureResults]:
        from sfumato.api.kinds.graph.judge import measure_graph

        return measure_graph

    @property
    def report(self) -> Callable[..., PlainReport]:
        from sfumato.reports.graph_page import GRAPH_PAGE

        return GRAPH_PAGE.of_folder
