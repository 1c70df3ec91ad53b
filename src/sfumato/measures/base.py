"""The contract of a measure: one class per measure in ``measure/utility`` and ``measure/disclosure``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import polars as pl

from sfumato.errors import NotApplicable
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.release import Lineage, Release
from sfumato.rng import Rng
from sfumato.schema import Dataset

__all__ = ["About", "Measure", "MeasureResult", "ReleasePair", "judge"]


class About(StrEnum):
    """What a measure is about."""

    UTILITY = "utility"
    DISCLOSURE = "disclosure"


@dataclass(frozen=True, kw_only=True)
class ReleasePair:
    """The original with its schema, and the release made of it."""

    original: Dataset
    release: Release
    lineage: Lineage | None = None

    @property
    def common(self) -> tuple[str, ...]:
        """Columns that both have, in the order of the original."""
        return tuple(name for name in self.original.table.columns if name in self.release.table.columns)

    @property
    def masked(self) -> pl.DataFrame:
        return self.release.table.frame


@dataclass(frozen=True, kw_only=True)
class MeasureResult:
    """One number with its meaning, its parts, and an interval where it is an estimate."""

    measure: str
    value: float | None
    """None when the measure does not apply; ``reason`` then says why. Never 0 for "not applicable"."""
    columns: Mapping[str, float] = field(default_factory=dict)
    """The same by column or by pair of columns ("age × sex")."""
    low: float | None = None
    high: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Further plain data, for example a histogram for the picture."""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "value": self.value,
            "columns": dict(self.columns),
            "low": self.low,
            "high": self.high,
            **({"detail": dict(self.detail)} if self.detail else {}),
            **({"reason": self.reason} if self.reason else {}),
        }


class Measure(Part):
    """Something that can be said of a release, with or without its original."""

    suffix = "Measure"

    about: ClassVar[About]
    better: ClassVar[str] = "low"
    """Whether a "low" or a "high" value is good for the data's user (utility) or for its people (disclosure)."""

    @abstractmethod
    def of(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        """Measure. Estimates carry an interval; what does not apply carries a reason and no value."""


def judge(measure: Measure, pair: ReleasePair, *, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
    """Measure; what does not apply comes back without a value and with the reason, so that others still run."""
    try:
        return measure.of(pair, rng.child("measure", measure.part_name()), progress)
    except NotApplicable as refusal:
        return MeasureResult(measure=measure.part_name(), value=None, reason=str(refusal))
