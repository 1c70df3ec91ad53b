"""The contract of a measure: one class per measure in ``measures/utility`` and ``measures/disclosure``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import polars as pl

from sfumato.dataset import Data
from sfumato.errors import NotApplicable, UnknownPart
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.registry import registry
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.measures.classes import ClassCounts


class About(StrEnum):
    """What a measure is about."""

    UTILITY = "utility"
    DISCLOSURE = "disclosure"


class Picture(StrEnum):
    """How a report draws a measure, besides its line in the table."""

    BARS = "bars"
    """One bar per entry of ``columns``, for values from 0 to 1."""
    MATRIX = "matrix"
    """One cell per pair of columns."""
    CLASS_SIZES = "class sizes"
    """The histogram of equivalence class sizes in ``detail``, before and after."""
    CURVE = "curve"
    """A share by number of known events: ``by_events`` and ``by_events_before`` in ``detail``."""


@dataclass(frozen=True, kw_only=True)
class ReleasePair:
    """The original with its schema, and the release made of it."""

    original: Data
    release: Release
    lineage: Lineage | None = None

    @property
    def common(self) -> tuple[str, ...]:
        """Columns that both have, in the order of the original."""
        return tuple(name for name in self.original.table.columns if name in self.release.table.columns)

    @property
    def cells(self) -> int:
        """Number of cells of both tables."""
        return sum(table.rows * len(table.columns) for table in (self.original.table, self.release.table))

    @property
    def masked(self) -> pl.DataFrame:
        return self.release.table.frame

    @cached_property
    def class_counts(self) -> tuple[ClassCounts, ClassCounts | None]:
        """The sizes of the equivalence classes of the release and of the original, counted once for all measures."""
        from sfumato.measures.classes import class_counts

        schema = self.original.schema
        return class_counts(Data(table=self.release.table, schema=schema), self.original, schema)


@dataclass(frozen=True, kw_only=True)
class MeasureResult:
    """The value of a measure, its parts by column, and an interval where it is an estimate."""

    measure: str
    value: float | None
    """None when the measure does not apply; ``reason`` then says why. Never 0 for "not applicable"."""
    columns: Mapping[str, float] = field(default_factory=dict)
    """The same by column or by pair of columns ("age × sex")."""
    low: float | None = None
    high: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Further plain data, for example a histogram for the picture. ``tabs`` are cross-tabs to print below the value."""
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
    """A figure about a release, computed with or without its original.

    The class variables are all that reports, studies and the command line know about a measure: a new one needs no
    other file to be edited.
    """

    suffix = "Measure"

    about: ClassVar[About]
    better: ClassVar[Literal["low", "high"]] = "low"
    """Whether a low or a high value is good: for the user of the data (utility) or for its people (disclosure)."""
    label: ClassVar[str] = ""
    """Its name in reports and tables; the part name if empty."""
    meaning: ClassVar[str] = ""
    """One sentence for readers of a report; the first sentence of the docstring if empty."""
    headline: ClassVar[str] = ""
    """Words below the value at the head of a report; not shown there if empty."""
    default_rank: ClassVar[int | None] = None
    """Its position among the measures that are taken when none is named; None: only when named."""
    publishable: ClassVar[bool] = False
    """Whether an external report may show the value, rounded. Only for values that are no count of the original."""
    publishable_detail: ClassVar[frozenset[str]] = frozenset()
    """Keys of ``detail`` that anybody can count in the release itself."""
    percentage: ClassVar[bool] = False
    """Whether the value is a share of records and is shown in percent."""
    before_key: ClassVar[str] = "before"
    """The key of ``detail`` that holds the value of the original, where there is one."""
    picture: ClassVar[Picture] = Picture.BARS

    @classmethod
    def explanation(cls) -> str:
        """The meaning of the measure in one sentence."""
        return cls.meaning or cls.summary().replace("`", "")

    @abstractmethod
    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        """Compute the value. Estimates have an interval; a measure that does not apply has a reason and no value."""


class UnknownMeasure(Measure):
    """A measure of a package that is not installed."""

    about: ClassVar[About] = About.UTILITY

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        raise NotApplicable("The measure is not installed.")


def measure_of(name: str) -> type[Measure]:
    """The measure of that name, or :class:`UnknownMeasure` if it is not installed.

    >>> measure_of("class-sizes").label, measure_of("of-another-package").publishable
    ('smallest equivalence class', False)
    """
    try:
        measure = registry("measure").get(name)
    except (UnknownPart, ImportError):
        return UnknownMeasure
    return measure if issubclass(measure, Measure) else UnknownMeasure


def default_measures() -> tuple[Measure, ...]:
    """The measures that are taken when none is named."""
    kinds = [kind for kind in registry("measure") if issubclass(kind, Measure) and kind.default_rank is not None]
    return tuple(kind.build() for kind in sorted(kinds, key=lambda kind: kind.default_rank or 0))


def judge(measure: Measure, pair: ReleasePair, *, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
    """Run a measure. One that does not apply has a reason and no value, so that others still run."""
    try:
        return measure.compute(pair, rng.child("measure", measure.part_name()), progress)
    except NotApplicable as refusal:
        return MeasureResult(measure=measure.part_name(), value=None, reason=str(refusal))
