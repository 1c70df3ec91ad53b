"""The detectors, one idea per module; :data:`DETECTORS` is all there is."""

from __future__ import annotations

from sfumato.profiling.detectors import contacts, dates, demography, documents, health, leftovers, names, places, survey
from sfumato.profiling.finding import Detector

__all__ = ["DETECTORS"]

DETECTORS: tuple[Detector, ...] = (
    *names.DETECTORS,
    *contacts.DETECTORS,
    *documents.DETECTORS,
    *dates.DETECTORS,
    *places.DETECTORS,
    *demography.DETECTORS,
    *health.DETECTORS,
    *survey.DETECTORS,
    *leftovers.DETECTORS,
)
"""Every detector sees every column; the most confident finding speaks, the first among equals."""
