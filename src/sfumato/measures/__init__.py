"""Disclosure risk and utility, as numbers with intervals."""

from sfumato.measures.base import (
    About,
    Measure,
    MeasureResult,
    Picture,
    ReleasePair,
    default_measures,
    judge,
    measure_of,
)
from sfumato.registry import exports

__all__ = ["About", "Measure", "MeasureResult", "Picture", "ReleasePair", "default_measures", "judge", "measure_of"]

__getattr__, __dir__ = exports(__name__)
