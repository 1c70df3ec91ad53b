"""Disclosure risk and utility, as numbers with intervals."""

from tacit.measure.measure import About, Measure, Measurement, Pair, judge

__all__ = ["About", "Measure", "Measurement", "Pair", "judge"]
