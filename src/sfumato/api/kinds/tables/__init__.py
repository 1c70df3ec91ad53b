"""Tables: counts, sums and statistics, suppressed, rounded or with differential privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sfumato.api.kind import ReleaseKind
from sfumato.field_docs import DocumentedModel

if TYPE_CHECKING:
    from sfumato.api.figures import FiguresProtection
    from sfumato.api.results import AttackResults, CheckResults, MeasureResults
    from sfumato.reports.kind_page import PlainReport

__all__ = ["TablesKind"]

_KEYS = frozenset({"areas", "published", "statistics"})


class TablesKind(ReleaseKind):
    """Published tables and statistics.

    A plan lists ``tables`` (cell suppression or rounding), ``areas`` (TopDown), or ``statistics``. A plan that lists
    ``published`` names tables that somebody else published, to attack them.
    """

    @classmethod
    def plan_models(cls) -> tuple[type[DocumentedModel], ...]:
        from sfumato.api.kinds.tables.intervals import PublishedFiles
        from sfumato.api.kinds.tables.plans import PLANS
        from sfumato.tables.plan import TablePlan

        return (TablePlan, *PLANS.values(), PublishedFiles)

    def is_plan(self, document: Mapping[str, object]) -> bool:
        listed = isinstance(document.get("tables"), list) or isinstance(document.get("statistics"), list)
        return "graph" not in document and (listed or not _KEYS.isdisjoint(document))

    @property
    def protect(self) -> Callable[..., FiguresProtection]:
        from sfumato.api.kinds.tables.plans import protect_tables

        return protect_tables

    @property
    def check(self) -> Callable[..., CheckResults]:
        from sfumato.api.kinds.tables.intervals import check_tables

        return check_tables

    @property
    def attack(self) -> Callable[..., AttackResults]:
        from sfumato.api.kinds.tables.intervals import attack_tables

        return attack_tables

    @property
    def measure(self) -> Callable[..., MeasureResults]:
        from sfumato.api.kinds.tables.plans import measure_tables

        return measure_tables

    @property
    def report(self) -> Callable[..., PlainReport]:
        from sfumato.reports.figures_page import FIGURES_PAGE

        return FIGURES_PAGE.of_folder
