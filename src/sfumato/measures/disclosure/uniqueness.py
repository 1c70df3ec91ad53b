"""Sample uniqueness: rows that are alone in their equivalence class."""

from __future__ import annotations

from typing import ClassVar

from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.disclosure._classes import classes, quasi_of, released_classes
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Uniqueness(Measure):
    """The share of released rows whose quasi-identifiers no other row has, and the same before protection.

    A unique row is found by anybody who knows its quasi-identifiers and that the person is in the release. Whether it
    is unique in the population too is another question: see population uniqueness.
    """

    about: ClassVar[About] = About.DISCLOSURE
    meaning: ClassVar[str] = "Share of records whose values of the quasi-identifiers no other record has."
    default_rank: ClassVar[int | None] = 2
    publishable: ClassVar[bool] = True
    percentage: ClassVar[bool] = True

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        released = released_classes(pair)
        names = quasi_of(pair.original)
        missing = {name: pair.original.schema.column(name).missing for name in names}
        before = classes(pair.original.table.frame, names, missing)
        detail = {
            "unique": int((released.size == 1).sum()),
            "rows": released.rows,
            "suppressed": released.suppressed,
            "before": float((before.size == 1).mean()) if before.rows else None,
            "unique_before": int((before.size == 1).sum()),
        }
        if released.rows == 0:
            return MeasureResult(
                measure=self.part_name(), value=None, detail=detail, reason="Every row of the release is suppressed."
            )
        return MeasureResult(measure=self.part_name(), value=float((released.size == 1).mean()), detail=detail)
