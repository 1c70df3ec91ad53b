"""Detectors of column roles, by subject; :data:`DETECTORS` lists all."""

from __future__ import annotations

from sfumato.profiling.detectors import contacts, dates, demography, documents, health, leftovers, names, places, survey
from sfumato.profiling.detectors.finding import Detector

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
"""Every detector examines every column. The finding with the highest confidence is proposed; ties go to the first."""
