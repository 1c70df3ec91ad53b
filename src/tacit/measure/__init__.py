"""Disclosure risk and utility, as numbers with intervals."""

from tacit.measure.measure import About, Measure, Measurement, Pair, judge
from tacit.verbal import make_callable

__all__ = ["About", "Measure", "Measurement", "Pair", "judge"]

make_callable(__name__)
