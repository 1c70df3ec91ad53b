"""Microdata: a table with one row per record, masked by a recipe."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sfumato.api.kind import ReleaseKind

if TYPE_CHECKING:
    from sfumato.api.kinds.microdata.protection import MicrodataProtection
    from sfumato.api.results import AttackResults, CheckResults, MeasureResults
    from sfumato.field_docs import DocumentedModel
    from sfumato.reports import Report

__all__ = ["MicrodataKind"]


class MicrodataKind(ReleaseKind):
    """A masked table: what a recipe with ``columns``, ``models`` and ``steps`` makes, and any data file.

    It is the kind of every plan and release that no other kind recognizes.
    """

    links = True

    @classmethod
    def plan_models(cls) -> tuple[type[DocumentedModel], ...]:
        from sfumato.studies.plan import StudyKeys

        return (StudyKeys,)

    @property
    def protect(self) -> Callable[..., MicrodataProtection]:
        from sfumato.api.kinds.microdata.protect import protect_microdata

        return protect_microdata

    @property
    def check(self) -> Callable[..., CheckResults]:
        from sfumato.api.kinds.microdata.check import check_microdata

        return check_microdata

    @property
    def attack(self) -> Callable[..., AttackResults]:
        from sfumato.api.kinds.microdata.attack import attack_microdata

        return attack_microdata

    @property
    def measure(self) -> Callable[..., MeasureResults]:
        from sfumato.api.kinds.microdata.measure import measure_microdata

        return measure_microdata

    @property
    def report(self) -> Callable[..., Report]:
        from sfumato.api.kinds.microdata.report import report_microdata

        return report_microdata
