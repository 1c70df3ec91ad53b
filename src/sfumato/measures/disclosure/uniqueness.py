"""Sample uniqueness: rows that are alone in their equivalence class."""

from __future__ import annotations

from typing import ClassVar

from sfumato.measures.base import MeasureResult
from sfumato.measures.classes import ClassCounts, ClassMeasure


class Uniqueness(ClassMeasure):
    """The share of released rows whose quasi-identifiers no other row has, and the same before protection.

    A unique row is found by anybody who knows its quasi-identifiers and that the person is in the release. Whether it
    is unique in the population too is another question: see population uniqueness.
    """

    meaning: ClassVar[str] = "Share of records whose values of the quasi-identifiers no other record has."
    default_rank: ClassVar[int | None] = 2
    publishable: ClassVar[bool] = True
    percentage: ClassVar[bool] = True

    def of_classes(self, released: ClassCounts, before: ClassCounts | None) -> MeasureResult:
        detail = {
            "unique": int(released.own[released.fit == 1].sum()),
            "rows": released.rows,
            "suppressed": released.suppressed,
            "before": before.share(before.fit == 1) if before is not None and before.rows else None,
            "unique_before": int(before.own[before.fit == 1].sum()) if before is not None else None,
        }
        return MeasureResult(measure=self.part_name(), value=released.share(released.fit == 1), detail=detail)
