"""Disclosure risk and utility, as numbers with intervals."""

from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair, judge
from sfumato.registry import exports

__all__ = ["About", "Measure", "MeasureResult", "ReleasePair", "judge"]

__getattr__, __dir__ = exports(__name__)
