"""Trails: the set of sites that each person visited, which links lists that share no other column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sfumato.api.kind import ReleaseKind
from sfumato.field_docs import DocumentedModel

if TYPE_CHECKING:
    from sfumato.api.figures import FiguresProtection
    from sfumato.api.results import AttackResults, CheckResults, MeasureResults
    from sfumato.reports.kind_page import PlainReport

__all__ = ["TrailsKind"]


class TrailsKind(ReleaseKind):
    """Visits of people to sites: a plan with a key ``trails``. Visits are left out until k rows share every trail."""

    @classmethod
    def plan_models(cls) -> tuple[type[DocumentedModel], ...]:
        from sfumato.api.kinds.trails.run import TrailsPlan

        return (TrailsPlan,)

    def is_plan(self, document: Mapping[str, object]) -> bool:
        return "trails" in document

    @property
    def protect(self) -> Callable[..., FiguresProtection]:
        from sfumato.api.kinds.trails.run import protect_trails

        return protect_trails

    @property
    def check(self) -> Callable[..., CheckResults]:
        from sfumato.api.kinds.trails.run import check_trails

        return check_trails

    @property
    def attack(self) -> Callable[..., AttackResults]:
        from sfumato.api.kinds.trails.run import attack_trails

        return attack_trails

    @property
    def measure(self) -> Callable[..., MeasureResults]:
        from sfumato.api.kinds.trails.run import measure_trails

        return measure_trails

    @property
    def report(self) -> Callable[..., PlainReport]:
        from sfumato.reports.figures_page import FIGURES_PAGE

        return FIGURES_PAGE.of_folder
