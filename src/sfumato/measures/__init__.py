"""Disclosure risk and utility, as numbers with intervals."""

from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair, judge

__all__ = ["About", "Measure", "MeasureResult", "ReleasePair", "judge"]
